"""Runs on ZeroGPU, with a stand-in for its package: each in a fork, refused, broken, left, and two at once."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import toyrun

from specdec.events import Committed, Finished
from specdec.families import zoo
from specdec.gpu.trial import SWITCH
from specdec.lanes import race
from specdec.lanes.worker import NoGPU, Worker, WorkerDied
from specdec.traces.file import Trace
from specdec.types import SamplingParams, TranslatableText
from specdec.ui import session
from specdec.ui.request import RunRequest
from specdec.ui.text import strings

ROOT = Path(__file__).resolve().parents[2]
STANDIN = Path(__file__).parent / "standin"
PROMPT = "The old lighthouse keeper"
PARAMS = SamplingParams(temperature=0.8, max_tokens=12, seed=3)


@pytest.fixture(scope="module")
def zero(shallow: str) -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPACES_ZERO_GPU", "true")
        patch.setenv("SPECDEC_PAIR", shallow)
        patch.setenv(SWITCH, "1")
        patch.syspath_prepend(str(STANDIN))
        yield importlib.import_module("specdec.lanes.zero")
        for name in ("specdec.lanes.zero", "spaces"):
            del sys.modules[name]


@pytest.fixture
def spaces(zero: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The stand-in; whatever a test sets there is set back."""
    monkeypatch.setattr(zero.spaces, "refusal", "")
    yield zero.spaces
    zero.spaces.free.set()


@pytest.fixture
def gpu(zero: ModuleType, spaces: ModuleType) -> Any:
    return zero.ZeroGPU()


@pytest.fixture
def page(gpu: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The session of a page on ZeroGPU."""
    monkeypatch.setattr(session, "_gpu", gpu)
    with contextlib.closing(Worker()) as worker:
        monkeypatch.setattr(session, "_worker", worker)
        yield session


def asked(gpu: Any, prompt: str = PROMPT) -> RunRequest:
    return RunRequest(prompt, "draft_model", 3, PARAMS, family=gpu.family)


def events(gpu: Any, prompt: str = PROMPT) -> list[Any]:
    """Without heartbeats."""
    return [*filter(None, gpu.race(**asked(gpu, prompt).arguments))]


def texts(told: Any) -> dict[str, str]:
    return {event.lane: event.text for event in told if isinstance(event, Finished)}


def trace_of(told: list[session.News]) -> Trace:
    return Trace.loads("".join(news.text for news in told if news.kind == "lines"))


def over(fork: Any, seconds: float = 60) -> bool:
    fork.join(seconds)
    return fork.exitcode is not None


def test_a_run_in_a_fork_is_a_run_here(gpu: Any, spaces: ModuleType) -> None:
    told = events(gpu)
    here = list(race.race(zoo.load(gpu.family), PROMPT, "draft_model", 3, PARAMS))
    assert texts(told) == texts(here) and len(told) == len(here)
    assert gpu.machine["shared"] is True and "torch" in gpu.machine
    assert gpu.models["device"] == zoo.resolved("auto")
    assert not any(b"torch" in pickle.dumps(event) for event in told)  # a tensor would be on a GPU of the fork
    assert over(spaces.forks[-1]) and spaces.asked[-1] == 20
    assert os.environ[SWITCH] == "0"  # no fork compiles kernels in its visitor's seconds


def endless(*_: Any, **__: Any) -> Iterator[Any]:
    yield from itertools.cycle(toyrun.events()[:4])


def test_a_closed_run_ends_its_fork(gpu: Any, zero: ModuleType, spaces: ModuleType, monkeypatch: Any) -> None:
    monkeypatch.setattr(zero, "race", endless)
    running = gpu.race(prompt=PROMPT, drafter="none", k=0, params=PARAMS)
    assert any(isinstance(event, Committed) for event in running)
    assert not over(spaces.forks[-1], 0)
    running.close()
    assert over(spaces.forks[-1]) and spaces.forks[-1].exitcode == 0


def test_who_waits_for_a_gpu_can_leave(gpu: Any, zero: ModuleType, spaces: ModuleType, monkeypatch: Any) -> None:
    monkeypatch.setattr(zero, "race", endless)
    before = len(spaces.forks)
    spaces.free.clear()
    running = gpu.race(prompt=PROMPT, drafter="none", k=0, params=PARAMS)
    assert next(running) is None and next(running) is None
    running.close()
    assert len(spaces.forks) == before
    spaces.free.set()
    for _ in range(zero.MAX_RUNS):  # its place is given back once its fork, if there was one, is gone
        assert gpu._seats.acquire(timeout=60)
    assert all(map(over, spaces.forks[before:]))


def test_two_visitors_at_once_are_not_mixed(page: Any, gpu: Any) -> None:
    requests = [asked(gpu), asked(gpu, "def add(a, b):")]
    first = page.run(requests[0])
    told = [next(first) for _ in range(5)]
    both = [[*page.run(requests[1])], [*told, *first]][::-1]
    assert not page._machine.locked()
    for request, told in zip(requests, both, strict=True):
        trace = trace_of(told)
        alone = race.race(zoo.load(request.family), request.prompt, "draft_model", 3, PARAMS)
        assert trace.header.prompt == request.prompt and trace.header.machine["shared"]
        assert texts(trace.events) == texts(alone)
        assert told[-1] == session.News("done", strings("page")["notice"]["done"])


def test_without_a_gpu_for_any_other_reason_the_run_is_here(
    page: Any, gpu: Any, spaces: ModuleType, monkeypatch: Any
) -> None:
    spaces.refusal = "No GPU was available after 60s"
    monkeypatch.setattr(session, "_worker", toyrun.Engine())
    told = strings("page")["notice"]["no_gpu"]
    done = strings("page")["notice"]["done"]
    assert list(page.run(asked(gpu)))[-1] == session.News("done", f"{told} {done}")
    gpu._seats = threading.Semaphore(0)
    with pytest.raises(NoGPU, match="too many"):
        events(gpu)
    other = list(page.run(replace(asked(gpu), family="another")))[-1]
    assert other == session.News("done", done)  # only the one family is on the GPU


def failing(*_: Any, **__: Any) -> Iterator[Any]:
    yield toyrun.events()[0]
    raise KeyError("secret")


def killed(*_: Any, **__: Any) -> Iterator[Any]:
    yield toyrun.events()[0]
    os.kill(os.getpid(), 9)


def test_what_breaks_inside_is_one_sentence(page: Any, gpu: Any, zero: ModuleType, monkeypatch: Any) -> None:
    with pytest.raises(ValueError) as refused:
        events(gpu, "word " * 3000)
    assert isinstance(refused.value.args[0], TranslatableText)
    last = list(page.run(asked(gpu, "word " * 3000)))[-1]
    assert last.kind == "error" and "Shorten it" in last.text
    for broken, reason in ((failing, "KeyError"), (killed, "aborted")):
        monkeypatch.setattr(zero, "race", broken)
        with pytest.raises(WorkerDied, match=reason):
            events(gpu)
    assert list(page.run(asked(gpu)))[-1] == session.News("error", strings("page")["notice"]["died"])


def test_a_run_ends_before_the_time_it_asked_for(page: Any, gpu: Any, zero: ModuleType, monkeypatch: Any) -> None:
    monkeypatch.setattr(zero, "race", endless)
    monkeypatch.setattr(zero, "seconds_left", lambda: 0.0)
    last = list(page.run(asked(gpu)))[-1]
    assert last.kind == "cut" and last.text == strings("page")["notice"]["deadline"].format(seconds=0)


PROBE = """
import os

def told():
    yield os.environ["SPACES_ZERO_GPU"], os.environ.get("CUDA_VISIBLE_DEVICES")

CALLS = {"told": told}
"""


@pytest.mark.parametrize("on_zero", [True, False])
def test_no_engine_of_ours_asks_for_the_gpu_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, on_zero: bool
) -> None:
    (tmp_path / "environment.py").write_text(PROBE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("SPACES_ZERO_GPU", "true" if on_zero else "")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    with contextlib.closing(Worker("environment")) as worker:
        (told,) = filter(None, worker.call("told"))
    assert told == (("", "") if on_zero else ("", "3"))


@pytest.mark.long
def test_the_app_begins_with_the_package(shallow: str) -> None:
    """The stand-in refuses to come after torch."""
    code = (
        "import app, sys; from specdec.ui import session\n"
        "assert session._gpu.family and session._worker._process is None and app.demo.fns\n"
        "assert list(sys.modules).index('spaces') < list(sys.modules).index('torch')"
    )
    path = os.pathsep.join([str(STANDIN), str(ROOT)])
    environment = {**os.environ, "SPACES_ZERO_GPU": "true", "SPECDEC_PAIR": shallow, "PYTHONPATH": path}
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, check=True, timeout=300)
