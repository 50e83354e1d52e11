"""The one token whose share in drawn texts differs most surely from the law's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from .cells import counts_in, OTHER
from .enumeration import JointLaw
from .goodness_of_fit import Counts


class Witness(NamedTuple):
    """The token, after which others, its chance there, and its share of the texts that came so far."""

    before: tuple[int, ...]
    token: int
    expected: float
    seen: float
    texts: int


def witness(drawn: Counts, laws: Sequence[JointLaw]) -> Witness | None:
    """Over the laws of the next 1, 2, … tokens; None where no cell is a text."""
    best, surest = None, -1.0
    shorter: list[JointLaw] = [{(): 1.0}, *laws]
    for length, (before, law) in enumerate(zip(shorter, laws, strict=False), start=1):
        visits, seen = counts_in(before, drawn), counts_in(law, drawn)
        for cell in law.keys() | seen.keys():
            text, texts = cell[:-1], visits[cell[:-1]]
            if len(cell) < length or cell[-1] == OTHER or text not in before or texts == 0:
                continue
            p, share = min(1.0, law.get(cell, 0.0) / before[text]), seen[cell] / texts
            if texts * divergence(share, p) > surest:
                best, surest = Witness(text, cell[-1], p, share, texts), texts * divergence(share, p)
    return best


def divergence(share: float, p: float) -> float:
    """KL of two coins."""
    if share == p:
        return 0.0
    if p in (0.0, 1.0):
        return math.inf
    ours = share * math.log(share / p) if share else 0.0
    return ours + ((1 - share) * math.log((1 - share) / (1 - p)) if share < 1.0 else 0.0)
