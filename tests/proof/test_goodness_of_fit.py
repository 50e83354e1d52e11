"""Red less than once in a billion samples, for every distribution: the bound, its ingredients, and what it costs in
power.
"""

import math
import random
from collections import Counter

import numpy as np
import pytest
import torch

from specdec.proof.enumeration import JointDistribution, total_variation
from specdec.proof.goodness_of_fit import (
    distances,
    draws_needed,
    FALSE_ALARM,
    false_alarm,
    g_test,
    is_red,
    limit,
    plain_distance,
    weight,
)


def distribution_of(*chances: float) -> JointDistribution:
    return {(i,): chance for i, chance in enumerate(chances)}


@pytest.mark.parametrize(("c", "least"), [(1.17, 1e-4), (1.08, 5.0)])
def test_a_cells_moments_lie_below_those_of_a_squared_gaussian_to_the_power_c(c: float, least: float) -> None:
    """E e^(td) <= (1 - 2t)^(-c / 2), summed over a Poisson variable, on a grid of t and of the expectation e."""
    for t in (0.001, 0.01, 0.05, 0.1, 0.2, 0.28, 0.32, 0.4, 0.45, 0.49, 0.499):
        for e in np.geomspace(least, 2e4, 60):
            x = np.arange(int(e + 40 + 30 * math.sqrt(e / (1 - 2 * t))), dtype=np.float64)
            d = 2 * (x * np.log(np.maximum(x, 1.0) / e) - x + e)
            log_poisson = -e + x * math.log(e) - torch.lgamma(torch.from_numpy(x + 1.0)).numpy()
            assert np.log(np.exp(log_poisson + t * d).sum()) <= -c / 2 * math.log(1 - 2 * t), (t, e)


@pytest.mark.parametrize("draws", [100, 20_000])
@pytest.mark.parametrize("expected", [1e-4, 0.01, 0.02, 0.1, 0.5, 1.0, 3.0, 5.0, 10.0, 40.0])
def test_a_peaked_distribution_is_red_less_than_once_in_a_billion(draws: int, expected: float) -> None:
    """(1 - ε, ε) has one random number, its count x: the chance of red is a sum, exact."""
    exact, chance = distribution_of(1 - expected / draws, expected / draws), 0.0
    for x in range(min(draws, 400) + 1):
        if g_test({(0,): draws - x, (1,): x}, exact).tail < FALSE_ALARM:
            ways = math.lgamma(draws + 1) - math.lgamma(x + 1) - math.lgamma(draws - x + 1)
            chance += math.exp(ways + x * math.log(exact[1,]) + (draws - x) * math.log1p(-exact[1,]))
    assert chance < FALSE_ALARM


def test_the_limit_is_where_the_bound_is_one_in_a_billion() -> None:
    for cells in (2, 8, 125, 8_000):
        for draws in (10, 20_000, 1e12):
            assert false_alarm(limit(cells, draws), cells, draws) == pytest.approx(FALSE_ALARM, rel=1e-4)
    assert false_alarm(0.0, 125, 100) == false_alarm(weight(125), 125, 100) == false_alarm(1e3, 1, 100) == 1.0
    assert limit(125, 20_000) < 1.25 * 243  # 243: six sigma of the chi-square distribution itself


def test_what_the_distribution_excludes_is_red_at_once() -> None:
    assert g_test({(0,): 99, (7,): 1}, distribution_of(0.5, 0.5)).tail < FALSE_ALARM
    assert g_test({(0,): 99, (1,): 1}, distribution_of(1.0, 0.0)).tail < FALSE_ALARM
    assert not g_test({(0,): 100}, distribution_of(1.0)).tail < FALSE_ALARM
    assert g_test({(0,): 10}, distribution_of(0.9, 0.1)).degrees == 1  # a small cell counts, even without a draw


def test_as_many_draws_as_it_says_make_the_test_red() -> None:
    dice, cells = random.Random(1), 16
    right = distribution_of(*[1 / cells] * cells)
    wrong = distribution_of(*[(1 + (0.2 if i % 2 else -0.2)) / cells for i in range(cells)])
    needed = draws_needed(wrong, right)
    assert needed is not None
    statistics = []
    for _ in range(60):
        counts: Counter[tuple[int, ...]] = Counter(dice.choices(list(wrong), list(wrong.values()), k=needed))
        statistics.append(g_test(counts, right).statistic)
    assert min(statistics) > limit(cells, needed) * 0.95  # 999 of 1,000 lie above the limit itself
    assert sum(statistics) / 60 == pytest.approx(cells - 1 + needed * 0.0403, rel=0.05)
    assert draws_needed(right, right) is None and draws_needed({(0,): math.nan}, right) is None
    assert draws_needed({(99,): 0.5, (0,): 0.5}, right) == 14  # impossible tokens show at once


def test_the_band_is_what_plain_draws_do() -> None:
    dice = random.Random(2)
    exact = distribution_of(0.5, 0.3, 0.1, 0.06, 0.03, 0.009, 0.001)
    seen = []
    for _ in range(400):
        counts = Counter(dice.choices(list(exact), list(exact.values()), k=500))
        seen.append(total_variation({key: n / 500 for key, n in counts.items()}, exact))
    mean, deviation = plain_distance(exact, 500)
    spread = math.sqrt(sum((tv - sum(seen) / 400) ** 2 for tv in seen) / 399)
    assert sum(seen) / 400 == pytest.approx(mean, abs=4 * spread / 20)
    assert deviation == pytest.approx(spread, rel=0.2) and max(seen) < mean + 4 * deviation


def test_distances_look_at_every_length() -> None:
    distributions = [distribution_of(0.5, 0.5), {(0, 0): 0.5, (1, 1): 0.5}]
    first, second = distances(distributions, {(0, 0): 50, (1, 1): 40, (0, 1): 10})
    assert first[0] == pytest.approx(0.1) and first[5] == 0 and not is_red(first)
    assert second[5] == 10 and second[2] == math.inf and is_red(second)
