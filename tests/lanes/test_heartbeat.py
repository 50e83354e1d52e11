"""Something comes while nothing comes; a deadline begins with the first thing that is no heartbeat."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Generator
from types import SimpleNamespace
from typing import Any

import pytest

from specdec.lanes import heartbeat
from specdec.lanes.heartbeat import with_heartbeat, within

WHOSE = contextvars.ContextVar("WHOSE", default="nobody's")


def test_items_come_in_order_with_heartbeats_between_and_an_error_last() -> None:
    gate = threading.Event()

    def items() -> Generator[str, None, None]:
        yield WHOSE.get()
        assert gate.wait(60)
        yield "later"
        raise KeyError("broken")

    token = WHOSE.set("mine")
    answers = with_heartbeat(items())
    assert next(item for item in answers if item) == "mine"
    WHOSE.reset(token)
    assert next(answers) is None
    gate.set()
    assert next(item for item in answers if item) == "later"
    with pytest.raises(KeyError, match="broken"):
        list(answers)


def test_leaving_waits_for_nobody_and_what_was_read_is_closed() -> None:
    gate, closed = threading.Event(), threading.Event()

    def items() -> Generator[int, None, None]:
        try:
            assert gate.wait(60)
            yield 1
            yield 2
        finally:
            closed.set()

    answers = with_heartbeat(items())
    assert next(answers) is None
    answers.close()
    assert not closed.is_set()
    gate.set()
    assert closed.wait(60)


def test_what_comes_before_the_first_item_takes_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(heartbeat, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def answers() -> Generator[Any, None, None]:
        for at, item in ((0.0, None), (500.0, None), (1000.0, "first"), (1009.0, None), (1009.0, "x"), (1011.0, None)):
            now[0] = at
            yield item
        yield "never"

    told = []
    with pytest.raises(TimeoutError) as late:
        for item in within(10.0, answers()):
            told.append(item)
    assert told == [None, None, "first", None, "x", None] and late.value.args == (10.0,)
