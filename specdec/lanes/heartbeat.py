"""Heartbeats and deadlines of generators. A reader can stop a generator only between two items."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Generator, Iterator
from typing import Any, TypeVar

HEARTBEAT_S = 0.25
T = TypeVar("T")


def within(seconds: float, items: Generator[T, Any, Any]) -> Iterator[T]:
    """Yield `items`; raise TimeoutError(seconds) when that many have passed since the first item that is not None.

    So the time of loading, during which only heartbeats (None) come, does not count.
    """
    until: float | None = None
    with contextlib.closing(items):
        for item in items:
            if until is None and item is not None:
                until = time.monotonic() + seconds
            yield item
            if until is not None and time.monotonic() > until:
                raise TimeoutError(seconds)
