"""The tab Guide: what is often asked or got wrong, the words, and what a teacher needs; and the guided tour, which
stands outside the tabs because it drives them all."""

from __future__ import annotations

import gradio as gr

from .. import session
from ..components.drawn import drawn
from ..menu import read_json
from ..text import ASSETS, strings
from . import labels


def tour() -> gr.HTML:
    words, functions = strings("guide")["tour"], [session.sampled_run]
    return drawn("guide/tour", words=words, elem_id="tour", server_functions=functions)


def build(tab: gr.Tab) -> gr.HTML:
    return drawn(
        "guide/guide",
        words={name: text for name, text in strings("guide").items() if name != "tour"},
        elem_id="guide-page",
        tabs=labels(),
        sources=read_json(ASSETS / "sources.json"),
    )
