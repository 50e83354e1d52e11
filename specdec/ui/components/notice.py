"""One line: what is going on, how far it is, or what is wrong with the input or with a link."""

from __future__ import annotations

import time
from typing import Any

import gradio as gr

from .drawn import drawn


def notice(name: str = "notice", text: str = "") -> gr.HTML:
    return drawn("shared/notice", text, {}, elem_id=name, wrong=False, stopped="", share=1.0)


def tell(words: str, wrong: bool = False, stopped: str = "", share: float = 1.0) -> Any:
    """An update of the line. `stopped` takes the place of `words` if the work ends before it says another one.

    With a `share` below 1 a bar shows it.
    """
    return gr.update(value=words, wrong=wrong, stopped=stopped, share=round(share, 3))


def ended() -> Any:
    """An update for what watches `ended`: however the work ended, no more of it will come."""
    return gr.update(ended=str(time.time_ns()))
