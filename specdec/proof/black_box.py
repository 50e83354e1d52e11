"""Test from texts whether a decoder is lossless: divide all possible texts into cells, and count the texts in each.

A row is the target's distribution of the next token after a text. Each likely text has its own cell, and unlikely texts
share cells, so that there are few cells. The first token is never drafted, so the test is conditional on it.
"""

import functools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..models.base import common_prefix, LanguageModel
from ..sampling import probabilities
from ..types import SamplingParams
from .enumeration import JointDistribution, Tokens
from .goodness_of_fit import chernoff, Counts, divergence, g_test, GTest, solve_limit
from .toys import ByPrefix

RowAfter = Callable[[Tokens], Mapping[int, float]]  # text -> probabilities of the likely next tokens
SMALL_VOCABULARY = 64  # rows over a larger vocabulary list only tokens with at least MIN_PROBABILITY
MIN_PROBABILITY = 1e-6
MIN_REST = 1e-6  # a row that does not list every token leaves at least this probability to the others
OTHER = -1  # as the last token of a cell: any token without a cell of its own, followed by anything
MAX_UNLISTED = 1e-9
C_PER_DEGREE = 1.4  # the constant c of `g_test_after_first`, for each degree of freedom


class CachedRows(ByPrefix):
    """Caches the logits after each text as float64."""

    def __init__(self, model: LanguageModel[Any], capacity: int) -> None:
        self.vocabulary, self.context = model.vocabulary, model.context
        self._model, self._cache = model, model.new_cache(capacity)
        self._cached: Tokens = ()
        self._rows: dict[Tokens, Tensor] = {}

    @torch.inference_mode()
    def logits(self, prefix: Tokens) -> Tensor:
        if prefix not in self._rows:
            same = common_prefix(self._cached, prefix[:-1])
            self._cache.keep(same)
            self._rows[prefix] = self._model.forward(prefix[same:], self._cache)[-1].double()
            self._cached = prefix
        return self._rows[prefix]


def model_row(model: LanguageModel[Any], prompt: Tokens, params: SamplingParams) -> RowAfter:
    """Make a function that computes rows of `model` after `prompt`, and caches them."""
    rows = CachedRows(model, len(prompt) + params.max_tokens + 1)

    @functools.cache
    def row(text: Tokens) -> dict[int, float]:
        distribution = probabilities(rows.logits(prompt + text)[None], params)[0]
        if len(distribution) <= SMALL_VOCABULARY:
            return dict(enumerate(distribution.tolist()))
        likely = (distribution >= MIN_PROBABILITY).nonzero().flatten()
        return reserve_rest(dict(zip(likely.tolist(), distribution[likely].tolist(), strict=True)))

    return row


def reserve_rest(distribution: Mapping[int, float]) -> dict[int, float]:
    """Scale a row so that a probability of at least MIN_REST remains for the tokens that it does not list."""
    scale = min(1.0, (1 - MIN_REST) / math.fsum(distribution.values()))
    return {token: p * scale for token, p in distribution.items()}


def distributions_of_cells(row: RowAfter, length: int, smallest: float) -> list[JointDistribution]:
    """Return the distributions of the next 1, 2, … `length` tokens, each over cells.

    A cell holds all texts that begin with its tokens. `OTHER` stands for all tokens without cells of their own. A cell
    without `OTHER` has at least the probability `smallest`. A cell with less than 2 · `smallest` is not split.
    """
    distributions: list[JointDistribution] = [{(): 1.0}]
    for _ in range(length):
        longer: JointDistribution = {}
        for text, chance in distributions[-1].items():
            if text[-1:] == (OTHER,) or chance < 2 * smallest:
                longer[text] = chance
                continue
            following = row(text)
            listed = {token: chance * p for token, p in following.items() if chance * p >= smallest}
            longer |= {(*text, token): p for token, p in listed.items()}
            if len(listed) < len(following) or math.fsum(following.values()) < 1.0 - MAX_UNLISTED:
                longer[(*text, OTHER)] = max(0.0, chance - math.fsum(listed.values()))
        distributions.append(longer)
    return distributions[1:]


def counts_in(distribution: JointDistribution, counts: Counts) -> Counter[Tokens]:
    """Count the texts in each cell. Texts that `distribution` excludes are counted under keys that it does not have."""
    prefixes = {cell[:i] for cell in distribution for i in range(len(cell))}
    totals: Counter[Tokens] = Counter()
    for text, count in counts.items():
        beginnings = (text[:end] for end in range(len(text) + 1))
        cell = next((beginning for beginning in beginnings if beginning not in prefixes), text)
        if cell not in distribution and cell not in prefixes:
            cell = (*cell[:-1], OTHER)
        totals[cell] += count
    return totals


def g_test_after_first(counts: Counts, first: JointDistribution, distribution: JointDistribution) -> GTest:
    """Test the tokens after the first one, given the first: the G of `distribution` minus the G of `first`.

    The cells of both distributions are chosen before anything is drawn, and can be small. After a prefix, questions
    ("is it this token?") decide the next token. If a question is asked n times, the number x of yes is binomial, with a
    known probability p. G is the sum of d = 2 n KL(x / n || p) over all questions, as many as degrees of freedom. Their
    constant for `chernoff` is c = 1.4: a test computes this for many n, p and t.
    """
    draws = sum(counts.values())
    statistic, degrees = 0.0, len(distribution) - len(first)
    for sign, exact in ((-1, first), (1, distribution)):
        drawn = counts_in(exact, counts)
        if any(exact.get(cell, 0.0) <= 0.0 for cell in drawn):
            return GTest(math.inf, 1, 0.0)
        statistic += sign * draws * divergence([(p, drawn[cell] / draws) for cell, p in exact.items() if p > 0.0])
    log_tail = max(-700.0, chernoff(statistic, C_PER_DEGREE * degrees)) if degrees > 0 else 0.0
    return GTest(max(0.0, statistic), max(0, degrees), math.exp(log_tail))


def noticed_bias(degrees: int, draws: int, alarm: float) -> float:
    """Return the total variation beyond which `g_test_after_first` is red in 999 of 1,000 samples; at most 1.

    It holds for any decoder whose first token follows the target. Let v be the total variation of the shares after each
    first token, averaged over the texts. By Pinsker and Jensen, G >= 4 n v². Let TV be the decoder's, and A the cells
    that it draws too often. v is at least the mean over n texts of (1 if the text is in A, else 0), less the target's
    probability of A after its first token. The expectation of this mean is TV. By Hoeffding's lemma for the first token
    and again for the rest, P(v <= TV - e) <= exp(-n e²).
    """
    if degrees < 1:
        return 1.0
    red = solve_limit(C_PER_DEGREE * degrees, -math.log(alarm))  # the G whose tail is the chance of a false alarm
    return min(1.0, math.sqrt(red / (4 * draws)) + math.sqrt(math.log(1_000) / draws))


def against_distributions(counts: Counts, distributions: Sequence[JointDistribution]) -> list[GTest]:
    """Test the distribution of the first token, then those of the next 1, 2, … tokens given the first token."""
    first, *longer = distributions
    later = (g_test_after_first(counts, first, distribution) for distribution in longer)
    return [g_test(counts_in(first, counts), first), *later]


class Witness(NamedTuple):
    """Holds the `expected` probability of `token` after `before`, and its share `seen` in the `texts` that begin so."""

    before: Tokens
    token: int
    expected: float
    seen: float
    texts: int


def witness(counts: Counts, distributions: Sequence[JointDistribution]) -> Witness | None:
    """Find the token whose share of the texts differs most from its probability; None without texts or tokens."""
    best, most_surprise = None, -1.0
    shorter: list[JointDistribution] = [{(): 1.0}, *distributions]
    for length, (before, distribution) in enumerate(zip(shorter, distributions, strict=False), start=1):
        prefix_counts, cell_counts = counts_in(before, counts), counts_in(distribution, counts)
        for cell in distribution.keys() | cell_counts.keys():
            text, texts = cell[:-1], prefix_counts[cell[:-1]]
            if len(cell) < length or cell[-1] == OTHER or text not in before or texts == 0:
                continue
            p, share = min(1.0, distribution.get(cell, 0.0) / before[text]), cell_counts[cell] / texts
            certain = 0.0 if share == p else math.inf
            surprise = certain if p in (0.0, 1.0) else texts * divergence([(p, share), (1 - p, 1 - share)])
            if surprise > most_surprise:
                best, most_surprise = Witness(text, cell[-1], p, share, texts), surprise
    return best
