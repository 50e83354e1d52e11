"""The tab Step through: the run of the tab Race, one decision at a time, drawn by `assets/page/step/step.js`.

While the page shows the run that it began with, and that is greedy, the tab shows a recorded sampled run instead.
"""

import gradio as gr

from .. import recorded
from ..components.drawn import drawn


def build(_: gr.Tab) -> None:
    drawn("step/step", elem_id="stepper", server_functions=[recorded.sampled_run])
