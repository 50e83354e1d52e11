"""The random numbers of a captured cycle, for the plain loop: both must then write the same text."""

from __future__ import annotations

from torch import Tensor

from specdec.gpu.accept import draw, numbers
from specdec.sampling import Sampler


class TableSampler(Sampler):
    """The same numbers for the plain loop."""

    def __init__(self, seed: int, places: int, k: int) -> None:
        self._table, self._k, self._row = numbers(seed, places, k), k, 0

    def at(self, length: int) -> None:
        self._row = length

    def categorical(self, probs: Tensor, key: tuple[str, int]) -> int:
        kind, level = key
        place = 1 + self._k + level if kind == "draft" else 0
        return int(draw(probs, self._table[self._row, place : place + 1].to(probs.device)))

    def accept(self, p: float, q: float, key: tuple[str, int]) -> tuple[bool, float]:
        u = float(self._table[self._row, 1 + key[1]])
        return u * q < p, u
