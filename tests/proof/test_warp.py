"""The second warp: the shipped one is held to it, wherever a proof says what is exact."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import pytest
import torch
from torch import Tensor

from specdec.proof.checks import closed_form
from specdec.proof.pair import ModelPair
from specdec.proof.toys import Case, PARAMS, shipped_error, TableModel
from specdec.proof.warp import warped
from specdec.sampling import probabilities, within
from specdec.types import SamplingParams

Warp = Callable[[Tensor, SamplingParams], Tensor]
EXACT = 1e-12


def test_of_equals_the_lower_id_goes_first() -> None:
    logits = [1.0, 3.0, 3.0, 3.0]
    assert warped(logits, SamplingParams(temperature=0.0)) == [0.0, 1.0, 0.0, 0.0]
    assert warped(logits, SamplingParams(temperature=1.0, top_k=2)) == [0.0, 0.5, 0.5, 0.0]
    assert warped(logits, SamplingParams(temperature=1.0, top_k=3, top_p=0.5)) == [0.0, 0.5, 0.5, 0.0]


def test_both_warps_agree() -> None:
    dice = random.Random(5)
    for _ in range(400):
        size = dice.choice((2, 5, 40, 300))
        logits = [dice.gauss(0.0, dice.choice((0.1, 2.0, 30.0))) for _ in range(size)]
        logits[dice.randrange(size)] = -float("inf")
        params = SamplingParams(
            temperature=dice.choice((0.0, 1e-300, 0.05, 0.7, 1.0, 3.0, 100.0)),
            top_k=dice.choice((0, 0, 1, 2, 7, 1000)),
            top_p=dice.choice((1.0, 1.0, 1e-9, 0.5, 0.9, 0.999)),
        )
        found = probabilities(torch.tensor([logits], dtype=torch.float64), params)[0].tolist()
        assert found == pytest.approx(warped(logits, params), abs=1e-14), params


# ---- mistakes in the shipped warp ----


def after(change: Callable[[SamplingParams], SamplingParams]) -> Warp:
    return lambda logits, params: probabilities(logits, change(params))


def stops_before_it_reaches(logits: Tensor, params: SamplingParams) -> Tensor:
    """Top-p without the token that reaches p."""
    distribution = probabilities(logits, replace(params, top_p=1.0))
    ordered, order = distribution.sort(dim=-1, descending=True)
    over = ordered.cumsum(-1) > params.top_p + 1e-9
    over[..., 0] = False
    distribution = distribution.masked_fill(over.scatter(-1, order, over), 0.0)
    return distribution / distribution.sum(-1, keepdim=True)


def top_p_first(logits: Tensor, params: SamplingParams) -> Tensor:
    distribution = probabilities(logits, replace(params, top_k=0))
    return probabilities(distribution.log(), SamplingParams(temperature=1.0, top_k=params.top_k))


def top_p_without_temperature(logits: Tensor, params: SamplingParams) -> Tensor:
    if not params.temperature:
        return probabilities(logits, params)
    kept = probabilities(logits, replace(params, temperature=1.0)) > 0
    return probabilities(logits.masked_fill(~kept, -torch.inf), replace(params, top_p=1.0))


def not_normalised(logits: Tensor, params: SamplingParams) -> Tensor:
    distribution = probabilities(logits, replace(params, top_p=1.0))
    return distribution * (within(distribution, params.top_p) > 0)


def in_float32(logits: Tensor, params: SamplingParams) -> Tensor:
    return probabilities(logits.float(), params).double()


WRONG: dict[str, Warp] = {
    "no temperature": after(lambda params: replace(params, temperature=min(1.0, params.temperature))),
    "temperature twice": after(lambda params: replace(params, temperature=params.temperature**2)),
    "no top-k": after(lambda params: replace(params, top_k=0)),
    "one more than top-k": after(lambda params: replace(params, top_k=params.top_k + (params.top_k > 0))),
    "one less than top-k": after(lambda params: replace(params, top_k=params.top_k - (params.top_k > 1))),
    "no top-p": after(lambda params: replace(params, top_p=1.0)),
    "top-p stops before it reaches p": stops_before_it_reaches,
    "top-p before top-k": top_p_first,
    "top-p before temperature": top_p_without_temperature,
    "not normalised": not_normalised,
    "float32": in_float32,
}
LOOPS = [Case(4, 2, 2, params, seed=seed) for params in PARAMS[2:] for seed in range(3)]


def worst() -> float:
    return max(shipped_error(case)[0] for case in LOOPS)


def plant(monkeypatch: pytest.MonkeyPatch, warp: Warp) -> None:
    """Wherever the shipped one is used: drafter and target alike, so the rule sees nothing wrong."""
    for name, module in list(sys.modules.items()):
        if name.startswith("specdec.") and getattr(module, "probabilities", None) is probabilities:
            monkeypatch.setattr(module, "probabilities", warp)


def test_the_shipped_warp_is_the_second_one_on_these_loops() -> None:
    assert worst() <= EXACT


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_warp_shows_in_the_distribution_of_the_loop(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    plant(monkeypatch, WRONG[wrong])
    assert worst() > 1e-9


@pytest.mark.parametrize("wrong", ["", *WRONG])
def test_a_wrong_warp_shows_in_a_certificate(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    """In the closed form, of pairs with top-k and top-p, whose row is the second warp's."""
    if wrong:
        plant(monkeypatch, WRONG[wrong])
    errors = []
    for params, seed in product((PARAMS[2], PARAMS[4], PARAMS[5], PARAMS[6]), range(8)):
        target = TableModel(5, seed)
        pair = ModelPair("warped", target, TableModel(5, seed + 99, target), (0, 1), params, str, 12)
        errors.append(closed_form(pair, None)["error"])
    assert (max(errors) > 1e-9) == bool(wrong)
