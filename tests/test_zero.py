"""Runs on ZeroGPU, with a decorator like that of `spaces`: a call asks for a GPU, and its task runs in a fork."""

import contextlib
import importlib
import json
import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import gradio
import pytest

from specdec.engine import Engine
from specdec.figures import machine
from specdec.lanes import probe
from specdec.messages import Refused, Step
from specdec.methods import Choice
from specdec.process import ProcessDied
from specdec.settings import RunRequest
from specdec.traces.file import Trace
from specdec.types import SamplingParams
from specdec.ui import api
from specdec.ui.session import Session
from tests import toyrun

APP = Path(__file__).resolve().parents[1] / "app.py"
FORK = multiprocessing.get_context("fork")
QUOTA = "You have exceeded your free ZeroGPU quota (15s requested vs. 5s left). Try again in 0:01:00."
SHORT = RunRequest("Once upon a time", "draft_model", 3, SamplingParams(max_tokens=12, seed=3))
LONG = replace(SHORT, params=SamplingParams(max_tokens=256, ignore_end=True))


class Platform:
    def __init__(self) -> None:
        self.refusal, self.dies = "", False
        self.durations, self.forks, self.ends = list[int](), list[Any](), FORK.SimpleQueue()

    def decorator(self, duration: Callable[..., int]) -> Callable[..., Any]:
        return lambda task: lambda *arguments: self.lend(task, duration(*arguments), arguments)

    def lend(self, task: Callable[..., Any], seconds: int, arguments: tuple[Any, ...]) -> Iterator[Any]:
        self.durations.append(seconds)
        if self.refusal:
            raise gradio.Error(self.refusal, title="ZeroGPU quota exceeded")
        results, stop = FORK.SimpleQueue(), FORK.Event()

        def work() -> None:
            with contextlib.closing(task(*arguments)) as items:
                for item in items:
                    if stop.is_set():
                        break
                    results.put((item,))
                    if self.dies and isinstance(item, str):
                        os._exit(1)
            self.ends.put("stopped" if stop.is_set() else "whole")
            results.put(())

        self.forks.append(fork := FORK.Process(target=work, daemon=True))
        fork.start()
        threading.Thread(target=lambda: (fork.join(), results.put(None)), daemon=True).start()
        try:
            while result := results.get():
                yield result[0]
        finally:
            stop.set()
        if result is None:
            raise gradio.Error("GPU task aborted", title="ZeroGPU worker error")


@pytest.fixture(scope="module")
def lent() -> Iterator[tuple[Platform, Session]]:
    platform, session = Platform(), Session()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "spaces", SimpleNamespace(GPU=platform.decorator))
        patch.setenv("SPECDEC_TRITON", "0")
        session.process = importlib.import_module("specdec.zero").ZeroProcess("embedded")
        with contextlib.closing(session.process):
            yield platform, session
    del sys.modules["specdec.zero"]


def call(session: Session, request: RunRequest) -> Any:
    return (item for item in session.process.call("run", request, "auto", "", str) if item is not None)


def test_a_run_on_a_lent_gpu_is_a_run_here(lent) -> None:
    platform, session = lent
    asking, choice, *lines = call(session, SHORT)
    there, here = Trace.loads("".join(lines)), Engine().race(SHORT.prompt, "draft_model", 3, params=SHORT.params)
    assert (asking, choice, platform.durations) == (Step("ask"), Choice("draft_model", 3), [11])
    assert there._texts() == here._texts() and there.header.models["threads"] == 1
    (ready,) = session.process.call("prepare", "embedded", "auto")
    assert platform.ends.get() == "whole" and isinstance(ready, Choice)
    with pytest.raises(ValueError, match="tokens"):  # the engine refuses, not the platform
        list(call(session, replace(SHORT, prompt="word " * 3000)))
    assert platform.ends.get() == "whole" and session.process._process is None  # nothing was on the CPU


def test_stop_the_deadline_and_the_death_of_the_fork_end_a_run(lent, monkeypatch) -> None:
    platform, session = lent
    with contextlib.closing(session.run(LONG)) as running:
        assert any(item.name == "lines" and item.text for item in running)
    assert platform.ends.get() == "stopped"
    monkeypatch.setattr(sys.modules["specdec.zero"], "MARGIN_S", 19.5)
    *_, last = session.run(LONG)
    assert (last.name, platform.ends.get()) == ("cut", "whole")
    monkeypatch.undo()
    monkeypatch.setattr(platform, "dies", True)
    running = call(session, LONG)
    assert any(isinstance(item, str) for item in running)
    with pytest.raises(ProcessDied, match="GPU task aborted"):
        list(running)


def test_a_spent_quota_is_said_in_its_words_and_the_cpu_runs(lent, monkeypatch) -> None:
    platform, session = lent
    monkeypatch.setattr(platform, "refusal", QUOTA)
    *items, last = session.run(SHORT)
    written = Trace.loads("".join(toyrun.written(items)))._texts()
    assert last.name == "done" and last.text.startswith(f"{QUOTA} So this run is on the CPU.")
    assert items[1].text in last.text and len(set(written.values())) == 1 and len(platform.forks) == 5
    monkeypatch.setattr(api, "session", session)
    *_, notice = api.run(SHORT.prompt, "draft_model", 3, max_tokens=2)
    assert json.loads(notice)["notice"] == last.text


def test_a_fork_that_breaks_before_its_first_line_leaves_the_run_to_the_cpu(lent, monkeypatch) -> None:
    _, session = lent

    def lend(*arguments: Any) -> Iterator[Any]:
        yield RuntimeError("CUDA error")
        raise gradio.Error("GPU task aborted")

    monkeypatch.setattr(session.process, "_on_gpu", lend)
    assert Trace.loads("".join(item for item in call(session, SHORT) if isinstance(item, str)))._texts()


def test_what_a_fork_measured_is_known_to_the_next(lent, tmp_path, monkeypatch) -> None:
    _, session = lent
    monkeypatch.setattr(probe, "file", lambda: tmp_path / "costs.json")
    monkeypatch.setattr(session.process._engine.models, "costs", {})
    adaptive = replace(SHORT, drafter="adaptive")
    assert Choice("adaptive", 3) in call(session, adaptive)
    monkeypatch.setattr(probe, "measure_costs", Mock(side_effect=Refused("measured again")))
    assert Choice("adaptive", 3) in call(session, adaptive)


def test_a_mistake_of_ours_is_not_taken_for_a_refusal(lent, monkeypatch) -> None:
    platform, session = lent
    monkeypatch.setattr(platform, "lend", Mock(side_effect=TypeError("a mistake of ours")))
    with pytest.raises(TypeError, match="a mistake of ours"):
        list(call(session, SHORT))


def test_spaces_comes_before_torch_and_a_gpu_is_shared(tmp_path, monkeypatch) -> None:
    code = "import sys; sys.exit(7 if not {'torch', 'gradio'} & {*sys.modules} else 'too late')"
    (tmp_path / "spaces.py").write_text(code, encoding="utf-8")
    monkeypatch.setenv("SPACES_ZERO_GPU", "true")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert subprocess.run([sys.executable, APP], timeout=120).returncode == 7
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.get_device_name", lambda _: "NVIDIA RTX PRO 6000")
    assert machine.describe()["gpu"] == "NVIDIA RTX PRO 6000, shared (ZeroGPU)"
