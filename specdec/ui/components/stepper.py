"""One cycle taken apart: it draws the run that the page's player holds. See `assets/page/step/step.js`."""

from __future__ import annotations

import gradio as gr

from .drawn import drawn


def stepper() -> gr.HTML:
    return drawn("step/step", elem_id="stepper")
