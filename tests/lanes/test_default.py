"""The default of a run: what is expected to pay, and what a visitor chose stays chosen."""

import json
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from specdec.lanes import probe
from specdec.lanes.probe import Choice, choose
from specdec.messages import Refused
from specdec.methods import inner_drafter
from specdec.types import Costs
from tests.nodejs import TESTS

CHEAP = Costs(0.03, (1.0, 1.12, 1.18, 1.26, 1.31, 1.40, 1.86, 1.86), 0.06, 0.02, 0.09)  # on two cores, SmolLM2
COPY = Costs(0.5, CHEAP.passes, 0.06, 0.03, 0.15)
DEAR = Costs(0.9, tuple(1.0 + row for row in range(8)), 0.1)


@pytest.fixture
def measured(monkeypatch) -> list[str]:
    asked: list[str] = []

    def measure(family: Any, name: str, report: Any) -> Costs:
        asked.append(name)
        return family.real[name]

    monkeypatch.setattr(probe, "measure_costs", measure)
    return asked


def family(real: dict[str, Costs], trained: dict[str, Any] | None = None) -> Any:
    drafters = [*real, "suffix", "none"]
    known = {"real": real, "trained": trained or {}, "costs": {}, "in_memory": True}
    return SimpleNamespace(**known, drafters=drafters, default_drafter="suffix", wrapped=inner_drafter)


def test_what_is_expected_to_pay_is_taken_and_measured_once(measured) -> None:
    pair = family({"draft_model": CHEAP, "quantised": COPY}, {"draft_model": {"agreement": [0.66], "overlap": [0.3]}})
    choice = choose(pair)
    assert (choice.drafter, choice.k) == ("draft_model", 3) and choice.speedup == pytest.approx(1.58, abs=0.02)
    assert choose(pair) == choice and measured == ["draft_model"]  # enough: the copy is not measured
    assert choose(pair, temperature=0.8).drafter == "quantised"
    assert measured == ["draft_model", "quantised"]


def test_the_browser_chooses_as_we_do(measured) -> None:
    """Node holds `engine/costs.js` to the same table."""
    for row in json.loads((TESTS / "costs.json").read_text(encoding="utf-8")):
        draft, step, *passes = row["times"]["draft"], *row["times"]["passes"].values()
        costs = probe.interpolate(dict(zip((1, 2, 4), (ms / step for ms in passes), strict=True)))[:5]
        pair = family({"draft_model": Costs(draft / step, tuple(costs))}, {"draft_model": {"agreement": row["rates"]}})
        choice = choose(pair)
        assert choice.k == row["k"], row["name"]
        assert choice.speedup == pytest.approx(row["speedup"]) if row["speedup"] else choice.speedup <= 1.0


def test_where_nothing_pays_one_token_is_drafted_and_that_is_known(measured) -> None:
    deep = Costs(0.2, (1.0, 1.0), start=1.0)  # the best depth is 2, but does not pay either
    for costs in (DEAR, deep):
        pair = family({"draft_model": costs})
        choice = choose(pair)
        assert choice == choose(pair, k=1) and choice.k == 1 and 0.0 < choice.speedup <= 1.0


def test_what_was_chosen_stays(measured) -> None:
    pair = family({"draft_model": CHEAP, "quantised": COPY})
    assert choose(pair, "quantised", 7) == Choice("quantised", 7)
    assert not measured
    assert choose(pair, k=7).k == 7
    assert choose(pair, "quantised").drafter == "quantised"


def test_where_no_candidate_drafts_a_chosen_depth_stays(monkeypatch) -> None:
    monkeypatch.setattr(probe, "measure_costs", Mock(side_effect=Refused("it drafted nothing")))
    pair = family({"draft_model": CHEAP, "quantised": COPY})
    assert choose(pair, k=5) == Choice("draft_model", 5) and choose(pair).k == 4


def test_what_is_not_measured_has_the_usual_depth(measured) -> None:
    alone = family({})
    assert choose(alone) == Choice("suffix", 4) and choose(alone, "medusa:tree") == Choice("medusa:tree", 4)
    assert not measured
    assert choose(family({"draft_model": CHEAP}), "adaptive") == Choice("adaptive", 8) and measured == ["draft_model"]


def test_a_drafter_with_known_acceptance_has_a_depth_by_its_costs_and_none_has_none(measured) -> None:
    """A folder's head has its method's assumed acceptance; one that was trained has its own."""
    pair = family(dict.fromkeys(("eagle3:a folder", "medusa", "mtp"), CHEAP), {"medusa": {"agreement": [0.9, 0.2]}})
    assert choose(pair, "eagle3:a folder").k == 2 and choose(pair, "medusa").k == 1 and choose(pair, "mtp").k == 4
    assert measured == ["eagle3:a folder", "medusa"]
    assert choose(pair, "none") == choose(pair, "none", 5) == Choice("none", 0)
