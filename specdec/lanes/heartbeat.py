"""Heartbeats and deadlines of generators. Who reads a generator can leave it between two items only."""

from __future__ import annotations

import contextlib
import contextvars
import queue
import threading
import time
from collections.abc import Generator, Iterator
from typing import Any, TypeVar

HEARTBEAT_S = 0.25
THREAD = "heartbeat"
T = TypeVar("T")
END = EOFError()


def with_heartbeat(items: Generator[T, Any, Any]) -> Generator[T | None, None, None]:
    """Yield `items`, and None whenever none has come for `HEARTBEAT_S`.

    A thread makes them, in this context. Closing this iterator does not wait for it: the thread closes
    `items` once the next one has come.
    """
    came: queue.SimpleQueue[T | Exception] = queue.SimpleQueue()
    left = threading.Event()

    def forward() -> None:
        try:
            with contextlib.closing(items):
                for item in items:
                    came.put(item)
                    if left.is_set():
                        return
            came.put(END)
        except Exception as error:
            came.put(error)

    threading.Thread(target=contextvars.copy_context().run, args=(forward,), name=THREAD, daemon=True).start()
    try:
        while True:
            try:
                item = came.get(timeout=HEARTBEAT_S)
            except queue.Empty:
                yield None
                continue
            if item is END:
                return
            if isinstance(item, Exception):
                raise item
            yield item
    finally:
        left.set()


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
