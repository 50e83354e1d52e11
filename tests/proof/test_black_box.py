"""What judges a server by its texts: cells that share out all texts, bounds that hold, and a bias that shows."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest

from specdec.proof.black_box import (
    C_PER_DEGREE,
    counts_in,
    distributions_of_cells,
    g_test_after_first,
    model_row,
    noticed_bias,
    OTHER,
    witness,
)
from specdec.proof.certify import toy
from specdec.proof.enumeration import total_variation
from specdec.proof.goodness_of_fit import divergence

ROW = model_row(toy().models[0], toy().text, toy().params)
ALARM = 1e-7


def texts(draws: int, length: int, seed: int = 1) -> Counter[tuple[int, ...]]:
    dice, found = np.random.default_rng(seed), Counter[tuple[int, ...]]()
    for _ in range(draws):
        text: tuple[int, ...] = ()
        for _ in range(length):
            distribution = ROW(text)
            chances = np.array(list(distribution.values()))
            text = (*text, int(dice.choice(list(distribution), p=chances / chances.sum())))
        found[text] += 1
    return found


@pytest.mark.parametrize("smallest", [1e-4, 0.01, 0.2])
def test_cells_share_out_all_texts(smallest: float) -> None:
    distributions = distributions_of_cells(ROW, 3, smallest)
    for length, distribution in enumerate(distributions, start=1):
        assert math.fsum(distribution.values()) == pytest.approx(1.0, abs=1e-12)
        every = itertools.product(range(5), repeat=length)
        mass = {text: math.prod(ROW(text[:i])[text[i]] for i in range(length)) for text in every}
        assert counts_in(distribution, mass) == pytest.approx(distribution)
        assert all(p >= smallest or cell[-1] == OTHER for cell, p in distribution.items())


def test_what_a_distribution_excludes_is_no_cell_of_it() -> None:
    distribution = {(0,): 0.5, (1, 0): 0.3, (1, OTHER): 0.2}
    counts = counts_in(distribution, {(0, 3): 2, (1, 0): 3, (1, 4): 4, (2, 0): 5})
    assert counts == {(0,): 2, (1, 0): 3, (1, OTHER): 4, (OTHER,): 5}
    assert counts_in(distribution, {(1,): 2, (): 3}) == {(1,): 2, (): 3}  # texts that ended too early
    assert g_test_after_first({(2, 0): 1}, {(0,): 0.5, (1,): 0.5}, distribution).tail == 0.0


@pytest.mark.parametrize("p", [1e-6, 1e-3, 0.01, 0.1, 0.3, 0.5])
def test_a_yes_and_no_has_moments_below_those_of_a_squared_gaussian_to_the_power_c(p: float) -> None:
    for m in (1, 2, 3, 4, 6, 10, 30, 300, 3_000):
        ways = [math.lgamma(m + 1) - math.lgamma(x + 1) - math.lgamma(m - x + 1) for x in range(m + 1)]
        logs = np.array([way + x * math.log(p) + (m - x) * math.log1p(-p) for x, way in enumerate(ways)])
        d = np.array([m * divergence([(p, x / m), (1 - p, 1 - x / m)]) for x in range(m + 1)])
        for t in (0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.45, 0.49, 0.499):
            assert np.logaddexp.reduce(logs + t * d) <= -C_PER_DEGREE / 2 * math.log(1 - 2 * t), (m, t)


def test_draws_from_the_distribution_itself_stay_far_from_red_and_the_first_token_is_left_out() -> None:
    distributions = distributions_of_cells(ROW, 3, 5 / 2_000)
    for seed in range(8):
        drawn = texts(400, 3, seed)
        for distribution in distributions[1:]:
            assert g_test_after_first(drawn, distributions[0], distribution).tail > 1e-3
    lopsided = Counter({text: 400 * n if text[0] == 1 else n for text, n in texts(400, 3).items()})
    first, second = (g_test_after_first(counts, *distributions[:2]) for counts in (texts(400, 3), lopsided))
    assert first.degrees == second.degrees and first.tail == 1.0


@pytest.mark.parametrize("draws", [1_000, 4_000])
@pytest.mark.parametrize("part", [slice(-1, None), slice(-2, None), slice(3), slice(None, None, 2)])
def test_a_bias_beyond_the_noticed_one_is_red_in_every_sample(draws: int, part: slice) -> None:
    """A share of the probability moves to a few or to half of the texts after each first token, from the others."""
    first, _, cells = distributions_of_cells(ROW, 3, 5 / draws)
    bias = noticed_bias(len(cells) - len(first), draws, ALARM)
    groups = [sorted((cell for cell in cells if cell[0] == token), key=cells.__getitem__) for (token,) in first]
    favoured = {cell for group in groups for cell in group[part]}
    masses = [sum(cells[cell] for cell in group if cell not in favoured) for group in groups]
    share = bias / sum(masses)
    assert 0.1 < bias < 0.4 and share < 1.0
    biased = dict[tuple[int, ...], float]()
    for group, mass in zip(groups, masses, strict=True):
        gain = 1.0 + share * mass / (sum(cells[cell] for cell in group) - mass)
        biased |= {cell: cells[cell] * (gain if cell in favoured else 1.0 - share) for cell in group}
    assert total_variation(biased, cells) == pytest.approx(bias)
    dice, texts = np.random.default_rng(1), list(biased)
    for counts in dice.multinomial(draws, list(biased.values()), size=200):
        assert g_test_after_first(dict(zip(texts, counts.tolist(), strict=True)), first, cells).tail < ALARM
    assert noticed_bias(0, draws, ALARM) == noticed_bias(5, 10, ALARM) == 1.0


def test_the_witness_is_the_token_that_differs() -> None:
    distributions = distributions_of_cells(ROW, 2, 5 / 2_000)
    best = max(ROW((1,)), key=lambda token: ROW((1,))[token])
    drawn = {text: 3 * n if text == (1, best) else n for text, n in texts(1_500, 2).items()}
    seen = witness(Counter(drawn), distributions)
    assert seen is not None and (seen.before, seen.token) == ((1,), best) and seen.seen > seen.expected
