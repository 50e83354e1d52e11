"""A server of others, raced from the page. It computes elsewhere, so its run takes no turn at this machine.

Whoever asks often is told so as for any run, and a visitor who left is noticed. The key is in the request and nowhere
else: in no log, trace, link or sentence.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace

from ..events import Event
from ..exposure import limits
from ..lanes.heartbeat import with_heartbeat, within
from ..servers import lane
from ..servers.base import Server
from ..servers.connect import connect_pair
from ..servers.stream import Left, Limits
from ..traces.file import Header, line, live_header, Trace
from ..types import SamplingParams
from . import session
from .session import News, notice
from .text import kind_of

MODEL = 80  # characters of its name that are told
THREAD = "watching a server"
Race = Generator[Event | lane.FinalTrace, None, None]


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """`plain` is "" where no baseline is raced; `key` is the server's."""

    prompt: str
    params: SamplingParams
    address: str
    plain: str = ""
    key: str = field(default="", repr=False)


@session.guarded
def run(request: WatchRequest) -> Iterator[News]:
    """The race as it comes; at its end "whole" is the run as its server counts it, in place of all lines before.

    Closing the iterator hangs up.
    """
    yield News("notice", notice("connecting"))
    left = Left()
    try:
        server, plain, events = yield from session.patiently(lambda: begun(request, Limits(left=left)))
        facts = server.facts
        name = f"{facts.kind} {facts.version}".strip()
        yield News("notice", notice("watching", server=name, model=facts.model[:MODEL]))
        yield from _live(head(request, server, plain), events)
    finally:
        left.set()  # hangs up, whatever is being waited for


def begun(request: WatchRequest, limits: Limits) -> tuple[Server, Server | None, Race]:
    """The servers, asked what they are, and their race. ServerError says why there is none."""
    server, plain = connect_pair(request.address, request.plain, request.key, limits)
    return server, plain, lane.race(server, plain, request.prompt, request.params)


def head(request: WatchRequest, server: Server, plain: Server | None) -> Header:
    """Of the machine behind an address nothing is known; the address is nobody else's business."""
    header = live_header(request.prompt, lane.about(server, plain), kind_of(request.prompt))
    lanes = (lane.SPECULATIVE, lane.PLAIN) if plain else (lane.SPECULATIVE,)
    return replace(header, lanes=lanes, machine={})


def _live(header: Header, events: Race) -> Iterator[News]:
    yield News("lines", header.line())
    for item in within(limits().seconds, with_heartbeat(events, THREAD)):
        if isinstance(item, lane.FinalTrace):
            again = live_header(header.prompt, header.models, header.kind)  # another id: the page takes it anew
            yield News("whole", Trace(replace(header, run=again.run), item.events).dumps())
        else:
            yield News("lines", "" if item is None else line(item))
    yield News("done", notice("done"))
