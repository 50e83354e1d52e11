"""The guided tour, which stands outside the tabs because it drives them all, and the page of the tab Guide."""

from __future__ import annotations

from typing import Any

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
    words = {name: told for name, told in strings("guide").items() if name not in ("tab", "tour", "answers")}
    sources = {kind: listed for kind, listed in _sources().items() if kind != "answers"}
    return drawn(
        "guide/guide",
        words=words,
        elem_id="guide-page",
        tabs=labels(),
        sources=sources,
        settings={"prompt": prompts()["story"][0], "drafter": "draft_model", "k": 3, "temperature": 0.8},
        seed=CLASS_SEED,
        most=SETTINGS["seed"].high,
    )


def answers() -> gr.HTML:
    """Questions people ask, folded, above the page; they lead to its sections and to the tabs."""
    words = strings("guide")
    told = words["answers"] | {name: words[name] for name in ("sections", "see")}
    told["checked"] = words["practice"]["checked"]
    return drawn("guide/answers", words=told, elem_id="answers", tabs=labels(), sources=_sources()["answers"])


def _sources() -> dict[str, list[dict[str, Any]]]:
    return read_json(ASSETS / "sources.json")  # type: ignore[no-any-return]
