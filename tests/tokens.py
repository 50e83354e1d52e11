"""The token ids of a run, and its events of a kind."""

from collections.abc import Iterable
from typing import Any

from specdec.events import Committed, Event


def ids(events: Iterable[Event], lane: str = "speculative") -> list[int]:
    return [token for event in events if isinstance(event, Committed) and event.lane == lane for token in event.tokens]


def only(events: Iterable[Event], kind: type[Event]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]
