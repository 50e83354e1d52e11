"""A decoder judged by its texts alone: what should come next, shared out into cells that a test can count.

A row says what comes next after a text. The likely continuations become cells, so
that a distribution over every text of several tokens fits into a test. The first token is never drafted, so a test
leaves its noise out; and a witness is the one token whose share differs most surely.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ..models.base import LanguageModel
from ..sampling import probabilities
from ..types import SamplingParams
from .enumeration import JointDistribution
from .goodness_of_fit import beyond, Counts, divergence, GTest
from .pair import CachedRows

Row = Callable[[tuple[int, ...]], Mapping[int, float]]  # the likely tokens after a text; the others share the rest

SMALL_VOCABULARY = 64  # up to here a row lists every token; beyond it those of at least MIN_PROBABILITY
MIN_PROBABILITY = 1e-6
MIN_REST = 1e-6  # a row that does not list every token leaves at least this probability to the others
OTHER = -1  # last place of a cell: any token that has no cell of its own, and whatever follows it
SUM_TOLERANCE = 1e-9
DEGREE = 1.4  # the c of `g_test_after_first`, for each degree of freedom


def model_row(model: LanguageModel[Any], prompt: tuple[int, ...], params: SamplingParams) -> Row:
    """A model's own rows after `prompt`."""
    rows = CachedRows(model, len(prompt) + params.max_tokens + 1)

    @functools.cache
    def row(text: tuple[int, ...]) -> dict[int, float]:
        distribution = probabilities(rows.logits(prompt + text)[None], params)[0]
        if len(distribution) <= SMALL_VOCABULARY:
            return dict(enumerate(distribution.tolist()))
        likely = (distribution >= MIN_PROBABILITY).nonzero().flatten()
        return leaving_some(dict(zip(likely.tolist(), distribution[likely].tolist(), strict=True)))

    return row


def leaving_some(distribution: Mapping[int, float]) -> dict[int, float]:
    """Scale a row so that tokens that it does not list are rare, never impossible."""
    scale = min(1.0, (1 - MIN_REST) / math.fsum(distribution.values()))
    return {token: p * scale for token, p in distribution.items()}


def distributions_of_cells(row: Row, length: int, smallest: float) -> list[JointDistribution]:
    """The distributions of the next 1, 2, … `length` tokens, each over cells that share out all texts.

    A cell is a text, or a text whose last place is `OTHER`. One that is less likely than `smallest` never stands
    alone, and one that cannot have two such parts is not split further.
    """
    distributions: list[JointDistribution] = [{(): 1.0}]
    for _ in range(length):
        longer: JointDistribution = {}
        for text, chance in distributions[-1].items():
            if text[-1:] == (OTHER,) or chance < 2 * smallest:
                longer[text] = chance
                continue
            each = row(text)
            listed = {token: chance * p for token, p in each.items() if chance * p >= smallest}
            longer |= {(*text, token): p for token, p in listed.items()}
            if len(listed) < len(each) or math.fsum(each.values()) < 1.0 - SUM_TOLERANCE:
                longer[(*text, OTHER)] = max(0.0, chance - math.fsum(listed.values()))
        distributions.append(longer)
    return distributions[1:]


def counts_in(distribution: JointDistribution, counts: Counts) -> Counter[tuple[int, ...]]:
    """How often each cell of `distribution` was drawn. A text that the distribution excludes counts as a cell that it
    lacks.
    """
    inner = {cell[:i] for cell in distribution for i in range(len(cell))}
    drawn: Counter[tuple[int, ...]] = Counter()
    for text, count in counts.items():
        drawn[cell_of(text, distribution, inner)] += count
    return drawn


def cell_of(text: tuple[int, ...], distribution: JointDistribution, inner: set[tuple[int, ...]]) -> tuple[int, ...]:
    """`inner` are the beginnings of cells."""
    end = 0
    while text[:end] not in distribution and text[:end] in inner:
        end += 1
    return text[:end] if text[:end] in distribution else (*text[: end - 1], OTHER)


def g_test_after_first(counts: Counts, first: JointDistribution, distribution: JointDistribution) -> GTest:
    """The G-test of `distribution` less that of `first`: of the texts' next tokens, given their first ones.

    The cells of both are fixed before anything is drawn, and need not be large. Given its beginning, the next token
    of a text is a chain of yes and no, each a binomial variable x of n with a known chance p, and G is the sum of
    their d = 2 n KL(x / n || p). E e^(td) <= (1 - 2t)^(-c / 2) for every n, p and t in (0, 1/2), c = 1.4 (2 ln 2 for
    one fair coin; computed, see the test of this bound), so that the sum has a tail as in `false_alarm` with w = c df.
    """
    draws = sum(counts.values())
    statistic, degrees = 0.0, len(distribution) - len(first)
    for sign, one in ((-1, first), (1, distribution)):
        seen = counts_in(one, counts)
        if any(one.get(cell, 0.0) <= 0.0 for cell in seen):
            return GTest(math.inf, 1, 0.0)
        statistic += sign * draws * divergence([(p, seen[cell] / draws) for cell, p in one.items() if p > 0.0])
    w = DEGREE * degrees
    if degrees < 1 or statistic <= w:
        return GTest(max(0.0, statistic), max(0, degrees), 1.0)
    return GTest(statistic, degrees, math.exp(max(-700.0, (w * (1 + math.log(statistic / w)) - statistic) / 2)))


def limit_after_first(degrees: int, alarm: float) -> float:
    """The G beyond which the tail lies below `alarm`."""
    return beyond(DEGREE * degrees, -math.log(alarm))


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
            if texts * surprise(share, p) > surest:
                best, surest = Witness(text, cell[-1], p, share, texts), texts * surprise(share, p)
    return best


def surprise(share: float, p: float) -> float:
    """2 KL of two coins."""
    if share == p:
        return 0.0
    return math.inf if p in (0.0, 1.0) else divergence([(p, share), (1 - p, 1 - share)])
