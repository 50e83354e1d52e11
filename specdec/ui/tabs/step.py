"""The tab Step through: the run of the tab Race, one decision at a time. All of it happens in the browser."""

from __future__ import annotations

import gradio as gr

from ..components.stepper import stepper


def build(tab: gr.Tab) -> None:
    stepper()
