"""The tab Methods without a browser: the report as table and sentences, the cards."""

from __future__ import annotations

import io
import json
import re
import xml.etree.ElementTree as xml

import pandas
import pytest
import torch
from safetensors.torch import save_file

from specdec.methods import METHODS
from specdec.ui import menu, results, text
from specdec.ui.components import cards
from tests import toyreport

# ---- the report ----


def test_findings_name_the_fastest_and_the_slow():
    first, second, slow, alpha = results.findings(toyreport.report()["rows"])
    assert first == "Fastest at T = 0: Draft model on Story (1.80×), Medusa tree on Code (1.50×)."
    assert second == "Fastest at T = 0.8: Draft model on Story (1.20×), Draft model on Code (1.25×)."
    assert slow.startswith("2 of 12") and "Prompt lookup on Story at T = 0.8, with 0.80×" in slow
    assert "each column" in alpha
    rows = [row for row in toyreport.report()["rows"] if row["drafter"] == "draft_model"]
    assert "None of the 4" in results.findings(rows)[2]
    rows = toyreport.report()["rows"]
    rows[0]["alpha"] = 1.0
    assert results.findings(rows)[3].count("in 1 of 4 columns") == 1


def test_the_table_and_the_files_hold_every_row():
    rows = toyreport.report()["rows"]
    cells = results.cells(rows)
    assert len(cells) == 12 and cells[0] == ["Prompt lookup", "Story", 0.0, 4, 0.9, None, *cells[0][6:-1], 0.001]
    again = pandas.read_csv(io.StringIO(results.files(toyreport.report())["csv"]))
    assert len(again) == 12 and json.loads(again["alpha_by_position"][0]) == [0.8, 0.7, 0.6]


def test_speed_ups_stand_by_method_and_place():
    columns, cells = results.speedups(toyreport.report()["rows"])
    assert list(columns.values()) == ["Method", "Story, T = 0", "Code, T = 0", "Story, T = 0.8", "Code, T = 0.8"]
    assert cells[0] == ["Prompt lookup", 0.9, 1.1, 0.8, 1.05] and len(cells) == 3
    assert None in results.speedups(toyreport.report()["rows"][1:])[1][0]


# ---- cards and words ----


def test_every_drafter_has_a_name_and_a_card_with_a_picture_and_a_source():
    told, links = text.of_drafters("card"), menu.read_json(text.ASSETS / "cards.json")
    assert told.keys() == links.keys()
    assert {m.name for m in METHODS.values() if not m.variant_of} == {*told, "none"}
    for name in told:
        picture = xml.fromstring((cards.PICTURES / f"{name}.svg").read_text(encoding="utf-8"))
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
    page = cards.cards().html_template
    assert "1.0 M, 25 % of the target’s 4.0 M" in page and "2.5 M tokens in 9 minutes on one core." in page
    assert "the first 8 of the target’s 24 layers" in page and "its layers 8 and 12" in page
    assert "Story-only draft (1.0 M)" in page and "Large draft" not in page
    assert "${" not in page and "{{" not in page and "\\" not in page and "`" not in page


def test_the_chart_holds_every_speed_up_within_its_interval():
    rows = toyreport.report()["rows"]
    lines = results.chart(rows).data
    points = [p for line in lines for p in zip(line.x, line.error_x.arrayminus, line.error_x.array, strict=True)]
    drawn = sorted([x - below, x, x + above] for x, below, above in points)
    ends = ((*row["measured_speedup_interval"], row["measured_speedup"]) for row in rows)
    assert drawn == [pytest.approx([low, x, high]) for low, x, high in sorted((low, x, high) for low, high, x in ends)]
