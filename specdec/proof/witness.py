"""The one token whose share in drawn texts differs most surely from the distribution's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from .cells import counts_in, OTHER
from .enumeration import JointDistribution
from .goodness_of_fit import Counts


class Witness(NamedTuple):
    """The token, after which others, its chance there, and its share of the texts that came so far."""

    before: tuple[int, ...]
    token: int
    expected: float
    seen: float
    texts: int


def witness(drawn: Counts, distributions: Sequence[JointDistribution]) -> Witness | None:
    """Over the distributions of the next 1, 2, … tokens; None where no cell is a text."""
    best, surest = None, -1.0
    shorter: list[JointDistribution] = [{(): 1.0}, *distributions]
    for length, (before, distribution) in enumerate(zip(shorter, distributions, strict=False), start=1):
        visits, seen = counts_in(before, drawn), counts_in(distribution, drawn)
        for cell in distribution.keys() | seen.keys():
            text, texts = cell[:-1], visits[cell[:-1]]
            if len(cell) < length or cell[-1] == OTHER or text not in before or texts == 0:
                continue
            p, share = min(1.0, distribution.get(cell, 0.0) / before[text]), seen[cell] / texts
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
