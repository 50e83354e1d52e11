"""The engine in its own process says what it says in this one, stops when told to, and dies without taking anybody."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from specdec.events import Committed, Finished, Verified
from specdec.families import zoo
from specdec.lanes import race
from specdec.lanes import worker as engine
from specdec.lanes.worker import Worker, WorkerDied
from specdec.types import SamplingParams, TranslatableText

ROOT = Path(__file__).resolve().parents[2]
PARAMS = SamplingParams(temperature=0.8, max_tokens=12, seed=3)
LONG = SamplingParams(max_tokens=200, ignore_end=True)
PROMPT = "The old lighthouse keeper"


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with contextlib.closing(Worker()) as worker:
        yield worker


def test_a_run_over_there_is_a_run_here(worker: Worker) -> None:
    assert not worker.is_loaded("embedded")
    family = worker.load("embedded", "cpu")
    assert worker.is_loaded("embedded") and not worker.is_loaded("another")
    assert family.describe()["target"] == zoo.load().describe()["target"]
    assert worker.machine is not None and "torch" in worker.machine
    there = list(worker.race(family, PROMPT, "draft_model", 3, PARAMS, rule="block"))
    here = list(race.race(zoo.load(), PROMPT, "draft_model", 3, PARAMS, rule="block"))
    for lane in ("speculative", "plain"):
        tokens, expected = (
            [e.tokens for e in told if isinstance(e, Committed) and e.lane == lane] for told in (there, here)
        )
        assert tokens == expected
    details = next(e for e in there if isinstance(e, Verified) and e.positions)
    assert details.positions[0].target is not None
    assert sum(isinstance(e, Finished) for e in there) == 2


def test_a_closed_run_stops_over_there_and_the_next_one_is_whole(worker: Worker) -> None:
    family = worker.load("embedded", "cpu")
    whole = list(worker.race(family, PROMPT, "none", 0, PARAMS))
    running = worker.race(family, PROMPT, "none", 0, LONG)
    told = list(islice(running, 5))
    running.close()
    events = list(worker.race(family, PROMPT, "none", 0, PARAMS))
    assert len(told) == 5 and len(events) == len(whole)
    never_begun = worker.race(family, PROMPT, "none", 0, LONG)
    never_begun.close()
    assert len(list(worker.race(family, PROMPT, "none", 0, PARAMS))) > 12


def test_what_the_engine_refuses_arrives_as_it_was_said(worker: Worker) -> None:
    family = worker.load("embedded", "cpu")
    with pytest.raises(ValueError) as refused:
        list(worker.race(family, "word " * 3000, "none", 0, PARAMS))
    said = refused.value.args[0]
    assert isinstance(said, TranslatableText) and "{n}" in said.template and said.values["n"] > said.values["limit"]
    with pytest.raises(ValueError, match="no drafter 'nothing'"):
        list(worker.race(family, PROMPT, "nothing", 2, PARAMS))
    with pytest.raises(ValueError, match="holds no folder"):
        worker.load("/nowhere", "cpu")
    with pytest.raises(RuntimeError, match="KeyError: 'no such call'"):
        list(worker.call("no such call"))


def leave_at_once(running: Generator[Any, None, None]) -> None:
    """Close it as Gradio does, on a thread that must not be held up."""
    closing = threading.Thread(target=running.close, daemon=True)
    closing.start()
    closing.join(60)
    assert not closing.is_alive(), "closing waits for the engine"


@pytest.fixture
def hung(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> Generator[Any, None, None]:
    """A run that has begun, and whose engine does nothing any more."""
    monkeypatch.setattr(engine, "NEXT_ANSWER", 1e9)
    family = worker.load("embedded", "cpu")
    running = worker.race(family, PROMPT, "none", 0, LONG, pulse=True)
    next(running)
    assert worker._process is not None
    os.kill(worker._process.pid, signal.SIGSTOP)
    while next(running) is not None:  # what it said before
        pass
    return running


def grow_impatient(worker: Worker) -> None:
    assert worker._process is not None
    worker._process._until = 0.0


def test_a_hung_engine_is_left_at_once_and_the_next_run_has_another(worker: Worker, hung: Any) -> None:
    first = worker._process
    assert first is not None
    leave_at_once(hung)
    assert first.alive and first.turn.locked()
    family = worker.load("embedded", "cpu")
    waiting = worker.race(family, PROMPT, "none", 0, PARAMS, pulse=True)
    assert next(waiting) is None  # meanwhile its reader may do something else
    grow_impatient(worker)
    events = [event for event in waiting if event is not None]
    assert isinstance(events[-1], Finished) and not first.alive and worker._process is not first


def test_a_silent_engine_is_ended_and_only_its_run_is_lost(worker: Worker, hung: Any) -> None:
    grow_impatient(worker)
    with pytest.raises(WorkerDied):
        list(hung)
    assert list(worker.race(worker.load("embedded", "cpu"), PROMPT, "none", 0, PARAMS))


def test_calls_from_many_threads_take_turns(worker: Worker) -> None:
    family, lengths = worker.load("embedded", "cpu"), []
    work = lambda: lengths.append(len(list(worker.race(family, PROMPT, "none", 0, PARAMS))))  # noqa: E731
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lengths) == 4 and len(set(lengths)) == 1


@pytest.mark.parametrize(
    "said",
    [
        TranslatableText("Prompt {n} of {{braces}}.", n=3),
        TranslatableText("In {file}", file=TranslatableText("{a}", a="{x}")),
    ],
)
def test_sentences_keep_how_they_were_made(said: TranslatableText) -> None:
    again = pickle.loads(pickle.dumps(said))
    assert again == said and (again.template, again.values) == (said.template, said.values)


def test_a_process_that_dies_breaks_its_call_and_the_next_has_another(worker: Worker) -> None:
    family = worker.load("embedded", "cpu")
    running = worker.race(family, PROMPT, "none", 0, LONG)
    next(running)
    assert worker._process is not None
    first = worker._process.pid
    worker._process.kill()
    with pytest.raises(WorkerDied):
        list(running)
    assert not worker.is_loaded("embedded")
    worker.start()
    assert not worker.is_loaded("embedded") and worker._process.pid != first
    assert list(worker.race(worker.load("embedded", "cpu"), PROMPT, "none", 0, PARAMS))


SPOILED = """
import os, threading
import torch
from specdec.lanes import worker

def fine():
    yield os.getpid()

def spoil():  # as torch has it after an illegal address; the call itself may have told that as an event
    def stays():
        raise RuntimeError("CUDA error: an illegal memory access was encountered")
    torch.cuda.is_initialized, torch.cuda.synchronize = lambda: True, stays
    yield os.getpid()

worker.serve({"fine": fine, "spoil": spoil})
"""


ENDLESS = """
import os, sys, time
from specdec.lanes import worker

def endless(go):
    yield 0
    while not os.path.exists(go):
        time.sleep(0.01)
    yield from range(1, 200)

worker.serve({"endless": endless})
"""


def test_a_stop_that_comes_late_takes_back_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "endless_engine.py").write_text(ENDLESS, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with contextlib.closing(Worker("endless_engine")) as worker:
        running = worker.call("endless", str(tmp_path / "go"))
        assert next(running) == 0
        process = worker._process
        assert process is not None
        process.stop(process._number)
        process.stop(process._number - 1)
        time.sleep(0.5)  # until both have been read
        (tmp_path / "go").touch()
        assert len(list(running)) <= 1


def test_an_engine_that_was_idle_is_not_ended_as_its_next_call_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long nobody called, and however long the caller needs between its turn and its request."""
    patience = 1.5
    with contextlib.closing(Worker(patience=(60.0, patience))) as worker:
        with contextlib.suppress(RuntimeError):
            list(worker.call("no such call"))
        process = worker._process
        assert process is not None
        with process.turn:
            time.sleep(patience + 3 * engine.LOOK)
        assert process.alive


def test_after_an_error_that_stays_on_the_gpu_the_next_call_has_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call itself keeps its answers, and one that waited for its turn is whole, too."""
    (tmp_path / "spoiled_engine.py").write_text(SPOILED, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with contextlib.closing(Worker("spoiled_engine")) as worker:
        (first,) = worker.call("fine")
        spoiling = worker.call("spoil", pulse=True)
        told = [next(spoiling)]
        waiting = worker.call("fine", pulse=True)
        assert next(waiting) is None
        told += spoiling
        assert [pid for pid in told if pid is not None] == [first]
        (second,) = (pid for pid in waiting if pid is not None)
        assert second != first


def test_prints_of_the_engine_are_no_answers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    chatter = (
        "import os, sys, threading, time\n"
        "def chat():\n"
        "    while 'torch' not in sys.modules: time.sleep(0.01)\n"
        "    while True: print('hello', flush=True); os.write(1, b'hello'); time.sleep(0.01)\n"
        "if sys.argv[:1] == ['-c']: threading.Thread(target=chat, daemon=True).start()\n"
    )
    (tmp_path / "sitecustomize.py").write_text(chatter, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with contextlib.closing(Worker()) as talkative:
        states = list(talkative.call("certify", "toy", "", "", 100, 1))
    assert states[-1]["sampled"][-1][0] == 100
    assert "hello" in capfd.readouterr().err


def test_it_ends_with_whoever_started_it() -> None:
    code = (
        "import os; from specdec.lanes.worker import Worker; worker = Worker(); worker.start()\n"
        "print(worker._process.pid, flush=True); os._exit(9)"  # without any farewell
    )
    pid = int(subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60).stdout)
    deadline = time.monotonic() + 30
    while Path(f"/proc/{pid}").exists() and "Z" not in Path(f"/proc/{pid}/status").read_text().split("State:")[1][:4]:
        assert time.monotonic() < deadline, "the engine outlives the page"
        time.sleep(0.1)


@pytest.mark.long
def test_the_page_starts_it_once_it_is_served_and_loads_no_model() -> None:
    code = (
        "import sys, threading; from specdec.ui import session; session.WARM_AFTER = 0.0\n"
        "session.warm(); session.warm()\n"
        "for thread in threading.enumerate(): isinstance(thread, threading.Timer) and thread.join()\n"
        "assert session._worker._process.alive and not session._loaded('embedded')\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=120)
