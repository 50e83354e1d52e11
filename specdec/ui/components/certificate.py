"""The certificate: three checks, the mistakes that break them, and the request to sample again. See `lossless.js`.

Its value is the live certificate as JSON. Those that need no model it fetches when they are first looked at, by pair:
`recorded` answers. It asks for a live one by the event `submit`, with the request as data, and ends it by `stop`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradio as gr

from ...settings import SETTINGS
from ..request import DRAWS, PAIRS, SERVER_DRAWS
from .drawn import drawn
from .engine import known
from .player import pack


def certificate(recorded: Callable[[Any], dict[str, Any]], text: str) -> gr.HTML:
    """`text` is the text after which the embedded pair is certified, unless the visitor writes another."""
    return drawn(
        "lossless/lossless",
        elem_id="certificate",
        server_functions=[recorded],
        text=text,
        draws=dict.fromkeys(PAIRS, DRAWS) | {"server": SERVER_DRAWS},
        servers=servers(),
        said="",
        wrong=False,
        ended="",
    )


def servers() -> dict[str, Any]:
    """What a visitor may name: the owner's addresses, `free` any other. None of both: servers are not offered."""
    listed, free = known()
    return {"listed": listed, "free": free, "hottest": SETTINGS["temperature"].high}


def show(state: str) -> Any:
    return gr.update(value=pack(state))


def say(words: str, wrong: bool = False) -> Any:
    """An update of the line beside the button."""
    return gr.update(said=words, wrong=wrong)
