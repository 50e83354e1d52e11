"""Who has the machine, and who waits for it; everybody is told how long it may take.

Addresses take turns, so that one which asks for much holds up itself alone; among those of one address, first come is
first served. Many people may share one, a class behind its router say, so there is no number of places that an address
may not pass. Only in a full line an address with many places gives one to whoever has few.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass

from ..exposure import limits

FRESH = 0.3  # weight of the last run in what is expected of the next


@dataclass(slots=True, eq=False)
class Ticket:
    """A place in the line. `leads` goes before all that do not. `since` is when its turn began, on `time.monotonic`.

    `round` is when its address is due: each round has one ticket of every address (start-time fair queueing, Goyal et
    al. 1996).
    """

    kind: str
    address: str
    leads: bool
    round: int
    since: float | None = None


class Turns:
    """A line in front of one machine. `expected` is how many seconds a turn of each kind takes, at first a guess.

    As many wait as the exposure grants. If all places are taken, the address with most places gives up its last one
    to an address that would have fewer even then.
    """

    def __init__(self, expected: dict[str, float]) -> None:
        self._expected = dict(expected)
        self._line: list[Ticket] = []  # as they came
        self._round = 0  # of the last one that had the machine
        self._lock = threading.Lock()

    def locked(self) -> bool:
        """Whether somebody has the machine."""
        return bool(self._line)

    def join(self, kind: str, address: str = "", leads: bool = False) -> Ticket | None:
        """A place; None where too many wait."""
        with self._lock:
            rounds = [one.round + 1 for one in self._line if one.address == address]
            ticket = Ticket(kind, address, leads, max(self._round, *rounds, 0))
            if len(self._line) > limits().waiting:
                if (other := self._yielding(ticket)) is None:
                    return None
                self._line.remove(other)
            self._line.append(ticket)
            return ticket

    def before(self, ticket: Ticket) -> tuple[int, float] | None:
        """How many come before this one, and in how many seconds it is probably its turn. (0, 0) begins its turn.

        None where it had to give its place to somebody else.
        """
        with self._lock:
            if ticket not in self._line:
                return None
            order = sorted(self._line, key=lambda one: (one.since is None, not one.leads, one.round))
            now, ahead = time.monotonic(), order[: order.index(ticket)]
            if not ahead and ticket.since is None:
                ticket.since, self._round = now, max(self._round, ticket.round)
            spent = now - (ahead[0].since or now) if ahead else 0.0
            seconds = sum(self._expected[other.kind] for other in ahead) - spent
            return len(ahead), max(0.0, seconds)

    def leave(self, ticket: Ticket) -> None:
        """Its turn is over, or it waits no longer."""
        with self._lock:
            if ticket in self._line:
                self._line.remove(ticket)
            if ticket.since is not None:
                took = time.monotonic() - ticket.since
                self._expected[ticket.kind] += FRESH * (took - self._expected[ticket.kind])

    def _yielding(self, ticket: Ticket) -> Ticket | None:
        """Who makes room for it: the last of the address with most places, if that has more than it may be sure of."""
        waiting = [one for one in self._line if one.since is None]
        others = [one for one in waiting if not one.leads]
        if not others:
            return None
        places = Counter(one.address for one in others)
        address, most = places.most_common(1)[0]
        own = sum(one.address == ticket.address for one in waiting)
        if not ticket.leads and most <= own + 1:
            return None
        return [one for one in others if one.address == address][-1]
