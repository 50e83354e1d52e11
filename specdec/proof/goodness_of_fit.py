"""Do drawn texts follow a known distribution? The G-test, with a tail that holds for any distribution and any number of
draws.

G = 2 Σ x ln(x / e) compares the count x of each cell with its expectation e = n p. The usual tail, that of a
chi-square distribution, is an approximation for large e. At six sigma it fails where a distribution is peaked: of an
outcome expected 0.01 times in 20,000 draws, one occurrence already looks impossible, and one sample in a hundred has
it. So the tail here is a Chernoff bound, which `false_alarm` derives.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .enumeration import JointDistribution, total_variation

Counts = Mapping[tuple[int, ...], int]  # how often each text was drawn

FALSE_ALARM = 1e-9  # tail below which a sample is red: plain decoding is red less than once in a billion samples
SMALLEST = 5.0  # least expected count of a cell; rarer texts share one cell
MOST_DRAWS = 1e12  # an error that takes more draws to show is rounding


class GTest(NamedTuple):
    """G, its degrees of freedom, and a bound on the chance that draws from the distribution itself give no less."""

    statistic: float
    degrees: int
    tail: float


def g_test(counts: Counts, exact: JointDistribution) -> GTest:
    """Texts expected fewer than five times are pooled. Infinite where a text was drawn that the distribution
    excludes.
    """
    draws = sum(counts.values())
    if any(exact.get(text, 0.0) <= 0.0 for text in counts):
        return GTest(math.inf, 1, 0.0)
    cells = pooled([(chance, counts.get(text, 0) / draws) for text, chance in exact.items()], draws)
    statistic = draws * divergence(cells)
    return GTest(statistic, len(cells) - 1, false_alarm(statistic, len(cells), draws))


def pooled(cells: list[tuple[float, float]], draws: float) -> list[tuple[float, float]]:
    """Cells (p, share) whose p is expected fewer than `SMALLEST` times become one."""
    large = [cell for cell in cells if cell[0] * draws >= SMALLEST]
    small = [cell for cell in cells if cell[0] * draws < SMALLEST]
    rest = math.fsum(p for p, _ in small), math.fsum(share for _, share in small)
    return [*large, rest] if rest[0] > 0.0 else large


def divergence(cells: Sequence[tuple[float, float]]) -> float:
    """2 KL(share || p) of cells (p, share): how much G grows with a draw."""
    return 2 * math.fsum((share * math.log(share / p) if share > 0.0 else 0.0) - share + p for p, share in cells)


def growth_of(cells: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """How much G grows with a draw from cells (p, q) that follow q, and a quarter of the variance of that."""
    growth = divergence(cells)
    squares = math.fsum(q * math.log(q / p) ** 2 for p, q in cells if q > 0.0)
    return growth, max(0.0, squares - growth * growth / 4)


def false_alarm(statistic: float, cells: int, draws: float) -> float:
    """A bound on P(G >= statistic) for `draws` draws from any distribution of `cells` cells.

    Counts of n draws are independent Poisson variables under the condition that they sum to n, so that
    P(G >= g) <= P(Σ d >= g) / P(Poisson(n) = n), d = 2 (x ln(x / e) - x + e) for each cell. Stirling:
    1 / P(Poisson(n) = n) <= √(2πn) e^(1 / 12n). Chernoff: P(Σ d >= g) <= e^(-tg) Π E e^(td) for each t in (0, 1/2).
    And E e^(td) <= (1 - 2t)^(-c / 2), c = 1.08 for e >= 5 and 1.17 for any e (1 for a square of a Gaussian; both
    computed, see the test of this bound). With w = Σ c the best t is (1 - w / g) / 2.
    """
    w = weight(cells)
    if cells < 2 or statistic <= w:
        return 1.0
    exponent = (w * (1 + math.log(statistic / w)) - statistic) / 2
    return min(1.0, math.exp(exponent + conditioning(draws)))


def weight(cells: int) -> float:
    """Σ c of `false_alarm`; one cell may be small."""
    return 1.08 * cells + 0.09


def conditioning(draws: float) -> float:
    """ln of 1 / P(Poisson(n) = n), from above."""
    return 0.5 * math.log(2 * math.pi * draws) + 1 / (12 * draws)


def limit(cells: int, draws: float, alarm: float = FALSE_ALARM) -> float:
    """The G beyond which `false_alarm` lies below `alarm`."""
    return beyond(weight(cells), conditioning(draws) - math.log(alarm))


def beyond(w: float, surprise: float) -> float:
    """The G for which (G - w (1 + ln(G / w))) / 2 is `surprise`, by Newton's method."""
    wanted = w + 2 * surprise
    g = wanted + w
    while abs(step := (g - w * math.log(g / w) - wanted) / (1 - w / g)) > 1e-9 * g:
        g -= step
    return g


def distances(distributions: Sequence[JointDistribution], counts: Counts) -> list[list[float]]:
    """Compare the drawn texts with the exact distributions of the next 1, 2, … tokens.

    Returns for each length: total variation, the bound that plain decoding stays below (mean + 4 standard deviations),
    G, its degrees of freedom, its tail, and the number of draws that the target rules out.
    """
    results = []
    for length, exact in enumerate(distributions, start=1):
        seen: Counter[tuple[int, ...]] = Counter()
        for text, count in counts.items():
            seen[text[:length]] += count
        draws = seen.total()
        mean, deviation = plain_distance(exact, draws)
        tv = total_variation({text: count / draws for text, count in seen.items()}, exact)
        ruled_out = sum(count for text, count in seen.items() if text not in exact)
        results.append([tv, mean + 4 * deviation, *g_test(seen, exact), ruled_out])
    return results


def is_red(distance: Sequence[float | None]) -> bool:
    """Whether one of `distances` is what plain decoding would show less than once in a billion samples."""
    return distance[4] is not None and distance[4] < FALSE_ALARM


def plain_distance(exact: JointDistribution, draws: int) -> tuple[float, float]:
    """Mean and standard deviation of the total variation that draws from `exact` itself would show.

    The mean is exact: a cell's is De Moivre's mean absolute deviation, 2 m C(n, m) p^m (1 - p)^(n - m + 1) with
    m = ⌊np⌋ + 1. The deviation takes cells as independent, which makes it too small where they are few.
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
    """About how many draws from `wrong` turn the G-test red in 999 of 1,000 samples; None where no number does.

    Over n draws, with the cells pooled as there, G is about df + n δ, δ = 2 KL(wrong || right), with variance
    2 df + 4 n Var ln(wrong / right). So it takes the least n for which three deviations below that mean lie above the
    limit. A text that the target excludes shows at once.
    """
    if any(math.isnan(chance) for chance in wrong.values()):
        return None
    impossible = math.fsum(chance for text, chance in wrong.items() if text not in right)
    most = math.log(1_000) / impossible if impossible > 0 else MOST_DRAWS
    both = [(p, wrong.get(text, 0.0)) for text, p in right.items() if p > 0.0]
    n = 10.0
    while n < most:
        cells = pooled(both, n)
        (growth, variance), degrees = growth_of(cells), len(cells) - 1
        least = degrees + n * growth - 3 * math.sqrt(2 * degrees + 4 * n * variance)
        if degrees > 0 and least > limit(len(cells), n):
            return math.ceil(n)
        n *= 1.02
    return math.ceil(most) if impossible > 0 else None
