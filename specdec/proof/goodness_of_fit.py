"""Test whether drawn texts follow a known distribution, by a G-test whose tail bound holds for any number of draws.

G = 2 Σ x ln(x / μ) compares the count x of each cell with its expected count μ. A cell is a text, or all rare texts
together. Usually G is taken to have a chi-square distribution. This approximation needs large μ, and says little about
chances as small as one in a billion. Therefore `false_alarm` bounds the tail by Chernoff's inequality.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .enumeration import JointDistribution, total_variation

Counts = Mapping[tuple[int, ...], int]  # how often each text was drawn

FALSE_ALARM = 1e-9  # a smaller `tail` is shown red: exact sampling gives it less than once in a billion samples
SMALLEST = 5.0  # smallest expected count of a cell; rarer texts share one cell
MOST_DRAWS = 1e12  # a difference that shows only after more draws is due to rounding


class GTest(NamedTuple):
    """G, its degrees of freedom, and a bound on the chance that exact draws have a G at least as large."""

    statistic: float
    degrees: int
    tail: float


def g_test(counts: Counts, exact: JointDistribution) -> GTest:
    """Test `counts` against `exact`. Texts that are expected fewer than `SMALLEST` times are pooled.

    G is infinite if a text was drawn that the distribution excludes.
    """
    draws = sum(counts.values())
    if any(exact.get(text, 0.0) <= 0.0 for text in counts):
        return GTest(math.inf, 1, 0.0)
    cells = pooled([(chance, counts.get(text, 0) / draws) for text, chance in exact.items()], draws)
    statistic = draws * divergence(cells)
    return GTest(statistic, len(cells) - 1, false_alarm(statistic, len(cells), draws))


def pooled(cells: list[tuple[float, float]], draws: float) -> list[tuple[float, float]]:
    """Join all cells (p, share) that are expected fewer than `SMALLEST` times into one."""
    large = [cell for cell in cells if cell[0] * draws >= SMALLEST]
    small = [cell for cell in cells if cell[0] * draws < SMALLEST]
    rest = math.fsum(p for p, _ in small), math.fsum(share for _, share in small)
    return [*large, rest] if rest[0] > 0.0 else large


def divergence(cells: Sequence[tuple[float, float]]) -> float:
    """Return 2 KL(share || p) of cells (p, share): how much G grows with each draw."""
    return 2 * math.fsum((share * math.log(share / p) if share > 0.0 else 0.0) - share + p for p, share in cells)


def growth_of(cells: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the mean growth of G with each draw from q, and the variance of ln(q / p). `cells` are pairs (p, q)."""
    growth = divergence(cells)
    squares = math.fsum(q * math.log(q / p) ** 2 for p, q in cells if q > 0.0)
    return growth, max(0.0, squares - growth * growth / 4)


def false_alarm(statistic: float, cells: int, draws: float) -> float:
    """Bound P(G >= statistic) for `draws` draws from any distribution of `cells` cells, one of which may have μ < 5.

    For a cell with count x, let d = 2 (x ln(x / μ) - x + μ). The counts of n draws are independent Poisson variables
    under the condition that they sum to n, so P(G >= g) <= P(Σ d >= g) / P(Poisson(n) = n). Stirling:
    1 / P(Poisson(n) = n) <= √(2πn) exp(1 / 12n). Chernoff: P(Σ d >= g) <= exp(-tg) Π E exp(td) for t in (0, 1/2).
    A test checks numerically that E exp(td) <= (1 - 2t)^(-c / 2), where c is 1.08 if μ >= 5, and otherwise 1.17. (For
    the square of a normal variable, c is 1.) With w = Σ c the best t is (1 - w / g) / 2.
    """
    w = weight(cells)
    if cells < 2 or statistic <= w:
        return 1.0
    exponent = (w * (1 + math.log(statistic / w)) - statistic) / 2
    return min(1.0, math.exp(exponent + conditioning(draws)))


def weight(cells: int) -> float:
    """Return w = Σ c of `false_alarm`, for `cells` cells, one of which may have μ < 5."""
    return 1.08 * cells + 0.09


def conditioning(draws: float) -> float:
    """Return an upper bound of ln(1 / P(Poisson(n) = n))."""
    return 0.5 * math.log(2 * math.pi * draws) + 1 / (12 * draws)


def limit(cells: int, draws: float, alarm: float = FALSE_ALARM) -> float:
    """Return the G at which `false_alarm` equals `alarm`."""
    return solve_limit(weight(cells), conditioning(draws) - math.log(alarm))


def solve_limit(w: float, surprise: float) -> float:
    """Return the G for which (G - w (1 + ln(G / w))) / 2 is `surprise`, by Newton's method."""
    wanted = w + 2 * surprise
    g = wanted + w
    while abs(step := (g - w * math.log(g / w) - wanted) / (1 - w / g)) > 1e-9 * g:
        g -= step
    return g


def distances(distributions: Sequence[JointDistribution], counts: Counts) -> list[list[float]]:
    """Compare the drawn texts with the exact distributions of the next 1, 2, … tokens.

    Returns for each length: total variation, a limit that it rarely exceeds in plain decoding (4 standard deviations
    above the mean), G, its degrees of freedom, its tail, and the number of draws whose exact probability is 0.
    """
    results = []
    for length, exact in enumerate(distributions, start=1):
        drawn: Counter[tuple[int, ...]] = Counter()
        for text, count in counts.items():
            drawn[text[:length]] += count
        draws = drawn.total()
        mean, deviation = plain_distance(exact, draws)
        tv = total_variation({text: count / draws for text, count in drawn.items()}, exact)
        ruled_out = sum(count for text, count in drawn.items() if text not in exact)
        results.append([tv, mean + 4 * deviation, *g_test(drawn, exact), ruled_out])
    return results


def is_red(distance: Sequence[float | None]) -> bool:
    """Return whether an entry of `distances` has a tail below FALSE_ALARM, which plain decoding almost never gives."""
    return distance[4] is not None and distance[4] < FALSE_ALARM


def plain_distance(exact: JointDistribution, draws: int) -> tuple[float, float]:
    """Return mean and standard deviation of the total variation between `exact` and `draws` draws from it.

    The mean is exact: a cell has De Moivre's mean absolute deviation, 2 m C(n, m) p^m (1 - p)^(n - m + 1) with
    m = ⌊np⌋ + 1. The deviation treats cells as independent, so it is too small if there are few cells.
    """
    mean = variance = 0.0
    for p in exact.values():
        if not 0.0 < p < 1.0:
            continue
        m = math.floor(draws * p) + 1
        ways = math.lgamma(draws + 1) - math.lgamma(m + 1) - math.lgamma(draws - m + 1)
        cell = 2 * m * math.exp(ways + m * math.log(p) + (draws - m + 1) * math.log1p(-p)) / draws
        mean += cell / 2
        variance += max(0.0, p * (1 - p) / draws - cell * cell) / 4
    return mean, math.sqrt(variance)


def draws_needed(wrong: JointDistribution, right: JointDistribution) -> int | None:
    """Estimate how many draws from `wrong` turn the G-test red in 999 of 1,000 samples; None if no number does.

    G has f degrees of freedom. Over n draws, its mean is about f + n δ with δ = 2 KL(wrong || right), and its variance
    is about 2 f + 4 n Var ln(wrong / right). The result is the smallest n at which the mean, minus three standard
    deviations, exceeds `limit`. A single draw of a text that the target excludes also turns the test red.
    """
    if any(math.isnan(chance) for chance in wrong.values()):
        return None
    impossible = math.fsum(chance for text, chance in wrong.items() if text not in right)
    max_draws = math.log(1_000) / impossible if impossible > 0 else MOST_DRAWS
    both = [(p, wrong.get(text, 0.0)) for text, p in right.items() if p > 0.0]
    n = 10.0
    while n < max_draws:
        cells = pooled(both, n)
        (growth, variance), degrees = growth_of(cells), len(cells) - 1
        least = degrees + n * growth - 3 * math.sqrt(2 * degrees + 4 * n * variance)
        if degrees > 0 and least > limit(len(cells), n):
            return math.ceil(n)
        n *= 1.02
    return math.ceil(max_draws) if impossible > 0 else None
