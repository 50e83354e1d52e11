"""The guided tour, which stands outside the tabs because it drives them all, and the page of the tab Guide."""

from __future__ import annotations

import gradio as gr

from ...settings import SETTINGS
from ..menu import read_json
from ..tabs import labels
from ..text import ASSETS, prompts, strings
from .drawn import drawn

CLASS_SEED = 7


def tour() -> gr.HTML:
    return drawn("guide/tour", words=strings("guide")["tour"], elem_id="tour")


def guide() -> gr.HTML:
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
