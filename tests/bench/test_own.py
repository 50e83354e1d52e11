"""Prompts of one's own: a row for each, the slowest first, and its run opens on the page."""

import json
from unittest.mock import Mock

import pytest

from specdec import cli as terminal
from specdec import Engine, SamplingParams, Trace
from specdec.bench import measure, suites
from specdec.bench.own import measure_prompts, Plan, report_prompts
from specdec.drafters.suffix import SuffixDrafter
from specdec.engine import RunFailed
from specdec.events import Started
from specdec.messages import Refused
from specdec.paths import read_prompts


def test_a_file_of_prompts_becomes_rows_and_the_slowest_run(engine, shallow, tmp_path, capsys) -> None:
    file, saved = tmp_path / "prompts.txt", tmp_path / "worst.jsonl"
    file.write_text('Once upon a time\n\n{"prompt": "def main():"}\n', encoding="utf-8")
    words = ["bench", "--target", shallow, "--prompts", str(file), "--drafter", "draft_model", "-k", "2"]
    words += ["--tokens", "6", "--repeats", "1", "--save", str(saved), "--json", str(tmp_path / "report.json")]
    assert terminal.main(words) == 0
    out = capsys.readouterr().out
    assert "α by place" in out and "Once upon a time" in out and "def main():" in out
    report = json.loads(out.splitlines()[-1])
    assert report == json.loads((tmp_path / "report.json").read_text()) and "provenance" in report
    assert {row["text"] for row in report["rows"]} == set(read_prompts(file))
    trace = Trace.load(saved)
    assert trace.header.prompt == report["rows"][0]["text"]
    assert {event.params.seed for event in trace.events if isinstance(event, Started)} == {1}  # a measured one
    frame = measure_prompts(engine, Plan(read_prompts(file), ["draft_model", "prompt_lookup"], 2, tokens=6, repeats=1))
    assert len(frame) == 4 and frame["speedup"].dropna().is_monotonic_increasing


def test_a_target_without_drafts_is_measured_with_the_usual_drafter(shallow, capsys) -> None:
    with Engine(shallow, dtype="float32", device="cpu") as engine:
        for name in [name for name, loaded in engine.models.drafters.items() if loaded.part]:
            del engine.models.drafters[name]
        report_prompts(engine, Plan(["Once upon a time"], [], 2, tokens=6, repeats=1))
    assert [row["drafter"] for row in json.loads(capsys.readouterr().out.splitlines()[-1])["rows"]] == ["suffix"]


def test_a_run_that_breaks_off_after_the_measurement_leaves_the_report(engine, tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setattr(engine, "race", Mock(side_effect=RunFailed("the cable is out", None)))
    report_prompts(engine, Plan(["Once upon a time"], ["suffix"], 2, tokens=6, repeats=1), save=tmp_path / "w.jsonl")
    out, err = capsys.readouterr()
    assert json.loads(out.splitlines()[-1])["rows"] and "is not kept: the cable is out" in err


def test_a_run_with_a_lost_draft_is_no_measurement(engine, monkeypatch) -> None:
    monkeypatch.setattr(SuffixDrafter, "propose", Mock(side_effect=OSError("the cable is out")))
    with pytest.raises(Refused, match=r"suffix cannot be measured, .*the cable is out"):
        measure.run(engine, "Once upon a time", "suffix", 2, SamplingParams(max_tokens=6))


def test_a_report_that_cannot_be_written_is_refused_before_it_is_measured(
    shallow, tmp_path, capsys, monkeypatch
) -> None:
    monkeypatch.setattr(suites, "make_engine", lambda *_: pytest.fail("models were loaded"))
    (tmp_path / "prompts.txt").write_text("Once upon a time", encoding="utf-8")
    place = tmp_path / "no" / "file"
    for words in (["--json", str(place)], ["--prompts", str(tmp_path / "prompts.txt"), "--save", str(place)]):
        assert terminal.main(["bench", "--target", shallow, *words]) == 1
        assert capsys.readouterr().err.startswith(f"specdec: {place}: ")


def test_a_file_without_prompts_says_what_to_write(tmp_path) -> None:
    wrong = {"\n": "holds no prompt", '{"text": "x"}': "line 1: JSON needs `prompt`"}
    wrong |= {'one\n{"prompt": 5}': "line 2: JSON needs `prompt`"}
    for content, sentence in wrong.items():
        (tmp_path / "wrong").write_text(content, encoding="utf-8")
        with pytest.raises(Refused, match=sentence):
            read_prompts(tmp_path / "wrong")
    (tmp_path / "right").write_text("one\u2028prompt\nanother\n", encoding="utf-8")
    assert read_prompts(tmp_path / "right") == ["one\u2028prompt", "another"]
