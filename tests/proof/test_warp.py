"""Compare the shipped temperature, top-k and top-p with the second implementation, which the proofs use."""

import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product

import pytest
import torch
from torch import Tensor

from specdec.proof.certify import closed_form, ModelPair
from specdec.proof.toys import LoopCase, PARAMS, TableModel, warped
from specdec.sampling import probabilities
from specdec.types import SamplingParams
from tests.proof.test_lossless import shipped_error

Warp = Callable[[Tensor, SamplingParams], Tensor]


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
        row = probabilities(torch.tensor([logits], dtype=torch.float64), params)[0].tolist()
        assert row == pytest.approx(warped(logits, params), abs=1e-14), params


def after(change: Callable[[SamplingParams], SamplingParams]) -> Warp:
    return lambda logits, params: probabilities(logits, change(params))


def top_p_first(logits: Tensor, params: SamplingParams) -> Tensor:
    distribution = probabilities(logits, replace(params, top_k=0))
    return probabilities(distribution.log(), SamplingParams(temperature=1.0, top_k=params.top_k))


def top_p_without_temperature(logits: Tensor, params: SamplingParams) -> Tensor:
    if not params.temperature:
        return probabilities(logits, params)
    kept = probabilities(logits, replace(params, temperature=1.0)) > 0
    return probabilities(logits.masked_fill(~kept, -torch.inf), replace(params, top_p=1.0))


WRONG: dict[str, Warp] = {
    "temperature twice": after(lambda params: replace(params, temperature=params.temperature**2)),
    "one more than top-k": after(lambda params: replace(params, top_k=params.top_k + (params.top_k > 0))),
    "no top-p": after(lambda params: replace(params, top_p=1.0)),
    "top-p before top-k": top_p_first,
    "top-p before temperature": top_p_without_temperature,
    "not normalised": lambda logits, params: (
        probabilities(logits, replace(params, top_p=1.0)) * (probabilities(logits, params) > 0)
    ),
    "float32": lambda logits, params: probabilities(logits.float(), params).double(),
}


@pytest.mark.parametrize(
    "wrong", ["", *(pytest.param(name, marks=pytest.mark.long if i % 3 else ()) for i, name in enumerate(WRONG))]
)
def test_a_wrong_warp_shows_in_the_distribution_of_the_loop_and_in_a_certificate(monkeypatch, wrong: str) -> None:
    for name, module in list(sys.modules.items()):
        if wrong and name.startswith("specdec.") and getattr(module, "probabilities", None) is probabilities:
            monkeypatch.setattr(module, "probabilities", WRONG[wrong])
    assert any(wrong_in_loops()) == any(wrong_in_closed_form()) == bool(wrong)


def wrong_in_loops() -> Iterator[bool]:
    for params, seed in product(PARAMS[2:], range(3)):
        yield shipped_error(LoopCase(4, 2, 2, params, seed=seed)) > 1e-9


def wrong_in_closed_form() -> Iterator[bool]:
    for params, seed in product((PARAMS[2], PARAMS[4], PARAMS[5], PARAMS[6]), range(8)):
        target = TableModel(5, seed)
        pair = ModelPair("warped", target, TableModel(5, seed + 99, target), (0, 1), params, str, 12)
        yield closed_form(pair, None)["error"] > 1e-9
