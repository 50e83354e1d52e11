"""Lanes take turns, and each ends."""

from typing import Any

from specdec.events import Committed, Event, Failed
from specdec.lanes.interleave import interleave


class Lane:
    """A lane that must not be asked for another event after its end."""

    def __init__(self, *events: Event) -> None:
        self.left, self.ended = list(events), False

    def __iter__(self) -> "Lane":
        return self

    def __next__(self) -> Event:
        assert not self.ended, "it was asked again"
        if self.left:
            return self.left.pop(0)
        self.ended = True
        raise StopIteration

    def close(self) -> None:
        pass


def test_a_lane_that_ends_without_saying_so_ends() -> None:
    failed = Failed("speculative", 0, "engine", "lost", True, 0.0)
    cycles = [Committed("plain", n, (1,), ("a",), 0, "bonus", "a", n + 1, float(n)) for n in range(3)]
    lanes: dict[str, Any] = {"speculative": Lane(failed), "plain": Lane(*cycles)}
    assert list(interleave(lanes)) == [failed, *cycles]


def test_each_clock_counts_from_its_lanes_first_token() -> None:
    times = {"a": (9.0, 9.5, 11.0), "b": (0.0, 1.0, 3.0)}
    lanes: dict[str, Any] = {
        name: Lane(*(Committed(name, i, (1,), ("a",), 0, "bonus", "a", i + 1, at) for i, at in enumerate(ends)))
        for name, ends in times.items()
    }
    assert "".join(event.lane for event in interleave(lanes)) == "aabbab"
