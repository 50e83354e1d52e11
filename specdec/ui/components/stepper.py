"""One cycle taken apart: it draws the run that the page's player holds. Everything it does is in `assets/step.js`."""

from __future__ import annotations

import gradio as gr

from ..text import ASSETS, strings


def stepper() -> gr.HTML:
    return gr.HTML(
        "",
        html_template=(ASSETS / "step.html").read_text(encoding="utf-8"),
        js_on_load=(ASSETS / "step.js").read_text(encoding="utf-8"),
        apply_default_css=False,
        elem_id="stepper",
        words=strings("step"),
    )
