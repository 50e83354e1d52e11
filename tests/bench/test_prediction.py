"""What half of the prompts and a probe predict for the other half."""

import pytest

from specdec.bench import measure
from specdec.bench.measure import Case, predict, prediction
from specdec.bench.suites import probed_costs
from specdec.figures.stats import Comparison, LaneStats
from specdec.lanes import probe
from specdec.types import Costs
from specdec.ui import results

COSTS = Costs(draft=0.1, passes=(1.0, 1.0, 1.1, 1.2, 1.3), overhead=0.05, draw=0.02, start=0.01)
PROBED = {"draft_model": COSTS, "adaptive": Costs(draft=0.15, passes=(1.0, 1.5), draw=0.03)}


def lane(accepted: int, depths: list[int], seconds: float = 0.136) -> LaneStats:
    """A lane of ten cycles after the first token."""
    return LaneStats(10, 11 + accepted, 1, sum(depths), depths, seconds=seconds)


def test_tokens_a_cycle_over_the_probed_cost_of_every_draft() -> None:
    assert predict([lane(12, [2] * 10)], COSTS) == pytest.approx((2.2, 1.36))
    cycles = [1.16, 1.36, 1.76]  # of drafts of 1, 2 and 4 tokens; others have none, and cost a plain step
    assert predict([lane(4, [1, 2, 4])], COSTS) == pytest.approx((1.4, (sum(cycles) + 7) / 10))
    assert predict([lane(0, [])], COSTS) == (1.0, 1.0)
    assert predict([LaneStats(0, 1)], COSTS) is None and predict([lane(0, [])], None) is None


def test_the_bench_predicts_prompts_that_it_did_not_look_at() -> None:
    seen = Comparison(lane(12, [2] * 10), LaneStats(22, 23, seconds=0.22))
    harder = Comparison(lane(2, [2] * 10), LaneStats(12, 13, seconds=0.12))
    for unseen, tau in ((seen, 2.2), (harder, 1.2)):
        row = prediction([(0, seen), (1, unseen)], COSTS)
        assert row["predicted_speedup"] == pytest.approx(2.2 / 1.36, abs=1e-4)
        assert (row["unseen_tau"], row["unseen_speedup"]) == pytest.approx((tau, tau / 1.36), abs=1e-4)
    # Tokens over plain steps, each summed: a text of two tokens weighs less than one of 23.
    short = Comparison(LaneStats(1, 2, seconds=0.005), LaneStats(1, 2, seconds=0.01))
    row = prediction([(0, seen), (1, seen), (3, short)], COSTS)
    assert row["unseen_speedup"] == pytest.approx(23 / (13.6 + 0.5), abs=1e-4)
    assert (row["seen_cycles"], row["unseen_cycles"]) == (10, 11)
    assert row["unseen_tau"] == pytest.approx(23 / 11, abs=1e-4)
    assert prediction([(0, seen)], None)["unseen_speedup"] is None


def test_a_page_adds_rows_up_by_their_cycles(monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"drafter": "eagle3", "temperature": 0.0, "dtype": "float32", "family": "x", "source": "a", "gpu": None}
    row |= {"cpu": "y", "cores": 2, "k": 3, "alpha": 0.5, "draft_cost": 0.1, "verify_cost": 1.0, "measured_speedup": 1}
    kinds = [
        {"predicted_tau": 2.0, "predicted_speedup": 2.0, "seen_cycles": 30, "unseen_tau": 3.0, "unseen_speedup": 1.5},
        {"predicted_tau": 4.0, "predicted_speedup": 1.0, "seen_cycles": 10, "unseen_tau": 1.0, "unseen_speedup": 1.0},
    ]
    rows = [row | kind | {"unseen_cycles": cycles} for kind, cycles in zip(kinds, (10, 10), strict=True)]
    monkeypatch.setattr(results, "measured_rows", lambda: rows)
    (place,) = results.account()["predictions"]
    assert (place["predicted_tau"], place["predicted_cost"]) == (2.5, 1.75)  # 100 tokens, 70 plain steps, 40 cycles
    assert (place["unseen_tau"], place["unseen_cost"]) == (2.0, 1.5)


def test_four_runs_share_the_plain_ones_around_them_and_the_faster_is_their_baseline(monkeypatch) -> None:
    order, plain = list[str](), iter([0.01, 0.01, 0.01, 0.1, 0.2, 0.4, 0.4, 0.2, 0.1])  # the first three warm up

    def run(engine: None, prompt: str, drafter: str, *_: object) -> LaneStats:
        order.append(drafter)
        return LaneStats(10, 11, seconds=next(plain) if drafter == "none" else 0.3)

    monkeypatch.setattr(measure, "run", run)
    cases = [Case(name, "story", 0.0, 4) for name in "abcde"]
    pairs = measure.measure_pairs(None, ("Once",), cases, 10, 2)
    assert order == ["none", *"abcd", "none", "e", "none"] * 3
    baselines = {case.drafter: [comparison.plain.seconds for _, comparison in pairs[case]] for case in cases}
    assert baselines == {name: [0.1, 0.2] for name in "abcd"} | {"e": [0.2, 0.1]}


def test_an_adaptive_drafter_pays_for_its_own_choices(engine, monkeypatch) -> None:
    """Its drafts cost what they took with it in charge; its passes cost those of the drafter in it."""
    family, measured = engine.models, list[str]()
    monkeypatch.setattr(probe, "measure_costs", lambda _, name, **text: measured.append(name) or PROBED[name])
    monkeypatch.setitem(family.costs, "draft_model", COSTS)
    costs = probed_costs(family, Case("adaptive", "story", 0.8, 16), "Once")
    assert measured == ["draft_model", "adaptive"] and costs.passes == COSTS.passes
    assert costs.draft == pytest.approx(PROBED["adaptive"].draft + PROBED["adaptive"].draw)
