"""The tab Methods without a browser: kinds of token, the report as table and sentences, a measurement, the cards."""

from __future__ import annotations

import io
import json
import re
import xml.etree.ElementTree as xml

import pandas
import pytest
import toyreport
import toyrun

from specdec.figures.stats import Comparison, token_kind, TOKEN_KINDS
from specdec.methods import METHODS
from specdec.ui import charts, menu, request, results, session, text
from specdec.ui.components import cards
from specdec.ui.tabs import methods

# ---- kinds of token ----


@pytest.mark.parametrize(
    ("piece", "before", "kind"),
    [
        (" house", " the", "word_start"),
        ("house", "", "word_start"),
        ("wife", " house", "continuation"),
        ("t", "don’", "continuation"),
        ("name", "self.", "word_start"),
        (" x", " y", "word_start"),
        ("\n    def", ":", "word_start"),
        ("2nd", " ", "digit"),
        (" 42", "is", "digit"),
        ("b", "4", "continuation"),
        (" ", "word", "white_space"),
        ("\n\n", ".", "white_space"),
        ("", "word", "white_space"),
        ('."', "word", "punctuation"),
        ("_name", "self", "punctuation"),
        ("<0xE2>", "a", "punctuation"),
        ("é", "caf", "continuation"),
        ("中", "。", "word_start"),
    ],
)
def test_a_token_is_of_the_kind_of_its_first_visible_character(piece, before, kind):
    assert token_kind(piece, before) == kind and kind in TOKEN_KINDS


# ---- the report ----


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    return tmp_path


def test_the_report_of_all_methods_is_preferred_and_junk_is_none(folder):
    assert results.recorded() == {}
    (folder / "methods.json").write_text("[1", encoding="utf-8")
    assert results.recorded() == {}
    toyreport.save(folder, "embedded", kinds=False)
    assert "alpha_by_kind" not in results.recorded()["rows"][0]
    toyreport.save(folder)
    assert results.recorded()["rows"] == toyreport.report()["rows"]
    (folder / "methods.json").write_text(json.dumps({"rows": [7, {"drafter": "x"}]}), encoding="utf-8")
    assert results.recorded()["rows"] == []


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
    table = results.frame(rows)
    assert len(table) == 12 and list(table.columns) == list(text.strings("methods")["table"]["columns"].values())
    assert table["Speed-up ×"].max() == 1.8 and table["Method"].iloc[-1] == "Medusa tree"
    cells = results.cells(table)
    assert cells[0][:5] == ["Prompt lookup", "Story", 0.0, 4, 0.9] and cells[0][5] is None
    assert json.loads(json.dumps(cells)) == cells
    again = pandas.read_csv(io.StringIO(results.csv(rows)))
    assert len(again) == 12 and json.loads(again["alpha_by_kind"][0]) == toyreport.KINDS


@pytest.mark.parametrize("kinds", [True, False])
def test_a_place_shows_positions_and_kinds_where_they_are(kinds):
    positions, spelled, by_kind, in_words = methods.of_place(toyreport.report(kinds)["rows"], "story", 0.8)
    assert drawn(positions)["data"][0]["z"] == [[0.8, 0.7, 0.6]] * 3
    assert spelled[0] == "Prompt lookup: 1 0.80, 2 0.70, 3 0.60"
    assert any(map(any, drawn(by_kind)["data"][0]["z"])) is kinds
    assert ("the rest of a word 0.90" in in_words[0]) is kinds


# ---- charts ----


def drawn(chart):
    return json.loads(chart.to_json())


def test_a_heat_map_writes_its_figures_and_marks_the_best():
    plot = drawn(charts.heat_map(["a", "b"], ["x", "y"], [[0.8, 1.2], [1.5, None]], even=1.0))
    assert plot["data"][0]["text"] == [["0.80", "<b>1.20</b>"], ["<b>1.50</b>", ""]]
    trace = plot["data"][0]
    middle = (1 - trace["zmin"]) / (trace["zmax"] - trace["zmin"])
    assert (trace["zmin"], trace["zmax"]) == (0.75, 1.5) and trace["colorscale"][1] == [middle, charts.MIDDLE]
    assert plot["layout"]["dragmode"] is False and "http" not in json.dumps(plot)


def test_cells_are_readable():
    def light(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for tint in (charts.LOW, charts.MIDDLE, charts.HIGH):
        assert (light(tint) + 0.05) / (light(charts.CELL_INK) + 0.05) > 7


# ---- measured here ----


@pytest.fixture
def asked(monkeypatch):
    """The toy run in place of models; what was asked for, in order."""
    calls = []

    def race(family, prompt, drafter, k, params, rule, peer, details):
        calls.append((prompt, drafter, k, params, details))
        return (event for event in toyrun.events())

    monkeypatch.setattr(session, "_engine", lambda *_: (toyrun.Family(), race))
    return calls


def test_a_measurement_warms_up_runs_every_text_and_tells_both(asked):
    rows = toyreport.report()["rows"]
    updates = list(methods.measured(rows, ["draft_model", "prompt_lookup"], "story", 0.8, 3))
    assert [call[1] for call in asked] == ["draft_model"] * 3 + ["prompt_lookup"] * 3
    assert [call[3].max_tokens for call in asked[:3]] == [methods.WARM_UP, methods.TOKENS, methods.TOKENS]
    assert all(call[3].temperature == 0.8 and call[3].ignore_end and not call[4] for call in asked)
    assert [call[0] for call in asked[1:3]] == text.prompts()["story"][:2]
    tables = [update[3] for update in updates if isinstance(update[3], list)]
    assert [len(table) for table in tables] == [1, 2]
    race = Comparison.from_events(toyrun.events())
    for row, recorded in zip(tables[-1], (1.2, 0.8), strict=True):
        shown = dict(zip(text.strings("methods")["live"]["columns"], row, strict=True))
        assert shown["here"] == pytest.approx(race.measured_speedup, abs=1e-4)
        assert (shown["recorded"], shown["k_recorded"]) == (recorded, 4)
        assert shown["draft_cost"] == pytest.approx(race.draft_cost, abs=1e-4)
    assert "2 methods" in updates[-1][0]["value"] and not session._machine.locked()


def test_the_pair_of_the_page_is_measured_and_named(asked, monkeypatch):
    monkeypatch.delenv("SPECDEC_PAIRS", raising=False)
    monkeypatch.setattr(session, "_fetch", lambda family: iter(()))
    told, drafters, texts = methods.of_target("smollm2")
    assert "SmolLM2" in told[0] and [kind for _, kind in texts["choices"]] == list(text.questions())
    assert "adaptive" in [name for _, name in drafters["choices"]] and "adaptive" not in drafters["value"]
    updates = list(methods.measured(toyreport.report()["rows"], ["suffix"], "qa", 0.0, 3, "smollm2"))
    assert [call[0] for call in asked] == [text.prompts()["qa"][i] for i in (0, 0, 1)]
    ((_, here, recorded, *_),) = next(update[3] for update in updates if isinstance(update[3], list))
    assert recorded is None and here is not None  # what was recorded is another model's
    assert {request.family for request in methods.plan(["suffix"], "qa", 0.0, 3, "smollm2")} == {"smollm2"}
    assert methods.of_target("embedded")[0] != told
    assert "text must be one of" in next(methods.measured([], ["suffix"], "story", 0.0, 3, "smollm2"))[0]["value"]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"drafters": []}, "at least one"),
        ({"drafters": None}, "at least one"),
        ({"drafters": ["magic"]}, "drafter"),
        ({"drafters": [["medusa"]]}, "drafter"),
        ({"domain": "../story"}, "text must be one of"),
        ({"domain": None}, "text must be one of"),
        ({"temperature": "hot"}, "temperature"),
        ({"k": 99}, "K must"),
    ],
)
def test_bad_input_is_one_sentence_and_starts_nothing(asked, change, word):
    given = {"drafters": ["draft_model"], "domain": "story", "temperature": 0.0, "k": 4, **change}
    with pytest.raises(request.InputError, match=word):
        methods.plan(*given.values())
    (update,) = methods.measured([], *given.values())
    assert update[0]["wrong"] is True and asked == []


def test_a_measurement_past_its_deadline_keeps_what_it_has(asked, monkeypatch):
    clock = iter(range(10_000))
    monkeypatch.setattr(session.time, "monotonic", lambda: next(clock) / 4)
    updates = list(methods.measured([], ["draft_model", "prompt_lookup"], "story", 0.0, 3))
    assert "Stopped after 60 seconds" in updates[-1][0]["value"] and not session._machine.locked()


# ---- cards and words ----


def test_every_drafter_has_a_name_and_a_card_with_a_picture_and_a_source():
    told = text.of_drafters("card")
    assert told.keys() == {m.name for m in METHODS.values() if m.card}
    assert {m.name for m in METHODS.values() if not m.variant_of} == {*told, "none"}
    for name in told:
        picture = xml.fromstring((cards.PICTURES / f"{name}.svg").read_text(encoding="utf-8"))
        card = METHODS[name].card
        assert len(picture) > 8 and card and card.papers
        assert all(
            re.fullmatch(r"https://(arxiv\.org/abs/\d{4}\.\d{5}|github\.com/\S+)", link)
            for link in card.papers.values()
        )


def test_cards_tell_what_the_weights_and_the_training_say(tmp_path, monkeypatch):
    head = json.dumps({"w": {"dtype": "F32", "shape": [1000, 1000]}}).encode()
    monkeypatch.setattr(menu, "FAMILY", tmp_path)
    for name, times in (("target", 4), ("medusa", 1), ("draft_model_story", 1)):
        (tmp_path / name).mkdir()
        for i in range(times):
            (tmp_path / name / f"model-{i}.safetensors").write_bytes(len(head).to_bytes(8, "little") + head)
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
