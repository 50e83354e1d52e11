"""The replay: one component that draws a run's log. Everything it does is in `assets/player.js`.

Its value is the run as a growing NDJSON text, so each update on the wire is only what was added, and a tab that opens
late still sees it all. The template is static, because values in a template would be run as code: text from a run
enters the page in JavaScript, by `textContent`.
"""

from __future__ import annotations

from typing import Any

import gradio as gr

from ..text import ASSETS, strings

from gradio.events import Dependency

class Player(gr.HTML):
    """`ended` changes when the stream of a live run is over, however it ended."""

    def __init__(self, value: str = "", *, ended: str = "", words: dict[str, Any] | None = None, **rest: Any) -> None:
        rest.setdefault("html_template", (ASSETS / "player.html").read_text(encoding="utf-8"))
        rest.setdefault("js_on_load", (ASSETS / "player.js").read_text(encoding="utf-8"))
        super().__init__(
            value, apply_default_css=False, ended=ended, words=words or strings("player"), elem_id="player", **rest
        )

    def api_info(self) -> dict[str, Any]:
        return {"type": "string", "description": "A run as NDJSON: a header, then one event a line"}
    from typing import Callable, Literal, Sequence, Any, TYPE_CHECKING
    from gradio.blocks import Block
    if TYPE_CHECKING:
        from gradio.components import Timer
        from gradio.components.base import Component