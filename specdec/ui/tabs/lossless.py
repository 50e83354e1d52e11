"""The tab Lossless?: recorded certificates at once, live ones from the engine, with or without a mistake planted, and
those of servers of others."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import gradio as gr

from .. import examine, session
from ..components.certificate import certificate, say, show
from ..components.notice import ended
from ..request import check_certificate, check_examination, InputError, sent
from ..text import prompts
from .race import ENGINE, PRIVATE


def build(tab: gr.Tab) -> None:
    screen = certificate(session.recorded_certificates, prompts()["story"][0])
    running = screen.submit(start, None, screen, **ENGINE, **PRIVATE)
    running.then(ended, None, screen, queue=False, **PRIVATE)
    screen.stop(None, None, None, cancels=running, queue=False, **PRIVATE)


def start(asked: gr.EventData) -> Iterator[Any]:
    """Updates of the page for one live certificate."""
    try:
        running = asked_for(asked)
    except InputError as error:
        yield say(str(error), wrong=True)
        return
    for news in running:
        if news.kind == "lines":
            yield show(news.text) if news.text else gr.skip()
        else:
            yield say(news.text, wrong=news.kind == "error")


def asked_for(asked: gr.EventData) -> Iterator[session.News]:
    """The certificate of a pair or of a server, not yet begun. InputError where it cannot."""
    if sent(asked, "pair") != "server":
        return session.certify(check_certificate(*named(asked, check_certificate)))
    return examine.run(check_examination(*named(asked, check_examination)))


def named(asked: gr.EventData, check: Any) -> list[Any]:
    return [sent(asked, name) for name in inspect.signature(check).parameters]
