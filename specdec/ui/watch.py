"""A server of others, raced from the page. It computes elsewhere, so its run takes no turn at this machine.

Whoever asks often is told so as for any run, and a visitor who left is noticed. The key is in the request and nowhere
else: in no log, trace, link or sentence.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace

from ..exposure import limits
from ..lanes.heartbeat import with_heartbeat, within
from ..servers import lane
from ..servers.base import Server
from ..servers.connect import connect_pair
from ..servers.stream import Left, Limits
from ..traces.file import Header, line, live_header, Trace
from ..types import SamplingParams
from . import session
from .session import HEARTBEAT, News, notice
from .text import kind_of

MAX_MODEL_NAME = 80  # characters that are shown


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
    """Race the server. At the end, "whole" is the run as the server counts it, in place of all lines before.

    Closing the iterator hangs up.
    """
    yield News("notice", notice("connecting"))
    left = Left()
    try:
        for news in within(limits().seconds, with_heartbeat(race(request, Limits(left=left)))):
            yield news or HEARTBEAT
    finally:
        left.set()  # hangs up, whatever is being waited for


def race(request: WatchRequest, limits: Limits) -> Generator[News, None, None]:
    """Ask the servers what they are, then race them. ServerError says why that is not possible."""
    server, plain = connect_pair(request.address, request.plain, request.key, limits)
    facts = server.facts
    name = f"{facts.kind} {facts.version}".strip()
    yield News("notice", notice("watching", server=name, model=facts.model[:MAX_MODEL_NAME]))
    header = make_header(request, server, plain)
    yield News("lines", header.line())
    for item in lane.race(server, plain, request.prompt, request.params):
        if isinstance(item, lane.FinalTrace):
            header = make_header(request, server, plain)  # with another id, so that the page takes it as another run
            yield News("whole", Trace(header, item.events).dumps())
        else:
            yield News("lines", line(item))
    yield News("done", notice("done"))


def make_header(request: WatchRequest, server: Server, plain: Server | None) -> Header:
    """Make the header. It has no machine, because none is known behind an address, and keeps the address secret."""
    header = live_header(request.prompt, lane.about(server, plain), kind_of(request.prompt))
    lanes = (lane.SPECULATIVE, lane.PLAIN) if plain else (lane.SPECULATIVE,)
    return replace(header, lanes=lanes, machine={})
