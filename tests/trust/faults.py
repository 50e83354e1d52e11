"""Faults put in on purpose: in a drafter, the target, words, the disk, the clock, the engine's process; and cancels.

Of each: is the text what plain decoding writes (or a beginning of it, where the run ends with a reason), does anything
escape that is not an event or an expected error, and can the next run have the machine?
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import toyrun
from baddrafts import bad_drafts, raises
from toyheads import MAKERS, TARGET, TEXT, view_of

from specdec import describe
from specdec.engine import generate, Task
from specdec.events import Committed, Event, Failed, Finished
from specdec.lanes.interleave import interleave
from specdec.lanes.worker import Worker, WorkerDied
from specdec.sampling import RandomSampler, Sampler
from specdec.traces.file import line, Trace
from specdec.types import Proposal, SamplingParams
from specdec.ui import session
from specdec.ui.request import check
from specdec.verify import RejectionSampling

from .figures import at_least, Figure, none

TOKENS, K = 20, 3
BAD_DRAFTS = bad_drafts(TARGET.vocabulary)
GREEDY = SamplingParams(max_tokens=TOKENS)


@dataclass
class Tally:
    injected: int = 0
    lost: int = 0  # text that is neither plain decoding's nor, of a run that says why it ended, a beginning of it
    uncaught: int = 0
    held: int = 0  # machines that the next run did not get
    untold: int = 0  # a fault that took place, and nobody was told
    first: str = ""

    def wrong(self, name: str, kind: str) -> None:
        setattr(self, kind, getattr(self, kind) + 1)
        self.first = self.first or f"{kind}: {name}"

    @contextlib.contextmanager
    def one(self, name: str) -> Iterator[None]:
        self.injected += 1
        try:
            yield
        except Exception as error:
            self.wrong(f"{name} ({type(error).__name__}: {error})"[:160], "uncaught")


def ids(events: Sequence[Event]) -> list[int]:
    return [token for event in events if isinstance(event, Committed) for token in event.tokens]


@cache
def plain() -> list[int]:
    return ids(list(generate(Task(view_of(), TEXT, GREEDY, k=0))))


def judge(tally: Tally, name: str, events: Sequence[Event], whole: bool) -> None:
    """`whole`: the text must be complete. All events must go into a file, and the last one is `Finished`."""
    end, text = events[-1], ids(events)
    failed = [event for event in events if isinstance(event, Failed)]
    broken_off = text == plain()[: len(text)] and isinstance(end, Finished) and end.reason == "failed"
    if not isinstance(end, Finished) or end.tokens != len(text) or (text != plain() and (whole or not broken_off)):
        tally.wrong(name, "lost")
    elif not failed:
        tally.wrong(name, "untold")
    json.loads(json.dumps([json.loads(line(event)) for event in events], allow_nan=False))


# ---- a drafter ----


class Faulty:
    """The drafter as it is, but for its n-th draft, or all from there on."""

    def __init__(self, inner: Any, bad: Callable[[int], Any], at: int, for_good: bool) -> None:
        self.inner, self.bad, self.at, self.for_good, self.name, self.calls = inner, bad, at, for_good, "faulty", 0

    def propose(self, tokens: Sequence[int], k: int, params: SamplingParams, sampler: Sampler) -> Proposal:
        good: Proposal = self.inner.propose(tokens, k, params, sampler)
        self.calls += k > 0
        wanted = self.calls >= self.at if self.for_good else self.calls == self.at
        return self.bad(k) if k and wanted else good


def drafters(tally: Tally, long: bool) -> None:
    makers = list(MAKERS.items()) if long else [(name, MAKERS[name]) for name in ("draft_model", "eagle3:tree")]
    where = ((1, False), (3, False), (1, True)) if long else ((1, False), (2, True))
    for (drafter, make), (how, bad), (at, for_good) in itertools.product(makers, BAD_DRAFTS.items(), where):
        name = f"{drafter}, {how}, draft {at}{' and all after' if for_good else ''}"
        with tally.one(name):
            view = view_of()
            task = Task(view, TEXT, GREEDY, Faulty(make(view), bad, at, for_good), K)
            judge(tally, name, list(generate(task)), whole=True)


# ---- the target, and what the loop is handed ----


def in_the_logits(value: float, row: int) -> Callable[[torch.Tensor], torch.Tensor]:
    def spoil(logits: torch.Tensor) -> torch.Tensor:
        logits = logits.clone()
        logits[row, 3] = value
        return logits

    return spoil


BAD_ROWS: dict[str, Callable[[Any], Any]] = {
    "NaN in the first row": in_the_logits(float("nan"), 0),
    "NaN in the last row": in_the_logits(float("nan"), -1),
    "infinity in a row": in_the_logits(float("inf"), -1),
    "a row without a token": lambda logits: logits.clone().fill_(-float("inf")),
    "raises": raises(RuntimeError),
    "out of memory": raises(MemoryError),
    "no rows": lambda logits: logits[:0],
    "no logits": lambda logits: None,
    "a vocabulary of none": lambda logits: logits[:, :0],
}


class BadTarget:
    """The target as it is, but for one pass."""

    def __init__(self, inner: Any, bad: Callable[[Any], Any], at: int) -> None:
        self.inner, self.bad, self.at, self.calls = inner, bad, at, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def forward(self, *asked: Any, **named: Any) -> Any:
        out, self.calls = self.inner.forward(*asked, **named), self.calls + 1
        return self.bad(out) if self.calls == self.at else out


def from_call(at: int, good: Callable[..., Any]) -> Callable[..., Any]:
    """It raises in its call number `at`."""
    calls = itertools.count(1)

    def maybe(*given: Any, **named: Any) -> Any:
        if next(calls) == at:
            raise LookupError("not to be read")
        return good(*given, **named)

    return maybe


def handed(tally: Tally, long: bool) -> None:
    """A bad target, bad words, a bad rule: the run ends, says why, and keeps its text; the next one is whole."""
    makers = list(MAKERS.items()) if long else [("draft_model", MAKERS["draft_model"])]
    for (drafter, make), (how, bad), at in itertools.product(makers, BAD_ROWS.items(), (1, 2, 4)):
        name = f"target, {how}, pass {at}, {drafter}"
        with tally.one(name):
            view = view_of()
            task = Task(BadTarget(view, bad, at), TEXT, GREEDY, make(view), K)  # type: ignore[arg-type]
            judge(tally, name, list(generate(task)), whole=False)
    for what, at in itertools.product(("piece", "token_bytes", "rule", "sampler", "cache", "describe"), (1, 2, 5, 9)):
        name = f"{what}, call {at}"
        with tally.one(name), contextlib.ExitStack() as stack:
            view = view_of()
            task, sampler = Task(view, TEXT, GREEDY, MAKERS["draft_model"](view), K), RandomSampler(0)
            if what in ("piece", "token_bytes"):
                task = replace(task, **{what: from_call(at, getattr(task, what))})
            elif what == "rule":
                task = replace(task, rule=Rule(at))
            elif what == "sampler":
                sampler.at = from_call(at, sampler.at)  # type: ignore[method-assign]
            elif what == "cache":
                stack.enter_context(mock.patch.object(TARGET, "new_cache", from_call(1, TARGET.new_cache)))
            else:
                broken = from_call(at, describe.verification)
                stack.enter_context(mock.patch.object(describe, "verification", broken))
            judge(tally, name, list(generate(task, sampler)), whole=False)
    with tally.one("the run after all of these"):
        view = view_of()
        if ids(list(generate(Task(view, TEXT, GREEDY, MAKERS["draft_model"](view), K)))) != plain():
            tally.wrong("the run after all of these", "lost")


class Rule(RejectionSampling):
    def __init__(self, at: int) -> None:
        self.row = from_call(at, self.row)  # type: ignore[method-assign]


# ---- cancels ----


def cancels(tally: Tally, long: bool) -> None:
    """Closed after every event: a lane, a race, and a run of the page, which must give the machine back."""
    names = MAKERS if long else ("draft_model", "medusa:tree", "prompt_lookup")
    for drafter, alone in itertools.product(names, (True, False)):
        last = 400
        for after in itertools.count():
            if after > last:
                break
            with tally.one(f"closed after {after}, {drafter}"):
                view = view_of()
                lane = generate(Task(view, TEXT, GREEDY, MAKERS[drafter](view), K))
                beside = generate(Task(view_of(), TEXT, GREEDY, k=0, lane="plain"))
                run = lane if alone else interleave({"speculative": lane, "plain": beside})
                told = list(itertools.islice(run, after))
                last = min(last, len(told))
                run.close()
                for name in ("speculative", "plain"):
                    text = ids([event for event in told if event.lane == name])
                    if text != plain()[: len(text)]:
                        tally.wrong(f"closed after {after}", "lost")
                if list(run):
                    tally.wrong(f"closed after {after}", "held")
    pages(tally)


def pages(tally: Tally) -> None:
    """Runs of the page, over an engine that tells a toy run; closed, broken off or dead after each of its events."""

    events = toyrun.events()
    for how, after in itertools.product(("left", "dies", "raises", "refuses", "silent"), range(len(events) + 2)):
        open_runs = 0

        def race(*_: Any, how: str = how, after: int = after, **__: Any) -> Iterator[Any]:
            nonlocal open_runs
            open_runs += 1
            try:
                yield from events[:after]
                if how == "silent":
                    yield from [None] * 5
                if how in ("dies", "raises", "refuses"):
                    kinds = {
                        "dies": WorkerDied("gone"),
                        "raises": OSError("/secret"),
                        "refuses": ValueError("Type less."),
                    }
                    raise kinds[how]
                yield from events[after:]
            finally:
                open_runs -= 1

        name = f"a run of the page that {how} after {after}"
        with tally.one(name), mock.patch.object(session, "_engine", lambda *_, race=race: (toyrun.Family(), race)):
            run = session.run(check("Once upon a time"))
            told = list(itertools.islice(run, after + 1)) if how == "left" else list(run)
            run.close()  # type: ignore[attr-defined]
            if session._machine.locked() or open_runs:
                tally.wrong(name, "held")
            kinds = [news.kind for news in told]
            if how in ("dies", "raises", "refuses") and (kinds[-1] != "error" or "secret" in told[-1].text):
                tally.wrong(name, "untold")
            if how == "silent" and kinds[-1] != "done":
                tally.wrong(name, "lost")


# ---- disk and clock ----


def disks(tally: Tally, long: bool) -> None:
    """What is saved is there whole, or what was there before still is; nothing half-written stays."""
    trace, longer = toyrun.trace(), toyrun.tree_trace()
    size = len(longer.dumps().encode())
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    for room in range(0, size, size // (60 if long else 12)):
        with tally.one(f"a disk with room for {room} bytes"), tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "run.jsonl"
            trace.save(path)
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
            try:
                longer.save(path)
                tally.wrong(f"{room} bytes", "untold")
            except OSError:
                pass
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            if Trace.load(path) != trace:
                tally.wrong(f"a disk with room for {room} bytes", "lost")
            if sorted(os.listdir(folder)) != ["run.jsonl"]:
                tally.wrong(f"a disk with room for {room} bytes: {os.listdir(folder)}", "held")
    for error in (PermissionError, IsADirectoryError, OSError):
        with tally.one(f"a rename that fails: {error.__name__}"), tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "run.jsonl"
            trace.save(path)
            with mock.patch.object(Path, "replace", side_effect=error("no")), contextlib.suppress(OSError):
                longer.save(path)
            if Trace.load(path) != trace or sorted(os.listdir(folder)) != ["run.jsonl"]:
                tally.wrong(f"a rename that fails: {os.listdir(folder)}", "held")


def clocks(tally: Tally, long: bool) -> None:
    """The clock on the wall jumps back and forth in mid-run: no time is negative, the text is the same."""
    for jump, drafter in itertools.product((-1e9, -1.0, 0.0, 1e6), MAKERS if long else ("draft_model",)):
        wall = itertools.cycle((0.0, jump))
        with tally.one(f"the clock jumps by {jump}"), mock.patch.object(time, "time", wall.__next__):
            view = view_of()
            events = list(generate(Task(view, TEXT, GREEDY, MAKERS[drafter](view), K)))
            times = [
                value for event in events for name in ("start", "end", "at") if (value := getattr(event, name, 0.0))
            ]
            if ids(events) != plain() or times != sorted(times) or min(times) < 0.0:
                tally.wrong(f"the clock jumps by {jump}", "lost")


# ---- the engine's process ----

STORY = ("here",) * 6


def processes(tally: Tally, long: bool) -> None:
    """It dies, is killed, goes silent or raises, before its n-th answer; the next call is whole."""
    module, faults = "tests.trust.unruly", ("dies", "killed", "silent", "raises", "refuses", "left")
    with contextlib.closing(Worker(module, (90.0, 4.0))) as worker:
        for how, after in itertools.product(faults, (0, 2, 5) if long else (1,)):
            name = f"the engine {how} after {after}"
            with tally.one(name):
                running, told = worker.call("tell", how, after), []
                try:
                    for answer in filter(None, running):
                        told.append(answer)
                        if how == "left" and len(told) > after:
                            running.close()
                    if how != "left":
                        tally.wrong(name, "untold")
                except (WorkerDied, RuntimeError, ValueError):
                    pass
                if told != list(STORY[: len(told)]):
                    tally.wrong(name, "lost")
                if list(filter(None, worker.call("tell", "", 0))) != list(STORY):
                    tally.wrong(name, "held")


def count(long: bool) -> list[Figure]:
    tally = Tally()
    for inject in (drafters, handed, cancels, disks, clocks, processes):
        inject(tally, long)
    said = [Figure(f"the first: {tally.first}", "", "", False)] if tally.first else []
    return [
        at_least("faults injected", tally.injected, 500),
        none("text lost", tally.lost),
        none("uncaught", tally.uncaught),
        none("machine not freed", tally.held),
        none("nobody told", tally.untold),
        *said,
    ]
