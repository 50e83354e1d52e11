"""What judges a server by its texts: cells that share out all texts, bounds that hold, a power that comes true."""

import itertools
import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from specdec.proof.black_box import (
    C_PER_DEGREE,
    cell_of,
    counts_in,
    distributions_of_cells,
    g_test_after_first,
    model_row,
    OTHER,
    Row,
    witness,
)
from specdec.proof.enumeration import total_variation
from specdec.proof.goodness_of_fit import divergence
from specdec.proof.mistakes import MISTAKES
from specdec.proof.pair import toy
from specdec.proof.power import assumed_draft, OneCycle, power
from specdec.proof.toys import TableModel
from specdec.types import SamplingParams
from specdec.ui.recorded import CERTIFICATES

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
        inner = {cell[:i] for cell in distribution for i in range(len(cell))}
        mass = Counter[tuple[int, ...]]()
        for text in itertools.product(range(5), repeat=length):
            mass[cell_of(text, distribution, inner)] += math.prod(ROW(text[:i])[text[i]] for i in range(length))
        assert mass == pytest.approx(distribution)
        assert all(p >= smallest or cell[-1] == OTHER for cell, p in distribution.items())


def test_what_a_distribution_excludes_is_no_cell_of_it() -> None:
    distribution = {(0,): 0.5, (1, 0): 0.3, (1, OTHER): 0.2}
    assert counts_in(distribution, {(0, 3): 2, (1, 0): 3, (1, 4): 4, (2, 0): 5}) == {
        (0,): 2,
        (1, 0): 3,
        (1, OTHER): 4,
        (OTHER,): 5,
    }
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
        assert all(
            g_test_after_first(drawn, distributions[0], distribution).tail > 1e-3 for distribution in distributions[1:]
        )
    lopsided = Counter({text: 400 * n if text[0] == 1 else n for text, n in texts(400, 3).items()})
    first, second = (
        g_test_after_first(counts, distributions[0], distributions[1]) for counts in (texts(400, 3), lopsided)
    )
    assert first.degrees == second.degrees and first.tail == 1.0


@pytest.mark.parametrize("key", ["from_target", "draft_bonus", "one_coin", "extra_bonus", "typical"])
def test_the_distribution_of_a_mistake_is_that_of_the_enumerated_loop(key: str) -> None:
    """On the toy pair nothing is lumped together. The recorded loop drafts the first token, too: here the text's
    last one is drawn again, for certain."""
    pair, kept = toy(), json.loads(CERTIFICATES.read_text(encoding="utf-8"))["toy"][key]["exact"]
    before, last = pair.text[:-1], pair.text[-1]

    def given(model: TableModel) -> Row:
        row = model_row(model, before, pair.params)
        return lambda text: row(text) if text else {token: float(token == last) for token in range(5)}

    cycle = OneCycle(*map(given, pair.models), 2, 0.8)
    wrongs, rights = cycle.wrong(MISTAKES[key]), cycle.right
    found = [total_variation(*distributions) for distributions in zip(wrongs[1:], rights[1:], strict=True)]
    assert found[0] == pytest.approx(kept["tv"][0], rel=2e-3, abs=1e-9)
    assert (
        all(one <= whole + 1e-3 for one, whole in zip(found, kept["tv"], strict=True))
        and found[-1] > kept["tv"][-1] / 4
    )


# Of an algorithm that computed both models and every path of the whole cycle anew for each mistake.
@pytest.mark.parametrize(("k", "assumed"), [(2, False), pytest.param(4, True, marks=pytest.mark.long)])
def test_what_is_computed_once_for_all_mistakes_changes_no_number(k: int, assumed: bool) -> None:
    recorded = json.loads((Path(__file__).parent / "power.json").read_text())
    models, params = toy().models, SamplingParams(temperature=0.8, max_tokens=k + 2)
    target, draft = (model_row(model, (0, 1), params) for model in models)
    cells = distributions_of_cells(target, k + 2, 5 / 3_000)
    needed = power(target, assumed_draft(target) if assumed else draft, cells, k, 0.8, 1e-8)
    assert needed == recorded[f"{k} drafts, {'an assumed draft' if assumed else 'the draft model'}"]


def test_the_witness_is_the_token_that_differs() -> None:
    distributions = distributions_of_cells(ROW, 2, 5 / 2_000)
    best = max(ROW((1,)), key=lambda token: ROW((1,))[token])
    seen = witness(
        Counter({text: 3 * n if text == (1, best) else n for text, n in texts(1_500, 2).items()}), distributions
    )
    assert seen is not None and (seen.before, seen.token) == ((1,), best) and seen.seen > seen.expected
