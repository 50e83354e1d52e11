"""Whether a draft is long enough: by how sure it is, by what one more row costs, and by all that may follow it."""

import math
import random
from statistics import mean

import pytest
import torch

from specdec.drafters.base import confidence
from specdec.drafters.stop import Calibration, DraftLengthController, Rate, Share
from specdec.types import Costs

FLAT = Costs(0.1, (1.0,) * 9)
STEP = Costs(0.0, (1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0))  # the third token is dear, and those after it are free


def stop(costs: Costs, kept: float, k: int = 8) -> DraftLengthController:
    """At plain decoding's rate, and certain that this share of all tokens is kept."""
    made = DraftLengthController(Rate())
    made.acceptance = Share(kept, 1e6)
    made.calibration.level, made.calibration.slope = math.log(kept / (1.0 - kept)), 0.0
    made.begin(costs.cycles(k))
    return made


def length(asked: DraftLengthController, k: int = 8, confidence: float = 0.5) -> int:
    return next((n for n in range(1, k) if asked(confidence, n - 1)), k)


def test_a_draft_ends_where_the_next_token_costs_more_than_it_gives() -> None:
    assert length(stop(FLAT, 0.5)) == 3  # 0.5⁴ < 0.1 < 0.5³
    assert length(stop(FLAT, 0.05)) == 1
    assert length(stop(FLAT, 0.9)) == 8


def test_a_dear_row_is_worth_it_where_those_after_it_are_free() -> None:
    """0.9³ < 1, but 0.9³ + 0.9⁴ > 1."""
    assert length(stop(STEP, 0.9)) == 8
    assert length(stop(STEP, 0.9, k=3), k=3) == 2  # there are none after it
    assert length(stop(STEP, 0.6)) == 2


def test_the_faster_the_others_are_the_sooner_it_ends() -> None:
    asked = stop(FLAT, 0.5)
    for _ in range(50):
        asked.rate.add(tokens=4, cost=2.0)
    asked.begin(FLAT.cycles(8))
    assert asked.rate.value == 2.0 and length(asked) == 2


@pytest.mark.parametrize(("low", "high"), [(0.1, 0.9), (0.5, 0.8)])
def test_a_calibration_finds_how_often_tokens_of_a_confidence_are_kept(low: float, high: float) -> None:
    found, rng = Calibration(), random.Random(1)
    chances = {0.2: low, 0.95: high}
    seen = {confidence: list[float]() for confidence in chances}
    for n in range(4000):
        confidence = rng.choice(list(chances))
        log_odds = found.log_odds(confidence)
        if n >= 1000:
            seen[confidence].append(found.chance(log_odds))
        found.learn(log_odds, rng.random() < chances[confidence])
    for confidence, chance in chances.items():
        assert mean(seen[confidence]) == pytest.approx(chance, abs=0.05)


@pytest.mark.parametrize("others", [(), (2.0,), (2.0, 1.0, -3.0)])
def test_confidence_in_a_favourite_is_told_against_the_runner_up(others: tuple[float, ...]) -> None:
    for place in range(len(others) + 1):
        logits = torch.tensor([[*others[:place], 3.0, *others[place:]]])
        alone = 1.0 if not others else 1.0 / (1.0 + math.exp(-1.0))
        assert confidence(logits, place, None) == pytest.approx(alone)


def test_it_learns_what_its_confidence_is_worth() -> None:
    asked = DraftLengthController(Rate())
    for _ in range(200):  # of every two tokens the sure one is kept, and the unsure one is not
        asked.begin(FLAT.cycles(8))
        asked(0.95, 0)
        asked(0.05, 1)
        asked.learn(accepted=1, judged=2)
    asked.begin(FLAT.cycles(8))
    assert not asked(0.95, 0) and asked(0.05, 1)
