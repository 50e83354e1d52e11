"""A deadline begins with the first thing that is no heartbeat."""

from __future__ import annotations

from collections.abc import Generator
from types import SimpleNamespace
from typing import Any

import pytest
from specdec.lanes.heartbeat import within

from specdec.lanes import heartbeat


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
