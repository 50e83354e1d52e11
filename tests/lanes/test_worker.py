"""The engine in its own process says what it says in this one, stops when told to, and dies without taking anybody."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from specdec.lanes.worker import Prepared, Worker, WorkerDied

from specdec.events import Committed, Event
from specdec.families import zoo
from specdec.lanes import race
from specdec.lanes import worker as lanes_worker
from specdec.loop import NO_ROOM
from specdec.types import SamplingParams, TranslatableText

ROOT = Path(__file__).resolve().parents[2]
PARAMS = SamplingParams(temperature=0.8, max_tokens=12, seed=3)
LONG = SamplingParams(max_tokens=200, ignore_end=True)
PROMPT = "The old lighthouse keeper"


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with contextlib.closing(Worker()) as worker:
        yield worker


def items(answers: Iterable[Any]) -> list[Any]:
    """Without heartbeats."""
    return [answer for answer in answers if answer is not None]


def race_on(
    worker: Worker, prompt: str = PROMPT, drafter: str = "none", k: int = 0, params: SamplingParams = PARAMS
) -> Any:
    return worker.call("race", "embedded", "cpu", prompt=prompt, drafter=drafter, k=k, params=params)


def prepare(worker: Worker, family: str = "embedded") -> Prepared:
    (ready,) = items(worker.call("prepare", family, "cpu", "draft_model", 3, 0.8))
    assert isinstance(ready, Prepared)
    return ready


def run(worker: Worker) -> list[Event]:
    return items(race_on(worker))


def texts(events: Iterable[Event]) -> dict[str, list[int]]:
    told = [event for event in events if isinstance(event, Committed)]
    return {lane: [t for e in told if e.lane == lane for t in e.tokens] for lane in ("speculative", "plain")}


def test_a_run_over_there_is_a_run_here(worker: Worker) -> None:
    ready = prepare(worker)
    assert ready.models["target"] == zoo.load().describe()["target"] and "torch" in ready.machine
    assert (ready.drafter, ready.k, ready.speedup) == ("draft_model", 3, 0.0)  # what was given stays
    there = items(race_on(worker, drafter="draft_model", k=3))
    here = list(race.race(zoo.load(), PROMPT, "draft_model", 3, PARAMS))
    assert texts(there) == texts(here) and len(there) == len(here)


def test_measuring_is_announced_once_and_only_where_it_is_done(worker: Worker, shallow: str) -> None:
    def announced(drafter: str, k: int) -> list[str]:
        *told, ready = items(worker.call("prepare", shallow, "cpu", drafter, k, 0.0))
        assert isinstance(ready, Prepared) and ready.k > 0
        return told

    assert announced("prompt_lookup", 3) == []
    assert [announced("default", 0) for _ in range(2)] == [["measuring"], []]
    assert [announced("adaptive:prompt_lookup", 8) for _ in range(2)] == [["measuring"], []]


@pytest.mark.parametrize("after", [0, 5])
def test_a_closed_run_stops_over_there_and_the_next_one_is_whole(worker: Worker, after: int) -> None:
    whole = run(worker)
    running = race_on(worker, params=LONG)
    for _ in range(after):
        next(running)
    running.close()
    assert texts(run(worker)) == texts(whole)


def test_what_the_engine_refuses_arrives_as_it_was_said(worker: Worker) -> None:
    with pytest.raises(ValueError) as refused:
        items(race_on(worker, "word " * 3000))
    said = refused.value.args[0]
    assert isinstance(said, TranslatableText) and "{n}" in said.template and said.values["n"] > said.values["limit"]
    with pytest.raises(ValueError, match="no drafter 'nothing'"):
        items(race_on(worker, drafter="nothing", k=2))
    with pytest.raises(ValueError, match="holds no folder"):
        prepare(worker, "/nowhere")
    with pytest.raises(RuntimeError, match="KeyError: 'no such call'"):
        items(worker.call("no such call"))


@pytest.fixture
def hung(worker: Worker) -> Generator[Any, None, None]:
    """A run that has begun, and whose engine does nothing any more."""
    running = race_on(worker, params=LONG)
    while next(running) is None:
        pass
    os.kill(worker.start().pid or 0, signal.SIGSTOP)
    while next(running) is not None:  # what it said before
        pass
    return running


@pytest.mark.long
def test_a_hung_engine_is_left_at_once_and_ended_once_it_was_silent_for_too_long(
    worker: Worker, hung: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = worker.start()
    closing = threading.Thread(target=hung.close, daemon=True)  # as Gradio does, on a thread that nothing may hold up
    closing.start()
    closing.join(60)
    assert not closing.is_alive() and first.is_alive()
    waiting = race_on(worker)
    assert next(waiting) is None and first.is_alive()  # meanwhile its reader may do something else
    waiting.close()
    monkeypatch.setattr(lanes_worker, "SILENCE_S", 0.0)
    with pytest.raises(WorkerDied):
        items(race_on(worker))
    monkeypatch.undo()
    assert run(worker) and not first.is_alive() and worker.start() is not first


def test_calls_from_many_threads_take_turns(worker: Worker) -> None:
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(texts(run(worker)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and all(one == found[0] for one in found)


def test_a_process_that_dies_breaks_its_call_and_the_next_has_another(worker: Worker) -> None:
    running = race_on(worker, params=LONG)
    while next(running) is None:
        pass
    first = worker.start()
    first.kill()
    with pytest.raises(WorkerDied):
        items(running)
    assert worker.start() is not first
    assert run(worker)


ENGINE = """
import os
import time
import torch

def fine():
    yield os.getpid()

def spoil():  # as torch has it after an illegal address; the call itself may have told that as an event
    def stays():
        raise RuntimeError("CUDA error: an illegal memory access was encountered")
    torch.cuda.is_initialized, torch.cuda.synchronize = lambda: True, stays
    yield os.getpid()

def full():
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
    yield

CALLS = {"fine": fine, "spoil": spoil, "full": full}
"""


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Worker]:
    (tmp_path / "toy_engine.py").write_text(ENGINE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    with contextlib.closing(Worker("toy_engine")) as worker:
        yield worker


@pytest.mark.long
def test_after_an_error_that_stays_on_the_gpu_the_next_call_has_another_process(toy: Worker) -> None:
    """The call itself keeps its answers, and one that waited for its turn is whole, too."""
    (first,) = items(toy.call("fine"))
    spoiling = toy.call("spoil")
    told = [next(spoiling)]
    waiting = toy.call("fine")
    assert next(waiting) is None
    assert items([*told, *spoiling]) == [first]
    (second,) = items(waiting)
    assert second != first


@pytest.mark.long
def test_where_a_gpu_has_no_room_a_call_ends_in_a_sentence_and_the_next_is_whole(toy: Worker) -> None:
    with pytest.raises(ValueError) as refused:
        items(toy.call("full"))
    assert refused.value.args[0] == NO_ROOM
    assert items(toy.call("fine")) == [toy.start().pid]


def test_it_ends_with_whoever_started_it() -> None:
    code = (
        "import os; from specdec.lanes.worker import Worker; worker = Worker()\n"
        "print(worker.start().pid, flush=True); os._exit(9)"  # without any farewell
    )
    pid = int(subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60).stdout)
    deadline = time.monotonic() + 60
    while Path(f"/proc/{pid}").exists() and "Z" not in Path(f"/proc/{pid}/status").read_text().split("State:")[1][:4]:
        assert time.monotonic() < deadline, "the engine outlives the page"
        time.sleep(0.1)


@pytest.mark.long
def test_the_page_starts_it_once_it_is_served_and_loads_no_model() -> None:
    code = (
        "import sys, threading; from specdec.ui import session; session.WARM_AFTER_S = 0.0\n"
        "session.warm(); session.warm()\n"
        "for thread in threading.enumerate(): isinstance(thread, threading.Timer) and thread.join()\n"
        "assert session._worker._process.is_alive()\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=120)
