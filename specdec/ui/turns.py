"""Who has the machine, and who waits for it: first come, first served, and everybody is told how long it may take."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

FRESH = 0.3  # weight of the last run in what is expected of the next


@dataclass(slots=True, eq=False)
class Ticket:
    """A place in the line. `since` is when its turn began, on `time.monotonic`."""

    kind: str
    since: float | None = None


class Turns:
    """A line in front of one machine. `expected` is how many seconds a turn of each kind takes, at first a guess."""

    def __init__(self, expected: dict[str, float], most: int) -> None:
        self.most = most  # of those who wait
        self._expected = dict(expected)
        self._line: list[Ticket] = []  # the first has the machine
        self._lock = threading.Lock()

    def locked(self) -> bool:
        """Whether somebody has the machine."""
        return bool(self._line)

    def join(self, kind: str) -> Ticket | None:
        """The last place; None where too many wait."""
        with self._lock:
            if len(self._line) > self.most:
                return None
            ticket = Ticket(kind)
            self._line.append(ticket)
            return ticket

    def before(self, ticket: Ticket) -> tuple[int, float]:
        """How many come before this one, and in how many seconds it is probably its turn. (0, 0) begins its turn."""
        with self._lock:
            now, ahead = time.monotonic(), self._line[: self._line.index(ticket)]
            if not ahead and ticket.since is None:
                ticket.since = now
            spent = now - (ahead[0].since or now) if ahead else 0.0
            seconds = sum(self._expected[other.kind] for other in ahead) - spent
            return len(ahead), max(0.0, seconds)

    def leave(self, ticket: Ticket) -> None:
        """Its turn is over, or it waits no longer."""
        with self._lock:
            self._line.remove(ticket)
            if ticket.since is not None:
                took = time.monotonic() - ticket.since
                self._expected[ticket.kind] += FRESH * (took - self._expected[ticket.kind])
