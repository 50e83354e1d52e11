"""End a generator at a deadline. That is possible only between two items, so slow generators yield heartbeats."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Generator, Iterator
from typing import Any, TypeVar

HEARTBEAT_S = 0.25  # a heartbeat is a None, which a generator yields after this many seconds without an item
T = TypeVar("T")


def within(seconds: float, items: Generator[T, Any, Any]) -> Iterator[T]:
    """Yield `items`. Raise TimeoutError(seconds) when `seconds` have passed since the first item that is not None.

    While models load, only heartbeats (None) arrive, so the time of loading does not count.
    """
    deadline: float | None = None
    with contextlib.closing(items):
        for item in items:
            if deadline is None and item is not None:
                deadline = time.monotonic() + seconds
            yield item
            if deadline is not None and time.monotonic() > deadline:
                raise TimeoutError(seconds)
