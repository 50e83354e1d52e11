"""Identify visitors by address, limit their runs, and queue them for the machine. Addresses stay in memory.

Addresses take turns, and can have about half of the places, because a whole class may share one.
"""

import ipaddress
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ... import exposure
from . import gradio_private

MINUTE_S = 60.0
PLACES_OF_LEADER = 8  # extra places for tickets that go before all others
WEIGHT_OF_LAST = 0.3  # weight of the last turn in the expected duration of a turn
LEADS = "specdec.leads"  # in class mode, scope[LEADS] says whether the teacher sent the request


class RateLimit:
    def __init__(self) -> None:
        self._runs = deque[tuple[float, str]]()  # time and address, oldest first
        self._lock = threading.Lock()

    def wait_s(self, address: str) -> float:
        """Return the seconds until this address may run again. If that is 0, count the run."""
        with self._lock:
            now = time.monotonic()
            while self._runs and now - self._runs[0][0] >= MINUTE_S:
                self._runs.popleft()
            theirs = [begun for begun, other in self._runs if other == address]
            if len(theirs) >= exposure.limits().runs_of_address:
                return theirs[0] + MINUTE_S - now
            self._runs.append((now, address))
            return 0.0


@dataclass(slots=True, eq=False)
class Ticket:
    kind: str
    address: str
    leads: bool  # whether the ticket goes before all others
    round: int  # each serves one ticket of every address (start-time fair queueing, Goyal et al. 1996)
    since: float | None = None  # start of the ticket's turn, by `time.monotonic`


class Turns:
    """A queue for one machine. `expected` has a first guess of a turn's seconds by kind."""

    def __init__(self, expected: dict[str, float]) -> None:
        self._expected = dict(expected)
        self._queue: list[Ticket] = []  # in the order of arrival
        self._round = 0  # the highest round of a ticket that has had the machine
        self._lock = threading.Lock()

    def busy(self) -> bool:
        return bool(self._queue)

    def join(self, kind: str, address: str = "", leads: bool = False) -> Ticket | None:
        """Take a place in the queue; None if too many wait, in total or from this address."""
        with self._lock:
            rounds = [ticket.round + 1 for ticket in self._queue if ticket.address == address]
            most = exposure.limits().waiting
            if len(self._queue) > most + leads * PLACES_OF_LEADER or (len(rounds) > most // 2 and not leads):
                return None
            ticket = Ticket(kind, address, leads, max(self._round, *rounds, 0))
            self._queue.append(ticket)
            return ticket

    def poll(self, ticket: Ticket) -> tuple[int, float] | None:
        """Return how many tickets are ahead, and the expected seconds. If none is, begin the turn and return None."""
        with self._lock:
            order = sorted(self._queue, key=lambda ticket: (ticket.since is None, not ticket.leads, ticket.round))
            now, ahead = time.monotonic(), order[: order.index(ticket)]
            if not ahead:
                ticket.since, self._round = ticket.since or now, max(self._round, ticket.round)
                return None
            elapsed = now - (ahead[0].since or now)
            seconds = sum(self._expected[other.kind] for other in ahead) - elapsed
            return len(ahead), max(0.0, seconds)

    def leave(self, ticket: Ticket) -> None:
        with self._lock:
            self._queue.remove(ticket)
            if ticket.since is not None:
                duration = time.monotonic() - ticket.since
                self._expected[ticket.kind] += WEIGHT_OF_LAST * (duration - self._expected[ticket.kind])


def visitor_address() -> str:
    """Return the address of the visitor whose request is being answered; "" outside of a request."""
    return address_of(gradio_private.scope())


def has_queue_priority() -> bool:
    """Say whether the visitor goes first: a class's teacher, or else who sits at this machine."""
    scope = gradio_private.scope()
    if LEADS in scope:
        return bool(scope[LEADS])
    is_public = exposure.host.exposure == "public"  # a proxy on this machine can pass on strangers' requests
    return not is_public and address_of(scope) in ("127.0.0.1", "::1")


def address_of(scope: Mapping[str, Any]) -> str:
    return network_of((scope.get("client") or ("",))[0])


def network_of(address: str) -> str:
    """Return an IPv4 address, or an IPv6 address's /64 network, often one machine's."""
    try:
        ip = ipaddress.IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if ip.ipv4_mapped or ip.is_loopback:
        return str(ip.ipv4_mapped or ip)
    return str(ipaddress.IPv6Network((ip, 64), strict=False))
