"""Heartbeats and deadlines of generators. Who reads a generator can leave it between two items only."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Generator, Iterator
from typing import Any, TypeVar

HEARTBEAT_S = 0.25
T = TypeVar("T")


def within(seconds: float, items: Generator[T, Any, Any]) -> Iterator[T]:
    """Yield `items`. TimeoutError, with the seconds, once so many have passed since the first that is no heartbeat.

    What comes before that item, such as loading, does not count.
    """
    until: float | None = None
    with contextlib.closing(items):
        for item in items:
            if until is None and item is not None:
                until = time.monotonic() + seconds
            yield item
            if until is not None and time.monotonic() > until:
                raise TimeoutError(seconds)
