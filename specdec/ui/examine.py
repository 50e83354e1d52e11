"""A server of others, certified from the page: outside the line for this machine, for the server does the work.

The key is in the request and nowhere else: in no log, link, certificate or sentence.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import astuple
from typing import Any

from ..exposure import limits
from ..lanes.heartbeat import within
from ..servers import child
from ..servers.base import ServerError
from ..servers.connect import permit
from ..servers.verdict import against, judge, so_far
from ..types import TranslatableText
from . import session
from .request import ExaminationRequest
from .session import News, notice
from .text import strings, translated

AT_ONCE = 2  # each is a process with torch in it
_free = threading.BoundedSemaphore(AT_ONCE)


@session.guarded
def run(request: ExaminationRequest) -> Iterator[News]:
    """Each of the lines is the whole certificate so far, as JSON. Closing the iterator hangs up."""
    if not _free.acquire(blocking=False):
        raise ValueError(notice("full"))
    try:
        yield News("notice", notice("connecting"))
        permit(request.address, request.plain)  # before a process is started for it
        yield from _states(request)
    finally:
        _free.release()


def _states(request: ExaminationRequest) -> Iterator[News]:
    last: dict[str, Any] = {}
    try:
        for state in within(limits().examination, child.examining(*astuple(request))):
            last = state or last
            yield News("lines", written(state | so_far(state), request) if state else "")
        yield News("done", notice("certified"))
    except TimeoutError as late:
        error = ServerError(
            TranslatableText("Not finished after {seconds} seconds: take fewer draws.", seconds=round(late.args[0]))
        )
        if "verdict" not in last:
            yield News("lines", written(last | (so_far(last) or judge(last, error)), request))
        yield News("cut", translated(error.sentence))


def written(result: dict[str, Any], request: ExaminationRequest) -> str:
    """A state in the visitor's language; `seed` tells whose it is."""
    said = {"doing": say(result["doing"]), "against": say(against(result)), "seed": request.seed}
    said["sentences"] = [say(one) for one in result.get("sentences", ())]
    return json.dumps({"pair": "server", **result, **said}, ensure_ascii=False)


def say(sentence: str) -> str:
    """Contexts have names of the page's own."""
    if isinstance(sentence, TranslatableText) and "name" in sentence.values:
        names = strings("lossless")["server"]["contexts"]
        name = names.get(sentence.values["name"], sentence.values["name"])
        sentence = TranslatableText(sentence.template, **{**sentence.values, "name": name})
    return translated(sentence)
