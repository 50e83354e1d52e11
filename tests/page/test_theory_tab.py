"""What the tab Theory shows of the bench's figures: sentences, tables and charts from the reports alone."""

from __future__ import annotations

import json

import toyreport

from specdec.ui.tabs import theory


def test_batches_are_told_by_the_k_that_is_fastest_alone() -> None:
    told = toyreport.batches()
    table = theory.batch_figures(told)
    assert theory.batch_lines(told, table) == [
        "Toy, 2 cores, 2026-01-02. 64, K 7: 1.60× with 1 text, 0.90× with 4. "
        "384, K 7: 1.45× with 1 text, 1.30× with 4. Every text is plain decoding’s."
    ]
    told["points"][0]["identical_to_plain"] = False
    assert "near-ties" in theory.batch_lines(told, theory.batch_figures(told))[0]
    gains, rates = (json.loads(chart.to_json()) for chart in theory.batch_charts(table))
    assert [line["name"] for line in gains["data"]] == ["64, K 3", "64, K 7", "384, K 3", "384, K 7"]
    assert list(gains["data"][1]["y"]) == [1.6, 0.9] and gains["layout"]["xaxis"]["type"] == "log"
    assert [line["name"] for line in rates["data"]][2::3] == ["64, plain", "384, plain"]
    assert list(rates["data"][1]["x"]) == [160, 90] and list(rates["data"][1]["y"]) == [160, 360]


def test_what_people_explore_can_be_zoomed_and_saved_and_lets_a_finger_scroll() -> None:
    for chart in theory.batch_charts(theory.batch_figures(toyreport.batches())):
        layout = json.loads(chart.to_json())["layout"]
        assert layout["dragmode"] is False and not layout["xaxis"]["fixedrange"]
        assert not {"toImage", "zoom2d"} & {*layout["modebar"]["remove"]}
