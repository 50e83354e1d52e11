"""The tab Methods without a browser: the report as table and sentences, the cards."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as xml

import pytest
import torch
from safetensors.torch import save_file

from specdec.methods import EMBEDDED, METHODS
from specdec.ui import menu, recorded, results, text
from specdec.ui.tabs import methods
from tests import toyreport


@pytest.mark.parametrize("family", ["smollm2", EMBEDDED])
def test_the_target_of_the_page_comes_first(tmp_path, family, monkeypatch):
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    (tmp_path / "star").mkdir()
    for name in results.SHOWN:
        report = toyreport.report()
        report["provenance"]["models"] |= {"family": "smollm2"} if name.startswith("star/") else {}
        (tmp_path / f"{name}.json").write_text(json.dumps(report), encoding="utf-8")
    monkeypatch.setattr(recorded, "first_target", lambda: family)
    assert [results.family_of(report) for report in results.reports()] in (
        [family, EMBEDDED],
        [family, "smollm2"],
    )
    (tmp_path / "star" / "bfloat16.json").unlink()
    assert [results.family_of(report) for report in results.reports()] == [EMBEDDED]


def test_findings_name_the_fastest_and_the_slow_at_a_temperature():
    rows = toyreport.report()["rows"]
    best, only, slow, alpha = results.findings(rows, 0.8)
    assert best == "Most often among the fastest, of 2 kinds of text: Draft model (2)."
    assert only == "Faster by a tenth or more only on Story: Medusa tree."
    assert "1 of 6" in slow and "Prompt lookup on Story, with 0.80×" in slow
    assert "On each kind" in alpha
    assert "None of the 2" in results.findings([row for row in rows if row["drafter"] == "draft_model"], 0.0)[1]
    rows[0]["alpha"] = 1.0
    assert results.findings(rows, 0.0)[-1].count("on 1 of the 2 kinds") == 1


def test_all_are_among_the_fastest_whose_intervals_reach_the_best():
    rows = [toyreport.row(name, "story", 0.0, speedup) for name, speedup in (("medusa", 1.5), ("suffix", 1.4))]
    assert results.fastest(rows) == rows  # 1.35 to 1.50
    rows[1]["measured_speedup_interval"][1] = 1.49
    assert results.fastest(rows) == rows[:1] and results.findings(rows, 0.0)[0].endswith(
        "of 1 kinds of text: Medusa (1)."
    )


def test_counts_agree_with_the_tables_at_their_rounding():
    rows = toyreport.report()["rows"]
    for row, value in zip(rows, (0.9949, 0.995, 0.9999, 1.0049), strict=False):
        row["measured_speedup"] = value
    told = [text for value in results.temperatures(rows) for cells in results.speedups(rows, value) for text in cells]
    values = [cell[0] for cell in told if isinstance(cell, list)]
    assert sorted(values)[:4] == [0.99, 1.0, 1.0, 1.0] and len(values) == 12
    assert "1 of 6" in results.findings(rows, 0.0)[-2] and "0.99×" in results.findings(rows, 0.0)[-2]
    tied = [toyreport.row(name, "story", 0.0, 1.5) for name in ("medusa", "suffix")]
    tied[0]["alpha"], tied[1]["measured_speedup"] = 0.9, 1.501  # the same, as both are shown
    assert "On each kind" in results.findings(tied, 0.0)[-1]


def test_the_table_holds_every_row_and_speed_ups_stand_by_method_and_text_the_fastest_first():
    rows = toyreport.report()["rows"]
    cells = results.cells(rows)
    assert len(cells) == 12 and cells[0] == ["Prompt lookup", "Story", 0.0, 4, 0.9, None, *cells[0][6:-1], 0.001]
    assert list(results.columns(rows).values()) == ["Method", "Geometric mean", "Story", "Code"]
    table = results.speedups(rows, 0.0)
    names = ["Draft model", "Medusa tree", "Prompt lookup"]
    assert [(cells[0].split("\n")[0], cells[1]) for cells in table] == list(zip(names, (1.53, 1.45, 0.99), strict=True))
    assert table[2][0] == "Prompt lookup\nCopies from the text so far"  # the first clause on it
    assert table[0][2:] == [[1.8, 1.75, 1.9], [1.3, 1.25, 1.4]]
    del rows[4]  # the draft model's on stories: half of a mean would be none
    assert results.speedups(rows, 0.0)[-1] == [table[0][0], None, None, [1.3, 1.25, 1.4]]


def test_a_report_says_what_has_changed_since():
    report = toyreport.report()
    assert methods.provenance(report)[2:] == ["Measured on 2026-01-02.", ""]
    report["provenance"]["changed"] = ["loop"]
    _, said, *dated = methods.provenance(report)
    assert "Toy, 2 cores" in said and "abc1234" in said
    assert dated == ["Measured on 2026-01-02, before later changes", "the loop"]


def test_every_drafter_has_a_name_and_a_card_with_a_picture_and_a_source():
    told, links = text.of_drafters("card"), text.read_json(text.ASSETS / "cards.json")
    assert told.keys() == links.keys()
    assert {m.name for m in METHODS.values() if not m.variant_of} == {*told, "none"}
    for name in told:
        picture = xml.fromstring(text.asset(f"methods/{name}.svg"))
        papers = links[name]["papers"].values()
        assert len(picture) > 8 and papers
        assert all(re.fullmatch(r"https://(arxiv\.org/abs/\d{4}\.\d{5}|github\.com/\S+)", link) for link in papers)


def test_cards_tell_what_the_weights_and_the_training_say(tmp_path, monkeypatch):
    monkeypatch.setattr(menu, "FAMILY", tmp_path)
    for name, times in (("target", 4), ("medusa", 1), ("draft_model_story", 1)):
        (tmp_path / name).mkdir()
        save_file({"w": torch.zeros(1000, 1000 * times)}, tmp_path / name / "model.safetensors")
    (tmp_path / "target" / "config.json").write_text('{"exit_layers": [8, 12], "num_hidden_layers": 24}')
    trained = {
        "medusa": {"tokens_seen": 2_500_000, "minutes": 9.2, "machine": {"cores": 1}},
        "target": {"exit_layers": [8, 12]},
    }
    (tmp_path / "provenance.json").write_text(json.dumps(trained))
    page = methods.cards().html_template
    assert "1.0 M, 25% of the target’s 4.0 M" in page and "2.5 M tokens in 9 minutes on one core." in page
    assert "the first 8 of the target’s 24 layers" in page and "its layers 8 and 12" in page
    assert "Story-only draft (1.0 M)" in page and "Large draft" not in page
    assert "${" not in page and "{{" not in page and "\\" not in page and "`" not in page


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_the_chart_holds_the_speed_ups_of_a_temperature_over_their_tokens_per_cycle(temperature):
    rows = toyreport.report()["rows"]
    marks = [trace for trace in results.chart(rows, temperature).data if trace.name]
    assert {(mark.name, *point) for mark in marks for point in zip(mark.x, mark.y, strict=True)} == {
        (results.method(row["drafter"]), row["tau"], row["measured_speedup"])
        for row in rows
        if row["temperature"] == temperature
    }


def test_a_method_looks_the_same_at_every_temperature():
    rows = results.reports()[0]["rows"]
    looks = [
        {
            trace.name: (trace.marker.color, trace.marker.symbol)
            for trace in results.chart(rows, value).data
            if trace.name
        }
        for value in results.temperatures(rows)
    ]
    assert looks[0] == looks[1] and len({*looks[0].values()}) == len(looks[0]) > 5
