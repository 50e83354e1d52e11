"""The random numbers of a captured cycle, for the plain loop: both must then write the same text."""

from __future__ import annotations

from collections import Counter

from torch import Tensor

from specdec.gpu.accept import draw, Extent, numbers
from specdec.sampling import Sampler


class TableSampler(Sampler):
    """The same numbers for the plain loop."""

    def __init__(self, seed: int, places: int, extent: Extent) -> None:
        self._table, self._extent, self._row = numbers(seed, places, extent), extent, 0
        self._drawn: Counter[int] = Counter()  # siblings, by level

    def at(self, length: int) -> None:
        self._row = length
        self._drawn.clear()

    def categorical(self, probs: Tensor, key: tuple[str, int]) -> int:
        kind, level = key
        place = 0
        if kind == "draft":
            place = 1 + self._extent.nodes + level * self._extent.width + self._drawn[level]
            self._drawn[level] += 1
        return int(draw(probs, self._table[self._row, place : place + 1].to(probs.device)))

    def accept(self, p: float, q: float, key: tuple[str, int]) -> tuple[bool, float]:
        u = float(self._table[self._row, 1 + key[1]])
        return u * q < p, u
