"""What the tab Theory shows of the bench's figures: sentences, tables and charts from the reports alone."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pandas
import pytest
import toyreport

from specdec.ui import measured, results
from specdec.ui.text import LANGUAGES, speaking, strings


def row(domain: str, method: str, ratio: float, precision: str = "int8", **more: Any) -> dict[str, Any]:
    reach = [ratio - 0.1, ratio + 0.1]
    told = {"engine": "specdec", "precision": precision, "method": method, "domain": domain, "temperature": 0.0, "k": 3}
    return told | {"ratio": ratio, "ratio_interval": reach, "tau": 2.0, "tokens_per_second": 100.0} | more


ROWS = [
    row("story", "plain", 2),
    row("code", "plain", 1.5),
    row("facts", "plain", 1.75),
    row("story", "block", 3),
    row("story", "draft_model", 2.5),
    row("code", "draft_model", 1),
    row("facts", "draft_model", 4),
]


def test_of_every_kind_of_text_the_fastest_way_to_draft_counts() -> None:
    best = measured.fastest(pandas.DataFrame(ROWS))
    drafted = best[best["drafted"]]
    found = list(drafted[["domain", "method", "ratio"]].itertuples(index=False, name=None))
    assert found == [("story", "block", 3), ("code", "draft_model", 1), ("facts", "draft_model", 4)]
    assert measured.mean(drafted["ratio"]) == pytest.approx(math.cbrt(12) if hasattr(math, "cbrt") else 12 ** (1 / 3))
    whole = [*ROWS, row("poem", "plain", 1)]  # the drafted lane lacks it, and float32 lacks all others
    assert not measured.fastest(pandas.DataFrame(whole))["drafted"].any()
    assert (
        measured.fastest(pandas.DataFrame([*ROWS, row("story", "plain", 1, "float32")]))["precision"].eq("int8").all()
    )


def test_drafting_on_top_of_8_bits_is_held_against_8_bits_alone_on_the_same_kind_of_text() -> None:
    told = measured.report("precision")
    best = measured.fastest(pandas.DataFrame(told["rows"]))
    assert measured.onto(best, 0.8) == (
        "At T = 0.8, drafting on top of 8 bits changes the speed of stories by −26 %, code by −30 %, facts by +31 %: "
        "faster in 1 of 3 kinds of text, slower in 2, too close to tell in 0."
    )
    assert measured.onto(best, 0.0) == (
        "At T = 0, drafting on top of 8 bits changes the speed of stories by +27 %, code by −5 %, facts by +62 %: "
        "faster in 2 of 3 kinds of text, slower in 0, too close to tell in 1."
    )
    assert measured.onto(best, 0.5) == ""


@pytest.mark.parametrize(
    ("paired", "by", "way"),
    [
        ({}, 0.5, "close"),  # the lanes' intervals meet
        ({"over_plain": None}, 0.5, "close"),
        ({"over_plain": 1.4, "over_plain_interval": [1.1, 1.6]}, 0.4, "faster"),
        ({"over_plain": 0.75, "over_plain_interval": [0.7, 0.9]}, -0.25, "slower"),
    ],
)
def test_where_the_bench_told_ratios_text_by_text_these_count(paired: dict[str, Any], by: float, way: str) -> None:
    lanes = {"ratio_plain": 2.0, "ratio_interval_plain": [1, 3], "ratio": 3.0, "ratio_interval": [1, 4]}
    assert measured.change(lanes | paired) == (pytest.approx(by), way)


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_was_measured_names_its_machine_date_and_engines(language: str) -> None:
    told = measured.report("precision")
    with speaking(language):
        note, columns = measured.precision_note(told), strings("theory")["precision"]["columns"]
        table = measured.precision_table(pandas.DataFrame(told["rows"]))
    for name in (told["machine"]["cpu"], told["provenance"]["measured"][:10], told["provenance"]["commit"]):
        assert name in note
    assert str(told["llama_cpp"]) in note and list(table.columns) == list(columns.values())
    assert len(table) == len(told["rows"]) and None not in results.cells(table)[0]


def test_a_chart_of_precisions_has_a_cell_per_lane_and_tells_every_text() -> None:
    chart = json.loads(measured.precision_chart(measured.fastest(pandas.DataFrame(ROWS))).to_json())["data"][0]
    assert chart["y"] == ["int8 · this engine"] and chart["x"] == ["Plain, <br>T = 0", "Drafted, <br>T = 0"]
    assert chart["z"][0][1] == pytest.approx(12 ** (1 / 3))
    assert chart["hovertext"][0][1].split("<br>")[0].startswith("stories: 3.00 (2.90–3.10), Block drafter, K = 3")


def test_batches_are_told_by_the_k_that_is_fastest_alone() -> None:
    told = toyreport.batches()
    table = measured.batches(told)
    assert measured.batch_lines(told, table) == [
        "Toy, 2 cores, 2026-01-02. 64, K 7: 1.60× with 1 text, 0.90× with 4. "
        "384, K 7: 1.45× with 1 text, 1.30× with 4. Every text is plain decoding’s."
    ]
    told["points"][0]["identical_to_plain"] = False
    assert "near-ties" in measured.batch_lines(told, measured.batches(told))[0]
    gains, rates = (json.loads(chart.to_json()) for chart in measured.batch_charts(table))
    assert [line["name"] for line in gains["data"]] == ["64, K 3", "64, K 7", "384, K 3", "384, K 7"]
    assert list(gains["data"][1]["y"]) == [1.6, 0.9] and gains["layout"]["xaxis"]["type"] == "log"
    assert [line["name"] for line in rates["data"]][2::3] == ["64, plain", "384, plain"]
    assert list(rates["data"][1]["x"]) == [160, 90] and list(rates["data"][1]["y"]) == [160, 360]


def test_what_people_explore_can_be_zoomed_and_saved_and_lets_a_finger_scroll() -> None:
    for chart in measured.batch_charts(measured.batches(toyreport.batches())):
        layout = json.loads(chart.to_json())["layout"]
        assert layout["dragmode"] is False and not layout["xaxis"]["fixedrange"]
        assert not {"toImage", "zoom2d"} & {*layout["modebar"]["remove"]}


def test_a_report_that_lacks_a_figure_is_shown_without_it() -> None:
    """As one of an older bench: the page is built from it."""
    told = pandas.DataFrame(ROWS).drop(columns=["tau", "tokens_per_second"])
    assert measured.precision_table(told).iloc[0].isna().sum() == 2
    points = toyreport.batches()
    for point in points["points"]:
        point.pop("alpha", None)
    assert len(measured.batch_table(measured.batches(points))) == 8


def test_without_a_report_nothing_is_claimed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    assert measured.report("batch") == measured.report("precision") == {}
    (tmp_path / "batch.json").write_text("[1", encoding="utf-8")
    assert measured.report("batch") == {}
