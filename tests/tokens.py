"""The token ids of a run."""

from collections.abc import Iterable

from specdec.events import Committed, Event


def ids(events: Iterable[Event], lane: str = "speculative") -> list[int]:
    return [token for event in events if isinstance(event, Committed) and event.lane == lane for token in event.tokens]
