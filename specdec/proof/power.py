"""Estimate how many draws at one place of a text are needed to notice each known mistake.

A vocabulary of thousands cannot be enumerated, so the likeliest few tokens are kept, and one token stands for all
others. Every random path of one cycle over them gives the distribution with a mistake. This only lowers the estimated
power.
"""

from __future__ import annotations

import bisect
import functools
import heapq
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence

import torch
from torch import Tensor

from ..engine import Task
from ..sampling import probabilities, Sampler
from ..types import Proposal, SamplingParams, Verdict
from .black_box import limit_after_first, OTHER, Row
from .enumeration import completed, cycle_paths, EnumeratingSampler, JointDistribution
from .goodness_of_fit import growth_of, SMALLEST
from .mistakes import CATALOGUE, Mistake
from .pair import drafter_of
from .toys import ByPrefix

LISTED = {1: 6, 2: 5, 3: 3}  # length of the draft -> how many tokens are kept; for longer drafts two
MAX_ENUMERATED_K = 5  # longer drafts are not enumerated
GRID = [math.ceil(10 * 1.05**i) for i in range(520)]  # numbers of draws to try, up to 1e12
MIN_GROWTH = 1e-12  # if G grows less with each draw, this is due to rounding
IMPOSSIBLE = 1e-12  # replaces a probability of 0, so that its logarithm is finite


class Lumped(ByPrefix):
    """A model over the target's likeliest tokens at each place, and a last token that stands for all others.

    Rows are distributions at `temperature`. After that last token the rows of target and draft are equal.
    """

    context = 64

    def __init__(self, row: Row, target: Row, listed: int, temperature: float) -> None:
        self.vocabulary, self.listed, self.temperature = listed + 1, listed, temperature
        self.row, self.target = row, target
        self.names, self.distribution = functools.cache(self._names), functools.cache(self._distribution)

    def _names(self, prefix: tuple[int, ...]) -> list[int]:
        """Return the real ids of the tokens that are kept after `prefix`; [] if it contains the last token."""
        text = self.real(prefix)
        row = {} if text is None else self.target(text)
        return heapq.nlargest(self.listed, row, key=row.__getitem__)

    def real(self, prefix: tuple[int, ...]) -> tuple[int, ...] | None:
        """Return the real ids of a prefix; None if it contains the last token."""
        ids = [self.names(prefix[:i]) for i in range(len(prefix))]
        if any(token >= len(names) for token, names in zip(prefix, ids, strict=True)):
            return None
        return tuple(names[token] for token, names in zip(prefix, ids, strict=True))

    def _distribution(self, prefix: tuple[int, ...]) -> list[float]:
        text = self.real(prefix)
        row = {} if text is None else self.row(text)
        listed = [row.get(token, 0.0) for token in self.names(prefix)]
        listed += [0.0] * (self.listed - len(listed))
        return [*listed, max(0.0, 1.0 - math.fsum(listed))]

    def logits(self, prefix: tuple[int, ...]) -> Tensor:
        return torch.tensor(self.distribution(prefix), dtype=torch.float64).log() * self.temperature


class AsDrawn(EnumeratingSampler):
    """Draws the last token if a row is nan (0 / 0), as `RandomSampler` does."""

    def categorical(self, probs: Tensor, key: tuple[str, int] = ("", 0)) -> int:
        return len(probs) - 1 if bool(probs.isnan().any()) else super().categorical(probs, key)


def assumed_draft(target: Row) -> Row:
    """Make the rows of an assumed draft, for a server whose draft is unknown. They resemble the target's rows."""

    @functools.cache
    def row(text: tuple[int, ...]) -> Mapping[int, float]:
        distribution = dict(target(text))
        distribution[OTHER] = max(0.0, 1.0 - math.fsum(distribution.values()))
        dice = random.Random(str(text))
        drafted = {token: p**0.6 * math.exp(dice.gauss(0.0, 0.9)) for token, p in distribution.items()}
        total = math.fsum(drafted.values())
        return {token: p / total for token, p in drafted.items() if token != OTHER}

    return row


class OneCycle:
    """A text over the likeliest few tokens: a first token of the target, one cycle of `k` drafts, then plain decoding.

    What does not depend on a mistake is computed once.
    """

    def __init__(self, target: Row, draft: Row, k: int, temperature: float) -> None:
        self.k, self.listed = k, min(LISTED.get(k, 2), len(target(())) - 1)
        self.params = SamplingParams(temperature=temperature)
        self.target, self.draft = (Lumped(row, target, self.listed, temperature) for row in (target, draft))
        self.others = (self.listed,)
        chances = enumerate(self.target.distribution(()))
        self.firsts: JointDistribution = {(token,): p for token, p in chances if p > 0.0 or token == self.listed}

    @functools.cached_property
    def right(self) -> list[JointDistribution]:
        """The distributions of the next 1, 2, … tokens."""
        return self.lengths(self.firsts)

    def wrong(self, mistake: Mistake) -> list[JointDistribution]:
        """Return the same distributions with a mistake."""
        wrong: JointDistribution = {self.others: self.firsts[self.others]}
        for first, chance in self.firsts.items():
            for text, p in self.added(mistake, first) if first != self.others else ():
                wrong[first + text] = wrong.get(first + text, 0.0) + chance * p
        return self.lengths(wrong)

    def added(self, mistake: Mistake, text: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], float]]:
        """Yield what the cycle can add after `text`, once for each random path, with its probability."""

        def task() -> Task:
            made = Task(self.target, text, self.params, drafter_of(mistake, self.draft), self.k, details=False)
            return mistake.apply(made, self.draft)

        def propose(sampler: Sampler) -> Proposal:
            return task().drafter.propose(text, self.k, self.params, sampler)

        def verifier(proposal: Proposal) -> Callable[[Sampler], Verdict]:
            made, block = task(), (*text, *proposal.tokens)
            logits = made.target.forward(block, made.target.new_cache(len(block)), proposal.parents, len(proposal) + 1)
            return functools.partial(made.rule.verify, proposal, probabilities(logits, self.params))

        return cycle_paths(propose, verifier, sampler_class=AsDrawn)

    def lengths(self, distribution: JointDistribution) -> list[JointDistribution]:
        return [completed(distribution, n, self.target.distribution) for n in range(1, self.k + 3)]


def power(
    target: Row,
    draft: Row,
    distributions: Sequence[JointDistribution],
    k: int,
    temperature: float,
    alarm: float,
) -> dict[str, int | None]:
    """Return how many draws show each known mistake in 999 of 1,000 samples; None if no number does.

    `distributions` are those that will be tested, for the number of their cells.
    """
    chances = [sorted(distribution.values()) for distribution in distributions]
    needed: dict[str, int | None] = {}
    cycle_of = functools.cache(lambda k: OneCycle(target, draft, k, temperature))
    for mistake in CATALOGUE:
        cycle = cycle_of(min(max(k, mistake.least_k), MAX_ENUMERATED_K))
        tests = list(zip(cycle.wrong(mistake), cycle.right, chances, strict=False))[1:]
        fewest = list[int]()
        for wrong, right, cells in tests:
            growth, variance = growing(wrong, right)
            red = functools.partial(is_shown, growth, variance, chances[0], cells, alarm)
            if growth > MIN_GROWTH and (n := next(filter(red, GRID), None)):
                fewest.append(n)
        needed[mistake.key] = min(fewest, default=None)
    return needed


def growing(wrong: JointDistribution, right: JointDistribution) -> tuple[float, float]:
    """`growth_of` draws from `wrong` against `right`."""
    return growth_of([(right.get(text, IMPOSSIBLE), wrong.get(text, 0.0)) for text in wrong.keys() | right.keys()])


def is_shown(growth: float, variance: float, first: list[float], cells: list[float], alarm: float, n: int) -> bool:
    """Decide as `draws_needed` whether n draws are enough. `first` and `cells` are ascending probabilities of cells."""
    large = [len(chances) - bisect.bisect_left(chances, SMALLEST / n) for chances in (first, cells)]
    degrees = large[1] - large[0]
    if degrees < 1:
        return False
    return degrees + n * growth - 3 * math.sqrt(2 * degrees + 4 * n * variance) > limit_after_first(degrees, alarm)
