"""The tab Guide: the way in, the words, what is often asked or got wrong, and what a teacher needs."""

from __future__ import annotations

import gradio as gr

from ..components.guide import answers, guide


def build(tab: gr.Tab) -> None:
    answers()
    guide()
