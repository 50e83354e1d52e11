"""The engine in its own process says what it says in this one, stops when told to, and dies without taking anybody."""

import contextlib
import inspect
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from specdec import calls, children
from specdec.drafters.base import NoDrafter
from specdec.engine import Engine, Run
from specdec.events import Failed
from specdec.families.zoo import resolve_device
from specdec.loop import NO_ROOM
from specdec.messages import Refused, TranslatableText
from specdec.methods import Choice
from specdec.models import build
from specdec.process import EngineProcess, ProcessDied
from specdec.settings import RunRequest
from specdec.traces import file
from specdec.traces.file import Trace
from specdec.types import Proposal, SamplingParams
from specdec.ui.session import session
from specdec.ui.tabs import race
from specdec.ui.text import bind_language
from tests import toyrun
from tests.tokens import ids

ROOT = Path(__file__).resolve().parents[1]
PARAMS = SamplingParams(temperature=0.8, max_tokens=12, seed=3)
LONG = SamplingParams(max_tokens=200, ignore_end=True)
PROMPT = "The old lighthouse keeper"


@pytest.fixture(scope="module")
def process() -> Iterator[EngineProcess]:
    with contextlib.closing(EngineProcess()) as process:
        yield process


def items(answers: Iterable[Any]) -> list[Any]:
    return [answer for answer in answers if answer is not None]


def race_on(process: EngineProcess, **changes: Any) -> Generator[Any, None, None]:
    request = RunRequest(**{"prompt": PROMPT, "drafter": "none", "k": 1, "params": PARAMS} | changes)
    return process.call("run", request, "cpu", "", str)


def run(process: EngineProcess) -> str:
    return "".join(item for item in race_on(process) if isinstance(item, str))


def texts(log: str) -> dict[str, list[int]]:
    return {lane: ids(Trace.loads(log).events, lane) for lane in ("speculative", "plain")}


def test_a_run_over_there_is_a_run_here(process) -> None:
    here = Engine(device="cpu").race(PROMPT, "draft_model", 3, params=PARAMS)
    answers = items(race_on(process, drafter="draft_model", k=3))
    log = "".join(item for item in answers if isinstance(item, str))
    assert [item for item in answers if not isinstance(item, str)][-1] == Choice("draft_model", 3)  # as was asked
    there = Trace.loads(log)
    assert there.header.models == here.header.models | {"threads": there.header.models["threads"]}
    assert "torch" in there.header.machine
    assert texts(log) == texts(here.dumps()) and len(there.events) == len(here.events)


def test_preparing_says_what_it_does_and_measures_each_drafter_once(shallow, tmp_path, monkeypatch) -> None:
    shutil.copytree(build.folder(), tmp_path / "specdec", ignore=shutil.ignore_patterns("*.json"))  # without costs
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with contextlib.closing(EngineProcess()) as process:
        *steps, choice = items(process.call("prepare", shallow, "cpu"))
        names = list(dict.fromkeys(step.name for step in steps))
        long = [name for name in ("compile", "load", "measure") if name in names]  # what is done at once is not told
        assert names == long and "measure" in names and all(step.seconds >= 0 for step in steps)
        assert any(0 < step.done < step.total for step in steps if step.name == "measure") and choice.speedup > 0
        assert items(process.call("prepare", shallow, "cpu")) == [choice]


@pytest.mark.parametrize("after", [0, 5])
def test_a_closed_run_stops_over_there_and_the_next_one_is_whole(process, after: int) -> None:
    whole = run(process)
    running = race_on(process, params=LONG)
    for _ in range(after):
        next(running)
    running.close()
    assert texts(run(process)) == texts(whole)


def test_what_the_engine_refuses_arrives_as_it_was_said(process) -> None:
    with pytest.raises(Refused) as refused:
        items(race_on(process, prompt="word " * 3000))
    said = refused.value.args[0]
    assert isinstance(said, TranslatableText) and "{n}" in said.template and said.values["n"] > said.values["limit"]
    with pytest.raises(Refused, match="no drafter 'nothing'"):
        items(race_on(process, drafter="nothing", k=2))
    with pytest.raises(Refused, match="holds no folder"):
        items(process.call("prepare", "/nowhere", "cpu"))
    with pytest.raises(RuntimeError, match="KeyError: 'no such call'"):
        items(process.call("no such call"))


def test_a_child_sees_its_arguments_and_the_folders_that_were_asked_for(tmp_path, monkeypatch) -> None:
    (tmp_path / "asked.py").write_text("import sys, specdec\nprint(sys.argv[1:], __name__, specdec.__file__)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.chdir("/")
    said, _ = children.start("asked", "-m", "b c", stdout=subprocess.PIPE, text=True).communicate()
    assert said.split() == f"['-m', 'b c'] __main__ {ROOT / 'specdec' / '__init__.py'}".split()


def test_a_process_that_cannot_start_leaves_the_turn_to_the_next_call(monkeypatch) -> None:
    with contextlib.closing(EngineProcess()) as process:
        monkeypatch.setattr(process, "start", Mock(side_effect=OSError("too many open files")))
        with pytest.raises(ProcessDied):
            items(race_on(process))
        assert not process._turn.locked()


def generators_of_ours() -> int:
    frames = [frame.frame for frame in inspect.stack() if "/specdec/" in frame.filename]
    return sum(bool(frame.f_code.co_flags & inspect.CO_GENERATOR) for frame in frames)


def test_an_event_passes_three_generators_on_each_side_and_is_encoded_once(monkeypatch) -> None:
    counts, encoded = list[int](), Mock(wraps=json.dumps)

    class Watched(NoDrafter):
        def propose(self, *arguments: Any) -> Proposal:
            counts.append(generators_of_ours())
            return super().propose(*arguments)

    request = RunRequest(PROMPT, Watched(), 2, PARAMS)
    engine = Engine(device="cpu")
    engines = {("embedded", "cpu"): engine}
    assert engine.models  # loaded before anything is counted
    monkeypatch.setattr(engine, "prepare", lambda *_, **__: Choice(request.drafter, 2))
    monkeypatch.setattr(file.json, "dumps", encoded)
    sent = list[Any]()
    calls.run(engines, sent.append, request, "cpu", "", str)
    assert 0 < max(counts) <= 3
    lines = "".join(item for item in sent if isinstance(item, str)).splitlines()
    assert len(lines) == encoded.call_count  # the header and each event, once

    counts.clear()
    messages = iter([*((1, "item", answer) for answer in (Choice("none", 1), *lines)), (1, "end", None)])

    def receive() -> Any:
        counts.append(generators_of_ours())
        return next(messages)

    process = EngineProcess()
    monkeypatch.setattr(process, "start", Mock())
    monkeypatch.setattr(process, "_connection", SimpleNamespace(poll=bool, recv=receive, send=Mock()))
    monkeypatch.setattr(session, "process", process)
    encoded.reset_mock()
    list(bind_language(race.begin)("own", PROMPT, "none", 1))
    assert 0 < max(counts) <= 3 and not encoded.called


def test_a_device_has_one_name_so_that_no_model_is_loaded_twice() -> None:
    engines: calls.Engines = {}
    first = calls.engine_for(engines, "embedded", "auto")
    assert calls.engine_for(engines, "embedded", resolve_device("auto")) is first and len(engines) == 1


def test_a_cycle_is_sent_whole_however_slow_it_is(monkeypatch) -> None:
    monkeypatch.setattr(calls, "UPDATES_PER_SECOND", math.inf)  # as if there were time enough between any two events
    events = [*toyrun.speculative(2), *toyrun.plain(3)]
    events.insert(5, Failed("speculative", 2, "drafter", "no draft", False, 0.0))
    running = Run(Choice("none", 1), toyrun.header(), (event for event in events))
    engines = {("embedded", "cpu"): SimpleNamespace(start=lambda *_, **__: running)}
    sent = list[Any]()
    calls.run(engines, sent.append, RunRequest(PROMPT, "none", 1, PARAMS), "cpu", "", str)
    ends = [json.loads(item.splitlines()[-1])["event"] for item in sent if isinstance(item, str) and item]
    assert ends == ["started", *["committed"] * 3, "finished"] * 2


@pytest.mark.long
def test_a_hung_engine_is_left_at_once_and_ended_once_it_was_silent_for_too_long(process, monkeypatch) -> None:
    running = race_on(process, params=LONG)
    while next(running) is None:
        pass
    first = process.start()
    os.kill(first.pid or 0, signal.SIGSTOP)
    while next(running) is not None:  # what it said before
        pass
    closing = threading.Thread(target=running.close, daemon=True)
    closing.start()
    closing.join(60)
    assert not closing.is_alive() and first.is_alive()
    waiting = race_on(process)
    assert next(waiting) is None and first.is_alive()  # meanwhile its reader may do something else
    waiting.close()
    monkeypatch.setattr("specdec.process.SILENCE_S", 0.0)
    with pytest.raises(ProcessDied):
        items(race_on(process))
    monkeypatch.undo()
    assert run(process) and not first.is_alive() and process.start() is not first


def test_calls_from_many_threads_take_turns(process) -> None:
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(texts(run(process)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and all(one == found[0] for one in found)


def test_a_process_that_dies_breaks_its_call_and_the_next_has_another(process) -> None:
    running = race_on(process, params=LONG)
    while next(running) is None:
        pass
    first = process.start()
    first.kill()
    with pytest.raises(ProcessDied):
        items(running)
    assert process.start() is not first
    assert run(process)


ENGINE = """
import os
import time
import torch

def fine(engines, send):
    send(os.getpid())

def spoil(engines, send):  # as torch has it after an illegal address; the call itself may have told that as an event
    def stays():
        raise RuntimeError("CUDA error: an illegal memory access was encountered")
    torch.cuda.is_initialized, torch.cuda.synchronize = lambda: True, stays
    send(os.getpid())

def half(engines, send):
    "\\ud800".encode()

def wrong(engines, send):
    int("seven")

def full(engines, send):
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

CALLS = {"fine": fine, "spoil": spoil, "half": half, "wrong": wrong, "full": full}
"""


@pytest.fixture
def toy(tmp_path, monkeypatch) -> Iterator[EngineProcess]:
    (tmp_path / "toy_engine.py").write_text(ENGINE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    with contextlib.closing(EngineProcess("toy_engine")) as process:
        yield process


def test_its_environment_is_set_before_it_imports_an_engine(tmp_path, monkeypatch) -> None:
    code = "import os; HERE = os.environ['HERE']; CALLS = {'ask': lambda engines, send: send(HERE)}"
    (tmp_path / "asking_engine.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("HERE", "the page")
    with contextlib.closing(EngineProcess("asking_engine", {"HERE": "the engine"})) as process:
        assert items(process.call("ask")) == ["the engine"]


@pytest.mark.long
def test_after_an_error_that_stays_on_the_gpu_the_next_call_has_another_process(toy) -> None:
    (first,) = items(toy.call("fine"))
    spoiling = toy.call("spoil")
    told = [next(spoiling)]
    waiting = toy.call("fine")
    assert next(waiting) is None
    assert items([*told, *spoiling]) == [first]
    (second,) = items(waiting)
    assert second != first


def test_a_call_after_one_that_was_stopped_while_it_spoiled_the_gpu_is_answered(toy) -> None:
    spoiling = toy.call("spoil")
    while next(spoiling) is None:
        pass
    spoiling.close()
    assert len(items(toy.call("fine"))) == 1


def test_an_error_of_a_program_is_no_sentence_for_visitors(toy) -> None:
    with pytest.raises(RuntimeError, match="UnicodeEncodeError: 'utf-8' codec can't encode"):
        items(toy.call("half"))
    with pytest.raises(RuntimeError, match="ValueError: invalid literal"):
        items(toy.call("wrong"))


@pytest.mark.long
def test_where_a_gpu_has_no_room_a_call_ends_in_a_sentence_and_the_next_is_whole(toy) -> None:
    with pytest.raises(ValueError) as refused:
        items(toy.call("full"))
    assert refused.value.args[0] == NO_ROOM
    assert items(toy.call("fine")) == [toy.start().pid]


def test_it_ends_with_whoever_started_it() -> None:
    code = (
        "import os; from specdec.process import EngineProcess; process = EngineProcess()\n"
        "print(process.start().pid, flush=True); os._exit(9)"  # without any farewell
    )
    pid = int(subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60).stdout)
    deadline = time.monotonic() + 60
    while Path(f"/proc/{pid}").exists() and "Z" not in Path(f"/proc/{pid}/status").read_text().split("State:")[1][:4]:
        assert time.monotonic() < deadline, "the engine outlives the page"
        time.sleep(0.1)


@pytest.mark.long
def test_the_page_has_its_engine_prepared_before_anybody_asks() -> None:
    code = (
        "import sys, time; from specdec.ui import recorded, session as module; module.PREPARE_AFTER_S = 0.0\n"
        "recorded.first_target = lambda: 'embedded'\n"
        "session = module.session\n"
        "session.warm_up(); session.warm_up()\n"
        "while 'embedded' not in session.choices: time.sleep(0.1)\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=120)
