"""Estimate how many draws at one place of a text are needed to notice each known mistake.

A vocabulary of thousands cannot be enumerated, so only the likeliest few tokens are listed, and one more token stands
for all others. This can only raise the estimates. All random paths of one cycle over these tokens give the
distribution with a mistake.
"""

import bisect
import functools
import heapq
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence

import torch
from torch import Tensor

from ..loop import Task
from ..sampling import probabilities, Sampler
from ..types import Proposal, SamplingParams, Verdict
from .black_box import limit_after_first, OTHER, Row
from .enumeration import completed, cycle_paths, EnumeratingSampler, JointDistribution
from .goodness_of_fit import growth_of, SMALLEST
from .mistakes import CATALOGUE, Mistake
from .pair import drafter_of
from .toys import ByPrefix

LISTED = {1: 6, 2: 5, 3: 3}  # K -> how many of the likeliest tokens are listed; two for a larger K
MAX_ENUMERATED_K = 5  # a larger K gets the estimate for this K
GRID = [math.ceil(10 * 1.05**i) for i in range(520)]  # numbers of draws to try, up to 1e12
MIN_GROWTH = 1e-12  # a smaller growth of the test's statistic G with each draw is due to rounding
IMPOSSIBLE = 1e-12  # replaces a probability of 0, so that its logarithm is finite


class ListedTokensModel(ByPrefix):
    """A model over few ids: the target's likeliest tokens after each prefix, and a last id for all other tokens.

    Sampling from it at `temperature` follows `row`. After a prefix that contains the last id, only that id follows.
    """

    context = 64

    def __init__(self, row: Row, target: Row, listed: int, temperature: float) -> None:
        self.vocabulary, self.listed, self.temperature = listed + 1, listed, temperature
        self.row, self.target = row, target
        self.ids_after, self.distribution = functools.cache(self._ids_after), functools.cache(self._distribution)

    def _ids_after(self, prefix: tuple[int, ...]) -> list[int]:
        """Return the real ids of the tokens that are listed after `prefix`; [] if it contains the last id."""
        text = self.real(prefix)
        row = {} if text is None else self.target(text)
        return heapq.nlargest(self.listed, row, key=row.__getitem__)

    def real(self, prefix: tuple[int, ...]) -> tuple[int, ...] | None:
        """Return the target's ids of a prefix; None if it contains the last id."""
        listed = [self.ids_after(prefix[:i]) for i in range(len(prefix))]
        if any(token >= len(ids) for token, ids in zip(prefix, listed, strict=True)):
            return None
        return tuple(ids[token] for token, ids in zip(prefix, listed, strict=True))

    def _distribution(self, prefix: tuple[int, ...]) -> list[float]:
        text = self.real(prefix)
        row = {} if text is None else self.row(text)
        listed = [row.get(token, 0.0) for token in self.ids_after(prefix)]
        listed += [0.0] * (self.listed - len(listed))
        return [*listed, max(0.0, 1.0 - math.fsum(listed))]

    def logits(self, prefix: tuple[int, ...]) -> Tensor:
        return torch.tensor(self.distribution(prefix), dtype=torch.float64).log() * self.temperature


class DrawsLastForNan(EnumeratingSampler):
    """Draws the last token if a row is nan (0 / 0), as `RandomSampler` does."""

    def categorical(self, probs: Tensor, key: tuple[str, int] = ("", 0)) -> int:
        return len(probs) - 1 if bool(probs.isnan().any()) else super().categorical(probs, key)


def assumed_draft(target: Row) -> Row:
    """Make the rows of an assumed draft, for a server whose draft is unknown. They are the target's rows with noise."""

    @functools.cache
    def row(text: tuple[int, ...]) -> Mapping[int, float]:
        distribution = dict(target(text))
        distribution[OTHER] = max(0.0, 1.0 - math.fsum(distribution.values()))
        rng = random.Random(str(text))
        drafted = {token: p**0.6 * math.exp(rng.gauss(0.0, 0.9)) for token, p in distribution.items()}
        total = math.fsum(drafted.values())
        return {token: p / total for token, p in drafted.items() if token != OTHER}

    return row


class OneCycle:
    """Computes distributions of texts over the likeliest few tokens, once right and once with a mistake.

    A text is a first token of the target, then one cycle with `k` drafts, then plain decoding.
    """

    def __init__(self, target: Row, draft: Row, k: int, temperature: float) -> None:
        self.k, self.listed = k, min(LISTED.get(k, 2), len(target(())) - 1)
        self.params = SamplingParams(temperature=temperature)
        self.target, self.draft = (ListedTokensModel(row, target, self.listed, temperature) for row in (target, draft))
        self.other_text = (self.listed,)  # the last id
        chances = enumerate(self.target.distribution(()))
        self.firsts: JointDistribution = {(token,): p for token, p in chances if p > 0.0 or token == self.listed}

    @functools.cached_property
    def right(self) -> list[JointDistribution]:
        return self.by_length(self.firsts)

    def wrong(self, mistake: Mistake) -> list[JointDistribution]:
        wrong: JointDistribution = {self.other_text: self.firsts[self.other_text]}
        for first, chance in self.firsts.items():
            for text, p in self.cycle_texts(mistake, first) if first != self.other_text else ():
                wrong[first + text] = wrong.get(first + text, 0.0) + chance * p
        return self.by_length(wrong)

    def cycle_texts(self, mistake: Mistake, text: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], float]]:
        """Yield the tokens that the cycle adds after `text`, and the probability, for each random path."""

        def make_task() -> Task:
            task = Task(self.target, text, self.params, drafter_of(mistake, self.draft), self.k, details=False)
            return mistake.apply(task, self.draft)

        def propose(sampler: Sampler) -> Proposal:
            return make_task().drafter.propose(text, self.k, self.params, sampler)

        def verifier(proposal: Proposal) -> Callable[[Sampler], Verdict]:
            task, block = make_task(), (*text, *proposal.tokens)
            logits = task.target.forward(block, task.target.new_cache(len(block)), proposal.parents, len(proposal) + 1)
            return functools.partial(task.rule.verify, proposal, probabilities(logits, self.params))

        return cycle_paths(propose, verifier, sampler_class=DrawsLastForNan)

    def by_length(self, distribution: JointDistribution) -> list[JointDistribution]:
        return [completed(distribution, n, self.target.distribution) for n in range(1, self.k + 3)]


def power(
    target: Row,
    draft: Row,
    distributions: Sequence[JointDistribution],
    k: int,
    temperature: float,
    alarm: float,
) -> dict[str, int | None]:
    """Return how many draws show each known mistake in 999 of 1,000 samples; None if no number in `GRID` does.

    The test compares with the target's `distributions` of 1, 2, … tokens. Its false-alarm rate is `alarm`.
    """
    chances = [sorted(distribution.values()) for distribution in distributions]
    needed: dict[str, int | None] = {}
    cycle_of = functools.cache(lambda k: OneCycle(target, draft, k, temperature))
    for mistake in CATALOGUE:
        cycle = cycle_of(min(max(k, mistake.least_k), MAX_ENUMERATED_K))
        compared = list(zip(cycle.wrong(mistake), cycle.right, chances, strict=False))[1:]
        fewest = list[int]()
        for wrong, right, cells in compared:
            growth, variance = growing(wrong, right)
            shown = functools.partial(is_shown, growth, variance, chances[0], cells, alarm)
            if growth > MIN_GROWTH and (n := next(filter(shown, GRID), None)):
                fewest.append(n)
        needed[mistake.key] = min(fewest, default=None)
    return needed


def growing(wrong: JointDistribution, right: JointDistribution) -> tuple[float, float]:
    return growth_of([(right.get(text, IMPOSSIBLE), wrong.get(text, 0.0)) for text in wrong.keys() | right.keys()])


def is_shown(growth: float, variance: float, first: list[float], cells: list[float], alarm: float, n: int) -> bool:
    """Return whether n draws suffice (see `draws_needed`). `first` and `cells`: sorted chances, of tokens and texts."""
    large = [len(chances) - bisect.bisect_left(chances, SMALLEST / n) for chances in (first, cells)]
    degrees = large[1] - large[0]
    if degrees < 1:
        return False
    return degrees + n * growth - 3 * math.sqrt(2 * degrees + 4 * n * variance) > limit_after_first(degrees, alarm)
