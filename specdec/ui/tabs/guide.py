"""The tab Guide: what is often asked or got wrong, the words, and what a teacher needs; and the guided tour, which
stands outside the tabs because it drives them all."""

from __future__ import annotations

import gradio as gr

from ...settings import SETTINGS
from .. import session
from ..components.drawn import drawn
from ..menu import read_json
from ..text import ASSETS, prompts, strings
from . import labels

CLASS_SEED = 7


def tour() -> gr.HTML:
    words, functions = strings("guide")["tour"], [session.sampled_run]
    return drawn("guide/tour", words=words, elem_id="tour", server_functions=functions)


def build(tab: gr.Tab) -> gr.HTML:
    """`settings` are in the link that gives a class the same run."""
    return drawn(
        "guide/guide",
        words={name: text for name, text in strings("guide").items() if name != "tour"},
        elem_id="guide-page",
        tabs=labels(),
        sources=read_json(ASSETS / "sources.json"),
        settings={"prompt": prompts()["story"][0], "drafter": "draft_model", "k": 3, "temperature": 0.8},
        seed=CLASS_SEED,
        most=SETTINGS["seed"].high,
    )
