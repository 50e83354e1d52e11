"""Where two runs first part: in their words, else in what was drafted and judged, else in its numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal

from ..events import Committed, Drafted, Event, UNNAMED, Verified


@dataclass(frozen=True)
class Parting:
    """`token` counts from 0 and `cycles` is where it was written, in each run; both only if `what` is "words".

    Otherwise the texts are the same, and `cycles` says where the drafts or the numbers first differ.
    """

    what: Literal["words", "drafts", "numbers", "nothing"]
    tokens: tuple[tuple[str, ...], tuple[str, ...]]  # pieces of each run
    token: int | None = None
    cycles: tuple[int, int] | None = None

    def __str__(self) -> str:
        written = f"The texts are the same, {len(self.tokens[0])} tokens"
        if self.what == "nothing":
            return f"{written}, and so is every draft and every number; only times may differ."
        assert self.cycles is not None
        if self.what != "words":
            return f"{written}; {self.what} first differ in cycle {self.cycles[0]}."
        at = self.token or 0
        said = [repr(pieces[at]) if at < len(pieces) else "nothing more" for pieces in self.tokens]
        return (
            f"The texts part at token {at + 1}: {said[0]} (cycle {self.cycles[0]}) "
            f"against {said[1]} (cycle {self.cycles[1]})."
        )


def compare(a: Iterable[Event], b: Iterable[Event], lane: str = "speculative") -> Parting:
    """The first difference between the same lane of two runs. Times do not count: they never repeat."""
    events = [[event for event in run if event.lane == lane] for run in (a, b)]
    words = [[token for event in run for token in written(event)] for run in events]
    pieces = tuple(piece for _, piece, _ in words[0]), tuple(piece for _, piece, _ in words[1])
    for at, (one, other) in enumerate(zip_longest(*words)):
        if one is None or other is None or differ(one, other):
            ends = [run[-1][2] if run else 0 for run in words]
            cycles = (one[2] if one else ends[0], other[2] if other else ends[1])
            return Parting("words", pieces, at, cycles)
    for what, facts in (("drafts", drafts), ("numbers", numbers)):
        told = [[fact for event in run for fact in facts(event)] for run in events]
        for one, other in zip_longest(*told):
            if one != other:
                cycle = (one or other)[0]
                return Parting(what, pieces, None, (cycle, cycle))  # type: ignore[arg-type]
    return Parting("nothing", pieces)


def differ(one: tuple[int, str, int], other: tuple[int, str, int]) -> bool:
    """By their ids; by their pieces where a server does not tell the ids."""
    return one[1] != other[1] if UNNAMED in (one[0], other[0]) else one[0] != other[0]


def written(event: Event) -> Sequence[tuple[int, str, int]]:
    if not isinstance(event, Committed):
        return ()
    return [(token, piece, event.cycle) for token, piece in zip(event.tokens, event.pieces, strict=False)]


def drafts(event: Event) -> Sequence[tuple[Any, ...]]:
    if isinstance(event, Drafted):
        return [(event.cycle, event.tokens, event.parents)]
    if isinstance(event, Verified):
        return [(event.cycle, tuple(x.status for x in event.positions))]
    return ()


def numbers(event: Event) -> Sequence[tuple[Any, ...]]:
    return [(event.cycle, x.node, x.p, x.q, x.u) for x in event.positions] if isinstance(event, Verified) else ()
