"""The tab Guide: the way in, the words, what is often got wrong, and what a teacher needs; and the guided tour, which
stands outside the tabs because it drives them all."""

from __future__ import annotations

import gradio as gr

from ...settings import SETTINGS
from ..components.drawn import drawn
from ..menu import read_json
from ..text import ASSETS, prompts, strings
from . import labels

CLASS_SEED = 7


def tour() -> gr.HTML:
    return drawn("guide/tour", words=strings("guide")["tour"], elem_id="tour")


def build(tab: gr.Tab) -> gr.HTML:
    """`settings` are those of the link that gives a class the same run."""
    words = {name: told for name, told in strings("guide").items() if name not in ("tab", "tour")}
    return drawn(
        "guide/guide",
        words=words,
        elem_id="guide-page",
        tabs=labels(),
        sources=read_json(ASSETS / "sources.json"),
        settings={"prompt": prompts()["story"][0], "drafter": "draft_model", "k": 3, "temperature": 0.8},
        seed=CLASS_SEED,
        most=SETTINGS["seed"].high,
    )
