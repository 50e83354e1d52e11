"""Enumerate every random path of a decoding loop, with its exact probability.

Samples can only show that a loop is nearly exact. On each path, the sampler returns one possible result of every random
decision, and multiplies their probabilities. Summed over all paths, these are the loop's exact output distribution.
"""

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TypeVar

from torch import Tensor

from ..sampling import Sampler

Tokens = tuple[int, ...]
JointDistribution = dict[Tokens, float]  # the probability of each text
Result = TypeVar("Result")
FEW = 64  # up to this many probabilities, a list is faster than a tensor


class TooManyPaths(RuntimeError):
    """The loop has more random paths than the limit allows."""


class EnumeratingSampler(Sampler):
    """Returns the results in `script`, then the last possible one of each decision. `others` branch off at these."""

    def __init__(self, script: tuple[int, ...] = ()) -> None:
        self.script, self.others = script, list[tuple[int, ...]]()
        self.probability = 1.0
        self._decided = 0

    def categorical(self, probs: Tensor, key: tuple[str, int] = ("", 0)) -> int:
        if len(probs) <= FEW:
            return self._decide(probs.tolist())
        is_nan = probs.isnan()  # one NaN is enough to make the total variation 1, so only the first is tried
        possible = is_nan.nonzero().flatten()[:1] if bool(is_nan.any()) else (probs > 0.0).nonzero().flatten()
        return int(possible[self._decide(probs[possible].tolist())])

    def accept(self, p: float, q: float, key: tuple[str, int] = ("", 0)) -> tuple[bool, float]:
        chance = 1.0 if p >= q else p / q
        accepted = bool(self._decide([1.0 - chance, chance]))
        return accepted, 0.0 if accepted else 1.0

    def _decide(self, chances: list[float]) -> int:
        if self._decided == len(self.script):
            *others, result = (i for i, chance in enumerate(chances) if chance > 0.0 or math.isnan(chance))
            self.others += [(*self.script, other) for other in others]
            self.script += (result,)
        result = self.script[self._decided]
        self.probability *= chances[result]
        self._decided += 1
        return result


def paths(run: Callable[[Sampler], Result], limit: int) -> Iterator[tuple[Result, float]]:
    """Yield (outcome, probability) of all random paths of `run`, depth first. Raises TooManyPaths beyond `limit`."""
    scripts: list[tuple[int, ...]] = [()]
    for _ in range(limit):
        sampler = EnumeratingSampler(scripts.pop())
        yield run(sampler), sampler.probability
        scripts += sampler.others
        if not scripts:
            return
    raise TooManyPaths(f"more than {limit} paths")


def output_distribution(run: Callable[[Sampler], Tokens], limit: int = 100_000) -> tuple[JointDistribution, int]:
    """Return the exact distribution of the results of `run`, and the number of paths."""
    distribution, count = dict[Tokens, float](), 0
    for outcome, probability in paths(run, limit):
        distribution[outcome] = distribution.get(outcome, 0.0) + probability
        count += 1
    return distribution, count


def completed(
    distribution: JointDistribution, length: int, row: Callable[[Tokens], Sequence[float]], ends: Collection[int] = ()
) -> JointDistribution:
    """Continue texts by `row`, the next token's probabilities, to `length` tokens or an end token; cut longer texts."""
    complete: JointDistribution = {}
    unfinished = list(distribution.items())
    while unfinished:
        text, chance = unfinished.pop()
        if len(text) >= length or (text and text[-1] in ends):
            complete[text[:length]] = complete.get(text[:length], 0.0) + chance
            continue
        unfinished += [((*text, token), chance * p) for token, p in enumerate(row(text)) if p > 0.0]
    return complete


def total_variation(a: JointDistribution, b: JointDistribution) -> float:
    """Return half the sum of absolute differences; 1 if it is nan."""
    distance = 0.5 * sum(abs(a.get(key, 0.0) - b.get(key, 0.0)) for key in a.keys() | b.keys())
    return 1.0 if math.isnan(distance) else distance
