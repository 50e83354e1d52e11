"""Whether a draft is long enough: by how sure it is, by what one more row costs, and by all that may follow it."""

from __future__ import annotations

from specdec.drafters.stop import Rate, Share, Stop
from specdec.types import Costs

FLAT = Costs(0.1, (1.0,) * 9)
STEP = Costs(0.0, (1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0))  # the third token is dear, and those after it are free


def stop(costs: Costs, kept: float, k: int = 8, patience: float = 1.0) -> Stop:
    """At plain decoding's rate, and certain that this share of all tokens is kept."""
    made = Stop(Rate(), patience)
    made.acceptance, made.by_confidence = Share(kept, 1e6), [Share(kept, 1e6) for _ in range(Stop.BINS)]
    made.begin(k, costs)
    return made


def length(asked: Stop, k: int = 8, confidence: float = 0.5) -> int:
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


def test_with_less_patience_for_other_ways_it_goes_on() -> None:
    assert length(stop(FLAT, 0.5, patience=0.5)) == 4


def test_the_faster_the_others_are_the_sooner_it_ends() -> None:
    asked = stop(FLAT, 0.5)
    for _ in range(50):
        asked.rate.add(tokens=4, cost=2.0)
    assert asked.rate.value == 2.0 and length(asked) == 2


def test_plain_decodings_rate_is_the_least() -> None:
    rate = Rate()
    rate.add(tokens=1, cost=3.0)
    assert rate.value == 1.0


def test_it_learns_what_its_confidence_is_worth() -> None:
    asked = Stop(Rate())
    for _ in range(200):  # of every two tokens the sure one is kept, and the unsure one is not
        asked.begin(8, FLAT)
        asked(0.95, 0)
        asked(0.05, 1)
        asked.learn(kept=1, judged=2)
    asked.begin(8, FLAT)
    assert not asked(0.95, 0) and asked(0.05, 1)
