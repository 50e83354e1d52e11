"""The next three tokens, drawn many times by the shipped loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from ..sampling import Sampler
from .mistakes import Mistake
from .pair import ModelPair, next_tokens


class Crowd(Sampler):
    """Many draws at once, each as `RandomSampler` draws. A question splits them by answer; the largest answer goes on.

    `script` holds the answers of this group of `count` so far, `left` the groups that answered otherwise.
    """

    def __init__(self, dice: torch.Generator, count: int, script: tuple[int, ...] = ()) -> None:
        self.dice, self.count, self.script = dice, count, script
        self.left: list[tuple[tuple[int, ...], int]] = []
        self._asked = 0

    def categorical(self, probs: Tensor, key: tuple[str, int]) -> int:
        cumulative = probs.double().cumsum(0)
        last = int(probs.nonzero()[-1])
        return self._answer(lambda u: torch.searchsorted(cumulative, u * cumulative[-1], right=True).clamp(max=last))

    def accept(self, p: float, q: float, key: tuple[str, int]) -> tuple[bool, float]:
        accepted = bool(self._answer(lambda u: (u * q < p).long()))
        return accepted, 0.0 if accepted else 1.0

    def _answer(self, answers: Callable[[Tensor], Tensor]) -> int:
        if self._asked == len(self.script):
            u = torch.rand(self.count, dtype=torch.float64, generator=self.dice)
            groups = [(answer, n) for answer, n in enumerate(answers(u).bincount().tolist()) if n]
            answer, self.count = groups.pop()
            self.left += [((*self.script, other), n) for other, n in groups]
            self.script += (answer,)
        self._asked += 1
        return self.script[self._asked - 1]


def sample(
    pair: ModelPair, mistake: Mistake | None, draws: int, dice: torch.Generator
) -> Iterator[tuple[tuple[int, ...], int]]:
    """Texts and how many of `draws` independent draws gave them. The shipped loop walks each path once, for all."""
    run = next_tokens(pair, mistake)
    groups: list[tuple[tuple[int, ...], int]] = [((), draws)]
    while groups:
        script, count = groups.pop()
        crowd = Crowd(dice, count, script)
        yield run(crowd), crowd.count
        groups += crowd.left
