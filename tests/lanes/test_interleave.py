"""Lanes take turns, and each ends."""

from collections.abc import Generator

from specdec.events import Committed, Event, Failed
from specdec.lanes.interleave import interleave


def lane(*events: Event) -> Generator[Event, None, None]:
    yield from events


def test_a_lane_that_ends_without_saying_so_ends() -> None:
    failed = Failed("speculative", 0, "engine", "lost", True, 0.0)
    cycles = [Committed("plain", n, (1,), ("a",), 0, "bonus", "a", n + 1, float(n)) for n in range(3)]
    assert list(interleave({"speculative": lane(failed), "plain": lane(*cycles)})) == [failed, *cycles]


def test_each_clock_counts_from_its_lanes_first_token() -> None:
    times = {"a": (9.0, 9.5, 11.0), "b": (0.0, 1.0, 3.0)}
    lanes = {
        name: lane(*(Committed(name, i, (1,), ("a",), 0, "bonus", "a", i + 1, at) for i, at in enumerate(ends)))
        for name, ends in times.items()
    }
    assert "".join(event.lane for event in interleave(lanes)) == "aabbab"
