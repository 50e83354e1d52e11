"""The documented commands, as a user runs them."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
import torch

from specdec import cli as terminal
from specdec import engine, exposure
from specdec.bench import measure
from specdec.bench import suites as bench
from specdec.cli import render
from specdec.engine import Engine
from specdec.events import Committed, Event, Failed, PEER
from specdec.families import hub, zoo
from specdec.figures import machine
from specdec.figures.stats import LaneStats
from specdec.messages import Refused, Step
from specdec.paths import FAMILY
from specdec.traces.file import Trace
from specdec.types import SamplingParams
from specdec.ui import recorded
from specdec.ui.session import session
from tests import toyrun

ROOT = Path(__file__).resolve().parents[1]

ROW = {
    "drafter", "domain", "temperature", "k", "alpha", "alpha_by_position", "draft_acceptance_rate", "tau", "draft_cost",
    "verify_cost", "plain_tokens_per_second", "tokens_per_second", "measured_speedup", "worst_prompt_speedup",
    "accounted_speedup", "identical_to_plain", "repetition", "extra_parameters", "measured_speedup_interval",
    "first_token_seconds", "plain_first_token_seconds", "tau_by_k",
}  # fmt: skip


def test_the_terminal_shows_text_and_figures(capsys) -> None:
    settings = "--drafter draft_model -k 4 --temperature 0.8 --max-tokens 24".split()
    assert terminal.main(["Once upon a time", *settings]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Once upon a time")
    assert re.search(r"^target +embedded$", out, re.M)
    assert re.search(r"^drafter +draft_model, K = 4, T = 0\.8, seed 0$", out, re.M)
    assert "✗" in out and "measured speed-up" in out and "tokens per cycle" in out
    assert "\033" not in out  # no colours into a file


def test_on_zerogpu_the_pair_of_the_page_is_loaded_before_it_is_served(monkeypatch) -> None:
    monkeypatch.setenv("SPACES_ZERO_GPU", "true")
    monkeypatch.setattr(exposure, "host", exposure.Host("public"))
    served = list[object]()

    def launch(*_: Any, **__: Any) -> None:
        served.append(session.process)
        raise OSError("no port")

    monkeypatch.setattr(session, "process", None)
    monkeypatch.setitem(sys.modules, "specdec.zero", SimpleNamespace(ZeroProcess=lambda pair: ("shared", pair)))
    monkeypatch.setattr("gradio.Blocks.launch", launch)
    assert terminal.main(["app"]) == 2
    assert served == [("shared", recorded.first_target())]


def test_what_a_model_writes_does_not_steer_the_terminal(monkeypatch) -> None:
    evil = ("\x1b]0;title\x07", "\x9b2J", "\u202eturned", "\r", " kept\n")
    monkeypatch.setattr(toyrun, "NASTY", evil)
    events = toyrun.events(cycles=10)
    told = [render.render(event, events[: place + 1], False) for place, event in enumerate(events)]
    failed = Failed("speculative", 1, "target", "\x1b[2J", True, 0.0)
    drawn = "".join(told) + render.render(failed, [], False)
    assert not set(drawn) & {"\x1b", "\x07", "\x9b", "\u202e", "\r"}
    assert "⟨001B⟩]0;title⟨0007⟩" in drawn and "⟨202E⟩turned" in drawn and "kept" in drawn and "⟨001B⟩[2J" in drawn


def test_no_error_steers_the_terminal(monkeypatch, capsys) -> None:
    monkeypatch.setattr(zoo, "load_pair", Mock(side_effect=Refused("no template: \x1b]0;title\x07\u202e")))
    monkeypatch.setattr(hub, "is_here", lambda name: True)
    assert terminal.main(["x", "--target", "a/b"]) == 2
    assert capsys.readouterr().err == "specdec: no template: ⟨001B⟩]0;title⟨0007⟩⟨202E⟩\n"
    assert terminal.main(["trace", "/no\x1b[2J"]) == 2
    assert "⟨001B⟩[2J: No such file" in (told := capsys.readouterr().err) and "\x1b" not in told


@pytest.mark.parametrize(("load", "told"), [(0.1, False), (12.0, True)])
def test_a_machine_that_others_use_is_told(load: float, told: bool, monkeypatch) -> None:
    monkeypatch.setattr(machine, "cores", lambda: 2)
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0), raising=False)
    assert (render.BUSY in render.describe_run(toyrun.events())) is told


def test_a_peers_other_text_is_told() -> None:
    events = toyrun.peer_trace().events
    peers = [e for e in events if isinstance(e, Committed) and e.lane == PEER]
    changed = [replace(e, tokens=(7,) * len(e.tokens)) if e in peers else e for e in events]
    same = [*(e for e in events if e.lane == "plain"), *(replace(e, lane=PEER) for e in events if e.lane == "plain")]
    assert render.TEXT_DIFFERS in render.describe_run(changed) and render.TEXT_DIFFERS not in render.describe_run(same)


def test_a_run_that_cannot_be_saved_is_refused_before_it_starts(capsys, tmp_path) -> None:
    for place in (tmp_path, tmp_path / "no" / "run.jsonl"):
        assert terminal.main(["Once", "--max-tokens", "4", "--save", str(place)]) == 1
        told = capsys.readouterr()
        assert not told.out and told.err.startswith(f"specdec: {place}: ") and told.err.count("\n") == 1


def test_the_terminal_races_a_peer(capsys, tmp_path, shallow) -> None:
    saved, family = tmp_path / "run.jsonl", ["--target", shallow]
    assert terminal.main(["Once", *family, "--peer", "transformers", "--max-tokens", "8", "--save", str(saved)]) == 0
    out = capsys.readouterr().out
    assert "transformers, assisted" in out and "against plain decoding" in out and "failed" not in out
    trace = Trace.load(saved)
    assert (trace.header.source, trace.header.lanes) == ("recorded", ("speculative", "transformers", "plain"))
    assert LaneStats.from_events(trace.events, "speculative").tokens == 8


def test_the_terminal_shows_nothing_behind_the_end(capsys) -> None:
    settings = "--drafter draft_model -k 8 --temperature 0".split()
    assert terminal.main(["Q: What is the capital of Italy?\nA:", *settings, "--stop", " is"]) == 0
    shown = capsys.readouterr().out.partition("speculative ")[0]
    assert "capital" in shown.partition("A:")[2]
    assert "Rome" not in shown


def test_a_stop_string_of_the_command_is_read_as_the_pages_are(monkeypatch) -> None:
    start = Mock(side_effect=Refused("enough"))
    monkeypatch.setattr(Engine, "start", start)
    assert terminal.main(["Once", "--stop", r"\n\n", "--stop", r"\\n"]) == 2
    assert start.call_args.args[0].params.stop == ("\n\n", r"\n")


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (["word " * 600], "Shorten it"),
        (["x", "--temperature", "-1"], "temperature must lie between"),
        pytest.param(["x", "--drafter", "adaptive:none"], "its depth cannot be chosen", marks=pytest.mark.long),
        (["x", "--drafter", "medusa", "--peer", "transformers"], "supports a draft model"),
        *([] if torch.cuda.is_available() else [(["x", "--device", "cuda"], "sees no NVIDIA GPU")]),
        (["x", "--target", "/nowhere"], "no folder 'target'"),
        (["x", "--target", ""], "--target is empty"),
        (["x", "--draft", "/nowhere"], "'/nowhere'"),
        (["x", "--drafter", "adaptive:adaptive"], "adaptive cannot wrap adaptive"),
        (["x", "--seed", "many"], "valid integer"),
        (["x", "--nonsense"], "No such option"),
        (["x", "--dtype", "int8", "--peer", "transformers"], "cannot run a target in this precision"),
        (["certify"], "Missing option"),
        (["prove", "/nowhere.py"], "cannot read /nowhere.py"),
        (["bench", "-k", "-3"], "-k"),
        (["bench", "--prompts", "mine.txt", "-k", "2", "-k", "4"], "name one -k"),
        (["bench", "--temperature", "0.8"], "belong to --prompts"),
        (["bench", "--save", "run.jsonl"], "belong to --prompts"),
        (["bench", "--target", "/nowhere"], "no folder 'target'"),
        (["bench", "--drafter", "magic"], "there is no drafter 'magic'; choose from"),
        (["app", "--port", "99999"], "--port"),
        (["app", "--host", "nonsense"], "not an address of this machine"),
        (["app", "--target", "nonsense"], "nonsense is no pair; name smollm2"),
        (["app", "--draft", "a/b"], "--draft belongs to a --target"),
    ],
)
def test_bad_input_gets_one_sentence(capsys, arguments: list[str], advice: str) -> None:
    assert terminal.main(arguments) == 2
    error = capsys.readouterr().err
    assert advice in error and error.count("\n") == 1
    assert exposure.host == exposure.Host()  # what was refused is not kept


SERVER = ("--server", "http://127.0.0.1:9")
OF_MODELS = ("--drafter medusa", "-k 3", "--dtype int8", "--device auto")


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (["run", " "], "prompt is empty"),
        (["a\ud800b"], "half of a character"),
        (["x", "-k", "-1"], "k must be a whole number between 0 and 64"),
        (["x", "--rule", "magic"], "there is no rule 'magic'; choose from rejection"),
        (["x", "--drafter", "magic"], "there is no drafter 'magic'; choose from draft_model"),
        (["x", "--drafter", "eagle3:tree", "--rule", "block"], "judges chains only"),
        (["x", "--plain", SERVER[1]], "belongs to a --server"),
        (["x", "--server", "http://me:word@127.0.0.1:9"], "must not contain a user name or password"),
        *((["x", *SERVER, *words.split()], "the server has its own models") for words in OF_MODELS),
        ([" ", *SERVER], "prompt is empty"),
        (["x", *SERVER], "cannot be reached"),
    ],
)
def test_what_cannot_be_run_is_refused_before_a_model_is_loaded(
    capsys, monkeypatch, arguments: list[str], advice: str
) -> None:
    for name in ("load", "load_pair"):
        monkeypatch.setattr(zoo, name, lambda *_, **__: pytest.fail("models were loaded"))
    assert terminal.main(arguments) == 2
    error = capsys.readouterr().err
    assert advice in error and error.count("\n") == 1 and "word@" not in error


def test_the_traceback_is_shown_to_who_asks(capsys, monkeypatch) -> None:
    monkeypatch.setenv("SPECDEC_DEBUG", "1")
    assert terminal.main(["x", "--temperature", "-1"]) == 2
    first, *_, last = capsys.readouterr().err.splitlines()
    assert first.startswith("Traceback") and last.startswith("specdec: ") and "temperature must lie between" in last


@pytest.mark.long
def test_the_bench_prints_a_table_and_one_line_of_json(capsys, monkeypatch, tmp_path, shallow) -> None:
    few = {name: texts[: 2 if name == "story" else 1] for name, texts in bench.PROMPTS.items()}
    monkeypatch.setattr(bench, "PROMPTS", few)
    monkeypatch.setattr(measure, "gc", SimpleNamespace(collect=lambda: None))
    drafters = "draft_model", "prompt_lookup", "adaptive"
    arguments = ["--target", shallow, "--tokens", "8", "--repeats", "1", "-k", "2", "-k", "3"]
    arguments += [word for name in drafters for word in ("--drafter", name)]
    assert terminal.main(["bench", *arguments, "--json", str(tmp_path / "report.json")]) == 0
    *table, last = capsys.readouterr().out.splitlines()
    report = json.loads(last)
    assert report == json.loads((tmp_path / "report.json").read_text())
    assert {"machine", "rows", "provenance"} <= set(report)
    assert {(r["drafter"], r["domain"], r["temperature"]) for r in report["rows"]} == {
        (drafter, domain, temperature)
        for drafter in drafters
        for domain in ("story", "code", "facts")
        for temperature in (0.0, 0.8)
    }
    for row in report["rows"]:
        assert set(row) >= ROW
        assert row["identical_to_plain"] is (True if row["temperature"] == 0 else None)
        assert row["measured_speedup_interval"][0] <= row["measured_speedup_interval"][1]
        assert row["plain_first_token_seconds"] > 0.0 < row["first_token_seconds"]
    assert len(table) > 12


def test_the_bench_measures_a_pair_from_folders(capsys, monkeypatch, tmp_path, shallow) -> None:
    monkeypatch.setattr(bench, "QUESTIONS", {"qa": bench.QUESTIONS["qa"][:1]})
    for name in ("target", "draft_model"):
        shutil.copytree(Path(shallow, name), tmp_path / name)
        shutil.copytree(FAMILY / "tokenizer", tmp_path / name, dirs_exist_ok=True)
    template = "{% for one in messages %}Q: {{ one.content }}\n{% endfor %}A:"
    (tmp_path / "target" / "chat_template.jinja").write_text(template, encoding="utf-8")
    pair = ["--target", str(tmp_path / "target"), "--draft", str(tmp_path / "draft_model")]
    assert terminal.main(["bench", *pair, "--tokens", "4", "--repeats", "1", "-k", "2"]) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    every = {"draft_model", "quantised", "early_exit", "prompt_lookup", "suffix", "adaptive"}
    assert {row["drafter"] for row in report["rows"]} == every
    assert {row["domain"] for row in report["rows"]} == {"qa"}


def shell(command: str) -> subprocess.CompletedProcess[bytes]:
    line = f"{shlex.quote(sys.executable)} -m specdec {command}"
    return subprocess.run(line, shell=True, executable="/bin/bash", cwd=ROOT, capture_output=True)


@pytest.mark.long
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_what_cannot_be_written_gets_one_sentence() -> None:
    done = shell("Once --drafter draft_model -k 4 --max-tokens 4 > /dev/full")
    assert done.returncode == 1 and b"cannot be written" in done.stderr and done.stderr.count(b"\n") == 1


def test_only_a_failed_write_is_told_as_one(monkeypatch, capsys) -> None:
    monkeypatch.setattr(terminal, "get_group", Mock(side_effect=ConnectionResetError(104, "Connection reset by peer")))
    assert terminal.main(["bench"]) == 1
    assert capsys.readouterr().err == "specdec: ConnectionResetError: Connection reset by peer\n"


@pytest.mark.parametrize("command", ["certify", "doctor", "prove", "trace"])
@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), BrokenPipeError(32, "Broken pipe"), KeyError("x")])
def test_a_failure_to_judge_is_no_verdict(command: str, error: Exception, monkeypatch, capsys) -> None:
    monkeypatch.setattr(terminal, "get_group", Mock(side_effect=error))
    monkeypatch.setattr(terminal, "discard_output", lambda: None)
    assert terminal.main([command, "x"]) == 2


@pytest.mark.long
def test_a_reader_who_has_seen_enough_is_no_failure() -> None:
    done = shell(
        "Once --drafter draft_model -k 4 --max-tokens 40 | (head -1 > /dev/null; sleep 3); exit ${PIPESTATUS[0]}"
    )
    assert done.returncode == 0 and not done.stderr


@pytest.mark.parametrize(
    "start", [["-m", "specdec"], ["-c", "from specdec.__main__ import main; raise SystemExit(main())"], ["app.py"]]
)
def test_ctrl_c_is_quiet_while_modules_are_imported(tmp_path, start: list[str]) -> None:
    (tmp_path / "typer.py").write_text("import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)")
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    done = subprocess.run(
        [sys.executable, *start],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        timeout=60,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"specdec: stopped\n")


def test_ctrl_c_gets_one_sentence(monkeypatch, capsys, tmp_path) -> None:
    saved, events = tmp_path / "run.jsonl", toyrun.events()[:9]

    def pressed(*_: object, **__: object) -> Iterator[Event]:
        yield from events
        raise KeyboardInterrupt

    monkeypatch.setattr(engine, "race_lanes", pressed)
    assert terminal.main(["Once", "-k", "2", "--drafter", "none", "--save", str(saved)]) == 130
    assert capsys.readouterr().err == "specdec: stopped\n"
    assert list(Trace.load(saved).events) == events


def test_an_error_stands_alone_on_its_line(monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)

    def start(_: Engine, request: Any, on_step: Any) -> None:
        on_step(Step("fetch", 3e6, 20e6, 4.2, "a/b"))
        raise Refused("the network is down")

    monkeypatch.setattr(Engine, "start", start)
    assert terminal.main(["Once"]) == 2
    step, error = capsys.readouterr().err.split("\r\033[K")[1:]
    assert (step, error) == ("fetch a/b 3 of 20 MB, 4 s", "specdec: the network is down\n")


def test_a_target_that_failed_is_no_success(monkeypatch, capsys) -> None:
    broken = Failed("speculative", 6, "target", "out of memory", True, 1.0)
    monkeypatch.setattr(engine, "race_lanes", lambda *_, **__: (event for event in [*toyrun.events(), broken]))
    assert terminal.main(["Once", "--drafter", "none", "-k", "4"]) == 1
    told = capsys.readouterr().out
    assert "out of memory" in told and "by default" not in told  # nothing was left open
    broken = replace(broken, lane="plain")
    assert terminal.main(["Once", "--drafter", "draft_model"]) == 1
    told = capsys.readouterr().out
    assert re.search("plain failed +out of memory", told) and "by default" in told


def test_a_first_word_that_is_no_command_is_a_prompt() -> None:
    assert terminal.with_default_command(["Once upon", "-k", "4"]) == ["run", "Once upon", "-k", "4"]
    assert terminal.with_default_command(["--drafter", "medusa", "Once"]) == ["run", "--drafter", "medusa", "Once"]
    assert terminal.with_default_command(["bench", "-k", "-3"]) == ["bench", "-k", "-3"]
    assert terminal.with_default_command(["run", "aap"]) == ["run", "aap"]
    with pytest.raises(ValueError, match="no command 'aap'; write app"):
        terminal.with_default_command(["aap"])


def test_no_round_that_chooses_k_has_a_seed_of_those_that_report(monkeypatch, shallow) -> None:
    seeds: list[set[int]] = []

    def measure_pairs(*given: Any) -> Any:
        seeds.append(set())
        return measure.measure_pairs(*given)

    def params(temperature: float, *, seed: int, **others: Any) -> SamplingParams:
        seeds[-1].add(seed)
        return SamplingParams(temperature, seed=seed, **others)

    monkeypatch.setattr(bench, "measure_pairs", measure_pairs)
    monkeypatch.setattr(measure, "SamplingParams", params)
    monkeypatch.setattr(bench, "TEMPERATURES", (0.8,))
    asked = {"story": bench.PROMPTS["story"][:1]}
    rows = bench.measure_drafters(Engine(shallow), asked, ["prompt_lookup"], (1, 2), tokens=4, repeats=3)
    assert len(list(rows)) == 1
    choosing, reporting = seeds
    assert len(choosing) == bench.CHOOSING_ROUNDS + 1 and len(reporting) == 4
    assert not choosing & reporting
