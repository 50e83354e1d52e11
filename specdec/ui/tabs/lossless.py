"""The tab Lossless?: recorded certificates, and live ones, the component's value as JSON."""

import contextlib
import inspect
from collections.abc import Generator
from typing import Any

import gradio as gr

from ...messages import Refused
from ...proof import SAMPLE_SIZES
from ...traces.file import escaped
from .. import recorded
from ..components.drawn import drawn, ended, ENGINE, INSTANT, PRIVATE
from ..request import check_certificate
from ..session import session
from ..text import prompts, translated


def build(tab: gr.Tab) -> None:
    screen = drawn(
        "lossless/lossless",
        elem_id="certificate",
        server_functions=[recorded.recorded_certificates],
        text=prompts()["story"][0],
        draws=list(SAMPLE_SIZES),
        said="",
        wrong=False,
        ended="",
    )
    running = screen.submit(start, None, screen, **ENGINE, **PRIVATE)
    running.then(ended, None, screen, **INSTANT)
    screen.stop(None, None, None, cancels=running, **INSTANT)


def start(event: gr.EventData) -> Generator[Any, None, None]:
    names = inspect.signature(check_certificate).parameters
    try:
        running = session.certify(check_certificate(**{name: getattr(event, name, None) for name in names}))
    except Refused as error:
        yield gr.update(said=translated(error.sentence), wrong=True)
        return
    with contextlib.closing(running):
        for item in running:
            if item.name == "lines":
                yield gr.update(value=escaped(item.text)) if item.text else gr.skip()
            else:
                yield gr.update(said=item.text, wrong=item.name == "error")
