"""Queue the visitors who want to use the machine.

Addresses take turns, and can have about half of the places, because a whole class may share one.
"""

import threading
import time
from dataclasses import dataclass

from ...exposure import limits

PLACES_OF_LEADER = 8  # extra places for tickets that go before all others
WEIGHT_OF_LAST = 0.3  # weight of the last turn in the expected duration of a turn


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
        self._line: list[Ticket] = []  # in the order of arrival
        self._round = 0  # the highest round of a ticket that has had the machine
        self._lock = threading.Lock()

    def busy(self) -> bool:
        return bool(self._line)

    def join(self, kind: str, address: str = "", leads: bool = False) -> Ticket | None:
        """Take a place in the queue; None if too many wait, in total or from this address."""
        with self._lock:
            rounds = [ticket.round + 1 for ticket in self._line if ticket.address == address]
            most = limits().waiting
            if len(self._line) > most + leads * PLACES_OF_LEADER or (len(rounds) > most // 2 and not leads):
                return None
            ticket = Ticket(kind, address, leads, max(self._round, *rounds, 0))
            self._line.append(ticket)
            return ticket

    def poll(self, ticket: Ticket) -> tuple[int, float] | None:
        """Return how many tickets are ahead, and the expected seconds. If none is, begin the turn and return None."""
        with self._lock:
            order = sorted(self._line, key=lambda ticket: (ticket.since is None, not ticket.leads, ticket.round))
            now, ahead = time.monotonic(), order[: order.index(ticket)]
            if not ahead:
                ticket.since, self._round = ticket.since or now, max(self._round, ticket.round)
                return None
            elapsed = now - (ahead[0].since or now)
            seconds = sum(self._expected[other.kind] for other in ahead) - elapsed
            return len(ahead), max(0.0, seconds)

    def leave(self, ticket: Ticket) -> None:
        with self._lock:
            self._line.remove(ticket)
            if ticket.since is not None:
                duration = time.monotonic() - ticket.since
                self._expected[ticket.kind] += WEIGHT_OF_LAST * (duration - self._expected[ticket.kind])
