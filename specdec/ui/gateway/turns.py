"""Who has the machine, and who waits for it; everybody is told how long it may take.

Addresses take turns, so that one which asks for much holds up itself alone; among those of one address, first come is
first served. One address gets half of the places at most, which many people may share, a class behind its router say.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from ...exposure import limits

PLACES_OF_LEADER = 8  # in a line that is full for others
WEIGHT_OF_LAST = 0.3  # of the last turn in how long the next one is expected to take


@dataclass(slots=True, eq=False)
class Ticket:
    """A place in the line. Tickets that lead go before all others. `since` is when its turn began, on `time.monotonic`.

    `round` is when its address is due: each round has one ticket of every address (start-time fair queueing, Goyal et
    al. 1996).
    """

    kind: str
    address: str
    leads: bool
    round: int
    since: float | None = None


class Turns:
    """A line in front of one machine. `expected` is how many seconds a turn of each kind takes, at first a guess."""

    def __init__(self, expected: dict[str, float]) -> None:
        self._expected = dict(expected)
        self._line: list[Ticket] = []  # as they came
        self._round = 0  # of the last one that had the machine
        self._lock = threading.Lock()

    def locked(self) -> bool:
        """Say whether somebody has the machine."""
        return bool(self._line)

    def join(self, kind: str, address: str = "", leads: bool = False) -> Ticket | None:
        """Take a place in the line. None where too many wait, or too many of this address."""
        with self._lock:
            rounds = [one.round + 1 for one in self._line if one.address == address]
            most = limits().waiting
            if len(self._line) > most + leads * PLACES_OF_LEADER or (len(rounds) > most // 2 and not leads):
                return None
            ticket = Ticket(kind, address, leads, max(self._round, *rounds, 0))
            self._line.append(ticket)
            return ticket

    def before(self, ticket: Ticket) -> tuple[int, float]:
        """Return how many come before this ticket, and the seconds until its turn, by guess. (0, 0) begins its turn."""
        with self._lock:
            order = sorted(self._line, key=lambda one: (one.since is None, not one.leads, one.round))
            now, ahead = time.monotonic(), order[: order.index(ticket)]
            if not ahead and ticket.since is None:
                ticket.since, self._round = now, max(self._round, ticket.round)
            spent = now - (ahead[0].since or now) if ahead else 0.0
            seconds = sum(self._expected[other.kind] for other in ahead) - spent
            return len(ahead), max(0.0, seconds)

    def leave(self, ticket: Ticket) -> None:
        """End the ticket's turn, or its waiting."""
        with self._lock:
            self._line.remove(ticket)
            if ticket.since is not None:
                took = time.monotonic() - ticket.since
                self._expected[ticket.kind] += WEIGHT_OF_LAST * (took - self._expected[ticket.kind])
