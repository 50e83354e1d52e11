"""The enumerator: every random path of a decoding loop, with its exact probability.

Sampling cannot show that a loop is exact, only that it is not far off; some classic mistakes would take a hundred
million samples to see. On a toy model with a handful of tokens all random paths can be walked. The sampler below
answers every random question in turn with each answer that has a chance, and multiplies the chances. The sum over
all paths is the loop's exact output distribution.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TypeVar

from torch import Tensor

from ..sampling import Sampler
from ..types import Proposal, Verdict

JointDistribution = dict[tuple[int, ...], float]  # the probability of each text
Outcome = TypeVar("Outcome")
FEW = 64  # chances: up to so many a list is faster than a search


class TooManyPaths(RuntimeError):
    """The toy is too large to enumerate within the limit."""


class EnumeratingSampler(Sampler):
    """Answers as the script says, then takes the first possible answer; remembers what else was possible."""

    def __init__(self, script: Sequence[int] = ()) -> None:
        self.script = list(script)
        self.open: list[list[int]] = []  # per question, the answers not yet taken
        self.probability = 1.0
        self._answered = 0

    def categorical(self, probs: Tensor, key: tuple[str, int] = ("", 0)) -> int:
        if len(probs) <= FEW:
            return self._answer(probs.tolist())
        broken = probs.isnan()  # one of those tells as much as all
        possible = broken.nonzero().flatten()[:1] if bool(broken.any()) else (probs > 0.0).nonzero().flatten()
        return int(possible[self._answer(probs[possible].tolist())])

    def accept(self, p: float, q: float, key: tuple[str, int] = ("", 0)) -> tuple[bool, float]:
        keep = 1.0 if p >= q else p / q
        accepted = bool(self._answer([1.0 - keep, keep]))
        return accepted, 0.0 if accepted else 1.0

    def _answer(self, chances: list[float]) -> int:
        possible = [i for i, chance in enumerate(chances) if chance > 0.0 or math.isnan(chance)]
        if self._answered < len(self.script):
            answer, rest = self.script[self._answered], []
        else:
            answer, *rest = possible
            self.script.append(answer)
        if self._answered == len(self.open):
            self.open.append(rest)
        self.probability *= chances[answer]
        self._answered += 1
        return answer


def paths(
    run: Callable[[Sampler], Outcome], limit: int, walker: type[EnumeratingSampler] = EnumeratingSampler
) -> Iterator[tuple[Outcome, float]]:
    """Every random path of `run`, as (outcome, probability). Depth first; TooManyPaths beyond `limit`."""
    script: list[int] = []
    opened: list[list[int]] = []
    for _ in range(limit):
        sampler = walker(script)
        sampler.open = opened
        outcome = run(sampler)
        yield outcome, sampler.probability
        script, opened = sampler.script, sampler.open
        while opened and not opened[-1]:
            opened.pop()
            script.pop()
        if not opened:
            return
        script[-1] = opened[-1].pop(0)
    raise TooManyPaths(f"more than {limit} paths")


def output_distribution(
    run: Callable[[Sampler], tuple[int, ...]], limit: int = 100_000
) -> tuple[JointDistribution, int]:
    """The exact distribution of what `run` returns, and the number of paths."""
    distribution: JointDistribution = {}
    count = 0
    for outcome, probability in paths(run, limit):
        distribution[outcome] = distribution.get(outcome, 0.0) + probability
        count += 1
    return distribution, count


def cycle_paths(
    propose: Callable[[Sampler], Proposal],
    verifier: Callable[[Proposal], Callable[[Sampler], Verdict]],
    limit: int = 100_000,
    walker: type[EnumeratingSampler] = EnumeratingSampler,
) -> Iterator[tuple[tuple[int, ...], float]]:
    """What one cycle emits on each of its random paths, with the probability of that path."""
    for proposal, chance in paths(propose, limit, walker):
        for verdict, p in paths(verifier(proposal), limit, walker):
            yield tuple(verdict.emitted(proposal)), chance * p


def completed(
    distribution: JointDistribution,
    length: int,
    row: Callable[[tuple[int, ...]], Sequence[float]],
    ends: Collection[int] = (),
) -> JointDistribution:
    """Continue texts by `row`, the chances of the token after a text, to `length` tokens or an end token; longer texts
    are cut.
    """
    full: JointDistribution = {}
    left = list(distribution.items())
    while left:
        text, chance = left.pop()
        if len(text) >= length or (text and text[-1] in ends):
            full[text[:length]] = full.get(text[:length], 0.0) + chance
            continue
        left += [((*text, token), chance * p) for token, p in enumerate(row(text)) if p > 0.0]
    return full


def total_variation(a: JointDistribution, b: JointDistribution) -> float:
    """Half the sum of absolute differences; nan counts as 1."""
    distance = 0.5 * sum(abs(a.get(key, 0.0) - b.get(key, 0.0)) for key in a.keys() | b.keys())
    return 1.0 if math.isnan(distance) else distance
