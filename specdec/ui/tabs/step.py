"""The tab Step through: the run of the tab Race, one decision at a time, drawn by `assets/page/step/step.js`.

If the page's first run is greedy, the script fetches a sampled one from the server instead.
"""

from __future__ import annotations

import gradio as gr

from .. import session
from ..components.drawn import drawn


def build(_: gr.Tab) -> None:
    drawn("step/step", elem_id="stepper", server_functions=[session.sampled_run])
