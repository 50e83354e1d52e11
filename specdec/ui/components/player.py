"""The replay: one component that draws a run's log. Everything it does is in `assets/page/race/`.

Its value is the run as a growing NDJSON text, so each update on the wire is only what was added, and a tab that opens
late still sees it all. The template is static, because values in a template would be run as code: text from a run
enters the page in JavaScript, by `textContent`.
"""

from __future__ import annotations

from typing import Any

import gradio as gr

from ...methods import METHODS
from ..text import of_drafters, strings
from .drawn import drawn

METHOD_FIELDS = ("kind", "tree")  # what the scripts know of a way of drafting


def player(log: str = "", render: bool = True) -> gr.HTML:
    """Add the player, with `log` on show. Its property `ended` changes when a live run is over, however it ended."""
    return drawn(
        "race/player", pack(log), player_words(), elem_id="player", ended="", render=render, events=["opened", "tried"]
    )


def player_words() -> dict[str, Any]:
    """Collect the player's own words, and what it says of each drafter."""
    words = strings("player")
    return words | {
        "drafter": of_drafters("lane"),
        "names": of_drafters("name"),
        "methods": {name: {key: getattr(m, key) for key in METHOD_FIELDS} for name, m in METHODS.items()},
        "peer": words["peer"] | of_drafters("peer_lane"),
        "say": words["say"] | {"start": of_drafters("start")},
    }


def pack(log: str) -> str:
    """Write the same JSON without a "<", so that nothing between server and script can take a token for markup."""
    return log.replace("<", "\\u003c")
