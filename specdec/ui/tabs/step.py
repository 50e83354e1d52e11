"""The tab Step through: Race's run, one decision at a time, or a sampled run at first."""

import gradio as gr

from .. import recorded
from ..components.drawn import drawn


def build(_: gr.Tab) -> None:
    drawn("step/step", elem_id="stepper", server_functions=[recorded.sampled_run])
