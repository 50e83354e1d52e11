"""A server of others, raced from the page. It computes elsewhere, so its run takes no turn at this machine.

Whoever asks often is told so as for any run, and a visitor who left is noticed. The key is in the request and nowhere
else: in no log, trace, link or sentence.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace

from ..events import Event
from ..exposure import limits
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
Told = Event | lane.FinalTrace | Exception | None


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """`plain` is "" where no baseline is raced; `key` is the server's."""

    prompt: str
    params: SamplingParams
    address: str
    plain: str = ""
    key: str = field(default="", repr=False)


def run(request: WatchRequest) -> Iterator[News]:
    """The race as it comes; at its end "whole" is the run as its server counts it, in place of all lines before.

    Closing the iterator hangs up.
    """
    yield from session.admitted(session.explained(_run(request)))


def _run(request: WatchRequest) -> Iterator[News]:
    yield News("notice", notice("connecting"))
    left = Left()
    try:
        server, plain, events = yield from session.patiently(lambda: begun(request, Limits(left=left)))
        facts = server.facts
        name = f"{facts.kind} {facts.version}".strip()
        yield News("notice", notice("watching", server=name, model=facts.model[:MODEL]))
        yield from _live(head(request, server, plain), read(events, left))
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


def _live(header: Header, events: Iterator[Event | lane.FinalTrace | None]) -> Iterator[News]:
    started = time.monotonic()
    yield News("lines", header.line())
    for told in events:
        if isinstance(told, lane.FinalTrace):
            again = live_header(header.prompt, header.models, header.kind)  # another id: the page takes it anew
            yield News("whole", Trace(replace(header, run=again.run), told.events).dumps())
            continue
        yield News("lines", "" if told is None else line(told))
        if time.monotonic() - started > limits().seconds:
            yield News("cut", notice("deadline", seconds=round(limits().seconds)))
            return
    yield News("done", notice("done"))


def read(race: Race, left: threading.Event) -> Iterator[Event | lane.FinalTrace | None]:
    """What comes, and None where nothing does for a while: a place where a visitor who left is noticed.

    A thread reads, because a server may be silent. It ends once `left` is set.
    """
    came: queue.SimpleQueue[Told] = queue.SimpleQueue()
    end = EOFError()

    def reading() -> None:
        try:
            with contextlib.closing(race):
                for told in race:
                    came.put(told)
                    if left.is_set():
                        return
            came.put(end)
        except Exception as error:
            came.put(error)

    threading.Thread(target=reading, name=THREAD, daemon=True).start()
    while True:
        try:
            told = came.get(timeout=session.LOOK)
        except queue.Empty:
            told = None
        if told is end:
            return
        if isinstance(told, Exception):
            raise told
        yield told
