"""The tab Step through: the run of the tab Race, one decision at a time. All of it happens in the browser:
see `assets/page/step/step.js`; below it the visitor judges guesses, `game.js`.
"""

from __future__ import annotations

import gradio as gr

from .. import session
from ..components.drawn import drawn


def build(tab: gr.Tab) -> None:
    functions = [session.sampled_run]
    drawn("step/step", elem_id="stepper", server_functions=functions)
    drawn("step/game", elem_id="game", server_functions=functions)
