"""Offer live runs to programs: the endpoint `run` of the page's API."""

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import gradio as gr

from ..messages import Refused
from ..settings import declare, SETTINGS
from .components.drawn import ENGINE
from .request import check, SIGNATURE
from .session import session
from .text import ENGLISH, language, translated

ENDS = {"error": "error", "cut": "notice", "done": "notice"}  # the last answer -> the key of the API's last line


def add_endpoint() -> None:
    """Add `run` in the language of the page that is being built."""
    run.__doc__ = documentation()
    gr.api(run, api_name="run" if language() == ENGLISH else f"run_{language()}", **ENGINE)


def run(*settings: Any, **named: Any) -> Iterator[str]:
    """Run a prompt live, with speculative and with plain decoding. The run streams as NDJSON: a header, then events.

    `peer` adds a lane of transformers, if transformers has such a drafter and can run the target.
    A wrong name of a drafter, rule or target is answered with the list of valid names; `adaptive:NAME` adapts the draft
    length of any drafter.
    While the runs of other visitors come first, empty strings arrive.
    What is refused gives {"error": "what to do"}. A last line {"notice": "why"} tells why a run was cut, or had no GPU.

    Parameters:
        {settings}
    """
    try:
        request = check(*settings, **named)
    except Refused as error:
        yield json.dumps({"error": translated(error.sentence)})
        return
    with contextlib.closing(session.run(request, stand_in=False)) as items:
        for item in items:
            if item.name == "lines":
                yield item.text
            elif item.name in ENDS and item.text:
                yield json.dumps({ENDS[item.name]: item.text})
            else:
                yield ""  # Gradio notices only at a yield that a client has left


declare(run, SIGNATURE.parameters.values())


def documentation(text: str = str(run.__doc__)) -> str:
    """Describe the endpoint `run`. Bounds depend on who can reach the page."""
    return text.replace("{settings}", "\n        ".join(f"{s.name}: {s.help_with_bounds}" for s in SETTINGS.values()))
