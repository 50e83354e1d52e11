"""What half of the prompts and a probe predict for the other half."""

import pytest

from specdec.bench.measure import Case, predict, prediction
from specdec.figures.stats import Comparison, LaneStats
from specdec.types import Costs

COSTS = Costs(draft=0.1, passes=(1.0, 1.0, 1.1, 1.2, 1.3), overhead=0.05, draw=0.02, start=0.01)


def lane(accepted: list[int], drafting: int, drafted: int) -> LaneStats:
    """A lane of ten cycles, whose times are those of `COSTS` for drafts of two tokens."""
    return LaneStats(10, 11 + sum(accepted), 1, drafted, drafting, accepted, [10, 10], seconds=0.136)


def test_acceptance_by_position_over_the_probed_cost_of_a_cycle() -> None:
    assert predict([lane([8, 4], 10, 20)], COSTS, 2) == pytest.approx((2.2, 1.36))
    tree = predict([lane([8, 4], 10, 90)], COSTS, 2)
    assert tree == pytest.approx((2.2, 1.36))  # levels cost, not nodes
    some = predict([lane([3, 1], 4, 6)], COSTS, 4)  # drafts of 1.5 tokens, in 4 of 10 cycles
    assert some == pytest.approx((1.4, 0.4 * (1.16 + 1.36) / 2 + 0.6))
    assert predict([lane([], 0, 0)], COSTS, 4) is None


def test_the_bench_predicts_prompts_that_it_did_not_look_at() -> None:
    seen = Comparison(lane([8, 4], 10, 20), LaneStats(22, 23, seconds=0.22))
    harder = Comparison(lane([2, 0], 10, 20), LaneStats(12, 13, seconds=0.12))
    for temperature, cycle in ((0.0, 1.36), (0.8, 1.40)):
        for unseen, tau in ((seen, 2.2), (harder, 1.2)):
            row = prediction(Case("draft_model", "story", temperature, 2), [(0, seen), (1, unseen)], COSTS)
            assert row["predicted_speedup"] == pytest.approx(2.2 / cycle, abs=1e-4)
            assert (row["unseen_tau"], row["unseen_speedup"]) == pytest.approx((tau, tau / 1.36), abs=1e-4)
