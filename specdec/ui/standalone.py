"""A run as one HTML file that plays anywhere, in slides too, and makes no network requests.

It is the page's own player and its cycle view with the run beside them as data. Only the template is searched for
places to fill, and nothing in data or words can be markup (`pack`): a token may be `</script>`.
"""

from __future__ import annotations

import html
import re
from typing import Any

from ..traces.file import Trace
from .components.drawn import as_text, script
from .components.player import pack, player_words
from .text import language, PAGE, strings, TAGS

TITLE = 80  # characters of the prompt


def standalone(trace: Trace) -> str:
    data: dict[str, Any] = {
        "player": {"value": trace.dumps(), "words": as_text(player_words())},
        "step": {"words": as_text(strings("step"))},
    }
    parts = {
        "language": TAGS[language()],
        "title": html.escape(f"{trace.header.prompt[:TITLE]} · {strings('page')['brand']}"),
        "style": read("shared/style.css") + read("step/step.css"),
        "player": read("race/player.html"),
        "step": read("step/step.html"),
        "data": pack(as_text(data)),
        "player_script": script("race/player"),
        "step_script": script("step/step"),
    }
    return re.sub(r"@@(\w+)@@", lambda place: parts[place[1]], read("traces/standalone.html"))


def read(name: str) -> str:
    return (PAGE / name).read_text(encoding="utf-8")
