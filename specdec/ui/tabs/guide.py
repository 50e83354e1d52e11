"""The tab Guide: the way in, the words, what is often got wrong, and what a teacher needs."""

from __future__ import annotations

import gradio as gr

from ..components.guide import guide


def build(tab: gr.Tab) -> None:
    guide()
