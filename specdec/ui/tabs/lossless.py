"""The tab Lossless?: recorded certificates at once, live ones from the engine, with or without a mistake planted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gradio as gr

from .. import session
from ..components.certificate import certificate, say, show
from ..components.notice import ended
from ..request import check_certificate, InputError
from ..text import prompts
from .race import ENGINE, PRIVATE


def build(tab: gr.Tab) -> None:
    screen = certificate(session.recorded_certificates, prompts()["story"][0])
    running = screen.submit(start, None, screen, **ENGINE, **PRIVATE)
    running.then(ended, None, screen, queue=False, **PRIVATE)
    screen.stop(None, None, None, cancels=running, queue=False, **PRIVATE)


def start(asked: gr.EventData) -> Iterator[Any]:
    """Updates of the page for one live certificate."""
    fields = asked._data if isinstance(asked._data, dict) else {}
    try:
        request = check_certificate(*(fields.get(name) for name in ("pair", "mistake", "draws", "seed", "text")))
    except InputError as error:
        yield say(str(error), wrong=True)
        return
    for news in session.certify(request):
        if news.kind == "lines":
            yield show(news.text) if news.text else gr.skip()
        else:
            yield say(news.text, wrong=news.kind == "error")
