"""Find where two runs first differ: in their words, else in what was drafted and judged, else in its numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal

from ..events import Committed, Event
from .cycle import cycles


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
        if self.cycles is None:
            return f"{written}, and so is every draft and every number; only times may differ."
        if self.token is None:
            return f"{written}; {self.what} first differ in cycle {self.cycles[0]}."
        one, other = (repr(run[self.token]) if self.token < len(run) else "nothing more" for run in self.tokens)
        return (
            f"The texts part at token {self.token + 1}: {one} (cycle {self.cycles[0]}) "
            f"against {other} (cycle {self.cycles[1]})."
        )


def compare(a: Iterable[Event], b: Iterable[Event], lane: str = "speculative") -> Parting:
    """Return the first difference between the same lane of two runs. Times do not count: they never repeat.

    Texts are compared by their pieces, since a server does not report every id.
    """
    runs = [*a], [*b]
    one, other = ([*words(run, lane)] for run in runs)
    pieces = tuple(piece for piece, _ in one), tuple(piece for piece, _ in other)
    for at, (mine, yours) in enumerate(zip_longest(*pieces)):
        if mine != yours:
            ends = [text[min(at, len(text) - 1)][1] if text else 0 for text in (one, other)]
            return Parting("words", pieces, at, (ends[0], ends[1]))
    facts = zip_longest(*(facts_of(run, lane) for run in runs))
    differing = next(((mine or yours, mine, yours) for mine, yours in facts if mine != yours), None)
    if differing is None:
        return Parting("nothing", pieces)
    (cycle, *_), mine, yours = differing
    return Parting("numbers" if mine and yours and mine[1] == yours[1] else "drafts", pieces, None, (cycle, cycle))


def words(run: Iterable[Event], lane: str) -> Iterator[tuple[str, int]]:
    """Yield each piece of the text with its cycle."""
    for event in run:
        if isinstance(event, Committed) and event.lane == lane:
            yield from ((piece, event.cycle) for piece in event.pieces)


def facts_of(run: Iterable[Event], lane: str) -> Iterator[tuple[int, list[Any], list[Any]]]:
    """Yield each cycle's number, its drafts with their status, and their p, q and u."""
    for one in cycles(run, lane):
        drafts = [(x.token, parent, x.status) for x, parent in zip(one.positions, one.tree.parents, strict=True)]
        yield one.number, drafts, [(x.p, x.q, x.u) for x in one.positions]
