"""The tab Theory: what the formulas say, and how well the run of the tab Race agrees with them."""

from __future__ import annotations

import gradio as gr

from ..components.theory import theory


def build(tab: gr.Tab) -> None:
    theory()
