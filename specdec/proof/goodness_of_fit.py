"""Test whether drawn texts follow a known distribution, by a G-test whose tail bound holds for any number of draws.

A cell is a text, or all rare texts together. G = 2 Σ x ln(x / μ) compares each cell's count x with its expected count
μ. Its chi-square approximation is too poor for chances of one in a billion, so `false_alarm` bounds the tail.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .enumeration import JointDistribution, Tokens, total_variation

Counts = Mapping[Tokens, int]  # how often each text was drawn
FALSE_ALARM = 1e-9  # a test with a smaller `tail` is red
MIN_EXPECTED = 5.0  # texts with a smaller expected count share one cell
MOST_DRAWS = 1e12  # a difference that shows only after more draws is due to rounding


class GTest(NamedTuple):
    """G, its degrees of freedom, and a bound on the chance of a G this large if the draws follow `exact`."""

    statistic: float
    degrees: int
    tail: float


def g_test(counts: Counts, exact: JointDistribution) -> GTest:
    """Test `counts` against `exact`. G is infinite if a text was drawn whose exact probability is 0."""
    draws = sum(counts.values())
    if any(exact.get(text, 0.0) <= 0.0 for text in counts):
        return GTest(math.inf, 1, 0.0)
    cells = pooled([(chance, counts.get(text, 0) / draws) for text, chance in exact.items()], draws)
    statistic = draws * divergence(cells)
    return GTest(statistic, len(cells) - 1, false_alarm(statistic, len(cells), draws))


def pooled(cells: list[tuple[float, float]], draws: float) -> list[tuple[float, float]]:
    """Join those cells (p, share of the draws) whose expected count p · `draws` is below `MIN_EXPECTED`."""
    large = [cell for cell in cells if cell[0] * draws >= MIN_EXPECTED]
    small = [cell for cell in cells if cell[0] * draws < MIN_EXPECTED]
    rest = math.fsum(p for p, _ in small), math.fsum(share for _, share in small)
    return [*large, rest] if rest[0] > 0.0 else large


def divergence(cells: Sequence[tuple[float, float]]) -> float:
    """Return 2 KL(share || p) of cells (p, share), which is G divided by the number of draws."""
    return 2 * math.fsum((share * math.log(share / p) if share > 0.0 else 0.0) - share + p for p, share in cells)


def false_alarm(statistic: float, cells: int, draws: float) -> float:
    """Bound P(G >= statistic) for `draws` draws from any distribution over `cells` cells. One cell may have μ < 5.

    G is Σ d, where d = 2 (x ln(x / μ) - x + μ) for each cell. The counts x of n draws are distributed like independent
    Poisson variables, given that these sum to n. Therefore P(G >= g) <= P(Σ d >= g) / P(Poisson(n) = n), where the x on
    the right are independent. By Stirling, 1 / P(Poisson(n) = n) <= √(2πn) exp(1 / 12n). See `chernoff` for
    P(Σ d >= g). Its constant c is 1.08 if μ >= 5, and otherwise 1.17.
    """
    return min(1.0, math.exp(chernoff(statistic, weight(cells)) + conditioning(draws))) if cells > 1 else 1.0


def chernoff(g: float, w: float) -> float:
    """Return an upper bound of ln P(Σ d >= g) for terms d, each with a constant c, where w = Σ c.

    A test checks that E exp(td) <= (1 - 2t)^(-c / 2) for 0 < t < 1/2. By Chernoff, P(Σ d >= g) is at most exp(-tg)
    times the product of all E exp(td). For g > w, the best t is (1 - w / g) / 2.
    """
    return (w * (1 + math.log(g / w)) - g) / 2 if g > w else 0.0


def weight(cells: int) -> float:
    """Return w = Σ c of `false_alarm`, where one cell has μ < 5."""
    return 1.08 * cells + 0.09


def conditioning(draws: float) -> float:
    """Return an upper bound of ln(1 / P(Poisson(n) = n)) for n = `draws`."""
    return 0.5 * math.log(2 * math.pi * draws) + 1 / (12 * draws)


def limit(cells: int, draws: float) -> float:
    return solve_limit(weight(cells), conditioning(draws) - math.log(FALSE_ALARM))


def solve_limit(w: float, surprise: float) -> float:
    """Return the G > w for which `chernoff` is -`surprise`, by Newton's method."""
    wanted = w + 2 * surprise
    g = wanted + w
    while abs(step := (g - w * math.log(g / w) - wanted) / (1 - w / g)) > 1e-9 * g:
        g -= step
    return g


def distances(distributions: Sequence[JointDistribution], counts: Counts) -> list[list[float]]:
    """Compare the drawn texts with the exact distributions of their first 1, 2, … tokens.

    Each entry holds the total variation, its mean plus 4 standard deviations in plain decoding, G, its degrees of
    freedom, its tail, and the number of draws of texts with probability 0.
    """
    results = []
    for length, exact in enumerate(distributions, start=1):
        drawn: Counter[Tokens] = Counter()
        for text, count in counts.items():
            drawn[text[:length]] += count
        draws = drawn.total()
        mean, deviation = plain_distance(exact, draws)
        tv = total_variation({text: count / draws for text, count in drawn.items()}, exact)
        ruled_out = sum(count for text, count in drawn.items() if text not in exact)
        results.append([tv, mean + 4 * deviation, *g_test(drawn, exact), ruled_out])
    return results


def is_red(distance: Sequence[float | None]) -> bool:
    """Return whether an entry of `distances` has a tail below FALSE_ALARM."""
    return distance[4] is not None and distance[4] < FALSE_ALARM


def plain_distance(exact: JointDistribution, draws: int) -> tuple[float, float]:
    """Return mean and standard deviation of the total variation between `exact` and `draws` draws from it.

    The mean is exact. By De Moivre, the count of a text in n draws has the mean absolute deviation
    2 m C(n, m) p^m (1 - p)^(n - m + 1), with m = ⌊np⌋ + 1. The standard deviation is too small if texts are few.
    """
    mean = variance = 0.0
    for p in exact.values():
        if not 0.0 < p < 1.0:
            continue
        m = math.floor(draws * p) + 1
        log_ways = math.lgamma(draws + 1) - math.lgamma(m + 1) - math.lgamma(draws - m + 1)
        mean_deviation = 2 * m * math.exp(log_ways + m * math.log(p) + (draws - m + 1) * math.log1p(-p)) / draws
        mean += mean_deviation / 2
        variance += max(0.0, p * (1 - p) / draws - mean_deviation * mean_deviation) / 4
    return mean, math.sqrt(variance)


def draws_needed(wrong: JointDistribution, right: JointDistribution) -> int | None:
    """Estimate how many draws from `wrong` turn the G-test red in 999 of 1,000 samples; None if unrealistically many.

    G has f degrees of freedom. Over n draws, its mean is about f + n δ with δ = 2 KL(wrong || right), and its variance
    is about 2 f + 4 n Var ln(wrong / right). Returns the first n at which the mean, minus three standard
    deviations, exceeds `limit`. A text that `right` excludes turns the test red at its first draw.
    """
    if any(math.isnan(chance) for chance in wrong.values()):
        return None
    impossible = math.fsum(chance for text, chance in wrong.items() if text not in right)
    max_draws = math.log(1_000) / impossible if impossible > 0 else MOST_DRAWS
    cells_of_texts = [(p, wrong.get(text, 0.0)) for text, p in right.items() if p > 0.0]
    n = 10.0
    while n < max_draws:
        cells = pooled(cells_of_texts, n)
        growth, degrees = divergence(cells), len(cells) - 1
        squares = math.fsum(share * math.log(share / p) ** 2 for p, share in cells if share > 0.0)
        variance = max(0.0, squares - growth * growth / 4)
        least = degrees + n * growth - 3 * math.sqrt(2 * degrees + 4 * n * variance)
        if degrees > 0 and least > limit(len(cells), n):
            return math.ceil(n)
        n *= 1.02
    return math.ceil(max_draws) if impossible > 0 else None
