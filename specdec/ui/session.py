"""The page's only door to the engine and to recorded runs.

The engine is imported at the first live run: the page itself needs no torch. One run at a time has the machine,
whoever asks, because two would spoil each other's clocks. The lock is ours: a cancelled run gives back Gradio's
slot at once, while its thread still finishes a cycle.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from ..trace import line, live_header, Trace
from .menu import EMBEDDED
from .request import RunRequest
from .text import ASSETS, kind_of, strings

DEADLINE = 60.0  # seconds of one run, all lanes
TRACES = ASSETS / "traces"
FIRST = "story"

log = logging.getLogger(__name__)
_machine = threading.Lock()


@dataclass(frozen=True, slots=True)
class News:
    """One thing to tell the page: lines of the run, or a notice beside the button; `cut` is why lines are missing."""

    kind: Literal["lines", "notice", "cut", "error"]
    text: str


def run(request: RunRequest) -> Iterator[News]:
    """A live run, all lanes. Closing the iterator stops it within one cycle."""
    yield from _wait_for_machine()
    try:
        yield News("notice", _notice("loading" if not _loaded(request.family) else "running"))
        yield from _live(request)
    finally:
        _machine.release()


def recorded(name: str) -> str:
    """A recorded run as NDJSON, checked; "" if there is none of that name."""
    if name not in recorded_names():
        return ""
    try:
        trace = Trace.load(TRACES / f"{name}.jsonl")
    except (OSError, ValueError) as error:
        log.warning("recorded run %s cannot be read: %s", name, error)
        return ""
    return trace.dumps()


def first_recorded() -> str:
    """The run for the first screen; any that can be read will do."""
    return next(filter(None, map(recorded, recorded_names())), "")


def recorded_names() -> list[str]:
    """What is there, the first screen's first."""
    names = sorted(path.stem for path in TRACES.glob("*.jsonl")) if TRACES.is_dir() else []
    return sorted(names, key=lambda name: name != FIRST)


def warm() -> None:
    """Load the models in the background, so that the first live run starts at once."""
    if not _loaded(EMBEDDED):
        threading.Thread(target=_load_quietly, name="warm", daemon=True).start()


def _wait_for_machine() -> Iterator[News]:
    told = False
    while not _machine.acquire(timeout=0.25):
        if not told:
            told = True
            yield News("notice", _notice("waiting"))
        else:
            yield News("lines", "")  # a place where a cancelled visitor leaves


def _live(request: RunRequest) -> Iterator[News]:
    """The run itself, once the machine is ours."""
    try:
        family, race = _engine(request.family)
    except Exception:
        log.exception("the models cannot be loaded")
        yield News("error", _notice("no_engine"))
        return
    slow_start = "peer" if request.peer else "probing" if request.drafter.startswith("adaptive") else "running"
    yield News("notice", _notice(slow_start))
    started = time.monotonic()
    try:
        running = race(
            family, request.prompt, request.drafter, request.k, request.params, rule=request.rule, peer=request.peer
        )
        with contextlib.closing(running) as events:
            kind = kind_of(request.prompt)
            yield News("lines", live_header(request.prompt, family.describe(), kind, request.peer).line())
            for event in events:
                yield News("lines", line(event))
                if time.monotonic() - started > DEADLINE:
                    yield News("cut", _notice("deadline", seconds=round(DEADLINE)))
                    return
    except ValueError as error:  # a prompt that the engine refuses; its message is one sentence
        yield News("error", str(error))
        return
    except Exception:
        log.exception("a run broke off")
        yield News("error", _notice("broken"))
        return
    yield News("notice", _notice("done"))


def _engine(family: str) -> tuple[Any, Any]:
    from .. import zoo
    from ..race import race

    return zoo.load(family), race


def _loaded(family: str) -> bool:
    import sys

    zoo = sys.modules.get("specdec.zoo")
    return any(name == family for name, _ in tuple(getattr(zoo, "_loaded", ())))  # another thread may be loading


def _load_quietly() -> None:
    try:
        _engine(EMBEDDED)
    except Exception as error:  # the run itself will say so
        log.warning("the models cannot be loaded: %s", error)


def _notice(name: str, **values: Any) -> str:
    return strings("page")["notice"][name].format(**values)
