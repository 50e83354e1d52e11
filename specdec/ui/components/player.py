"""Add the player: a component whose scripts, in `assets/page/race/`, draw a run's log.

Its value is the run as a growing NDJSON text. Gradio sends only what was added. The template is static, because Gradio
would run values in a template as code. The script writes a run's text by `textContent`, never as markup.
"""

from typing import Any

import gradio as gr

from ...methods import METHODS
from ...traces.file import escaped
from ..text import of_drafters, strings
from .drawn import drawn

METHOD_FIELDS = ("kind", "tree")  # the fields of a method that the scripts use


def player(log: str = "", render: bool = True) -> gr.HTML:
    """Add the player, which shows `log`. Its property `ended` changes when a live run is over, for any reason.

    `preparing` says that a live run has not begun yet, which dims the run on show. "unrecorded" also stops it: the
    chosen example has no recording.
    """
    return drawn(
        "race/player",
        escaped(log),
        player_words(),
        elem_id="player",
        ended="",
        preparing=False,
        render=render,
        events=["opened", "tried"],
    )


def player_words() -> dict[str, Any]:
    """Collect the player's own words, and its words for each drafter."""
    words = strings("player")
    return words | {
        "drafter": of_drafters("lane"),
        "names": of_drafters("name"),
        "methods": {name: {key: getattr(m, key) for key in METHOD_FIELDS} for name, m in METHODS.items()},
        "peer": words["peer"] | of_drafters("peer_lane"),
        "say": words["say"] | {"start": of_drafters("start")},
    }
