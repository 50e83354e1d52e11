"""The engine in a process of its own, for a page that must not slow it down.

In one process, page and engine would share the interpreter's lock: serving a run's events cost the run a tenth
of its speed. Calls go down the process' standard input as pickles, what they yield comes back up its output. One call
at a time. A process that dies, or is silent for too long and is ended, breaks its call only: the next call starts
another. After an error that CUDA keeps for the whole process it ends by itself.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import math
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from .. import children

# Seconds. Models load, and costs are probed, before a call's first answer; afterwards an answer comes every cycle.
PATIENCE = FIRST_ANSWER, NEXT_ANSWER = 180.0, 30.0
LOOK = 0.25  # seconds between two looks of a waiting caller
# On ZeroGPU the platform lends its GPU to processes that `zero.py` has asked for, and to no other.
WITHOUT_GPU = {"SPACES_ZERO_GPU": "", "CUDA_VISIBLE_DEVICES": ""}
# A fork (`zero.py`) in the middle of a start would inherit its pipes, and the start would last as long as the fork.
_start = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_start.acquire, after_in_parent=_start.release, after_in_child=_start.release)
log = logging.getLogger(__name__)


class WorkerDied(RuntimeError):
    """The engine's process ended in the middle of a call."""


class NoGPU(RuntimeError):
    """A shared GPU refused a run before it began; `wait` is when this visitor's share returns, where it was said."""

    def __init__(self, reason: str, wait: timedelta | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


@dataclass(frozen=True, slots=True)
class RemoteFamily:
    """A family that is loaded in the engine's process."""

    name: str
    device: str
    facts: dict[str, Any]

    def describe(self) -> dict[str, Any]:
        return self.facts


# Whether the call ended, an error, an item; of the last answer whether the process ends, too.
Answers = queue.SimpleQueue[tuple[bool, "Exception | None", Any]]


class Process:
    """The engine's process and two threads: one reads its answers, one ends it if it is silent for too long.

    So a caller may stop waiting at any time, and answers that are not read hold up no other call.
    """

    def __init__(self, module: str = __name__, patience: tuple[float, float] = PATIENCE) -> None:
        hidden = WITHOUT_GPU if os.environ.get("SPACES_ZERO_GPU") else {}
        self.families: dict[tuple[str, str], RemoteFamily] = {}
        self.turn = threading.Lock()  # held by a call from its request to its last answer, even if it is not read
        self._number, self._answers = 0, Answers()
        self._bear, self._until = patience, math.inf  # when it has been silent for too long; idle, never
        self._ended, self._lock = False, threading.Lock()
        with _start:
            self._popen = children.start(module, environment=hidden, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = self._popen.pid
        atexit.register(self.kill)
        for work in (self._read, self._watch):
            threading.Thread(target=work, daemon=True).start()

    @property
    def alive(self) -> bool:
        return self._popen.poll() is None

    def kill(self) -> None:
        self._popen.kill()
        self._popen.wait()

    def ask(self, name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> tuple[int, Answers]:
        """Begin a call; its number, and where its answers arrive. The caller holds `turn`, and leaves it held."""
        with self._lock:
            self._number, self._answers = self._number + 1, Answers()
            self._until = time.monotonic() + self._bear[0]
            if self._ended:
                self._answers.put((True, self._death(), None))
        self._send((self._number, name, arguments, options))
        return self._number, self._answers

    def stop(self, number: int) -> None:
        """Let that call end within a cycle, without waiting for it."""
        self._send((number, "", (), {}))

    def _send(self, message: Any) -> None:
        assert self._popen.stdin is not None
        with contextlib.suppress(OSError):  # if the process died, the reading thread reports it
            send(self._popen.stdin, message)

    def _read(self) -> None:
        assert self._popen.stdout is not None
        with contextlib.suppress(Exception):  # cut off or garbled: either way no answer follows
            while True:
                number, *answer = pickle.load(self._popen.stdout)
                self._until = math.inf if answer[0] else time.monotonic() + self._bear[1]
                if number == self._number:
                    self._answers.put(tuple(answer))
                    if answer[0] and answer[2]:  # its turn is never given back: who waits for it goes to another
                        break
                    if answer[0]:
                        self.turn.release()
        self.kill()
        atexit.unregister(self.kill)
        with self._lock:
            self._ended = True
            self._answers.put((True, self._death(), None))

    def _death(self) -> WorkerDied:
        return WorkerDied(f"the engine's process ended with {self._popen.returncode}")

    def _watch(self) -> None:
        while self.alive:
            time.sleep(LOOK)
            if time.monotonic() > self._until:
                log.error("the engine was silent for too long and is ended")
                self.kill()


class Worker:
    """The page's side. Calls may come from any thread; they take turns.

    `module` is what the process runs: `serve` with its own calls. `patience`: seconds to the first answer, and between.
    """

    def __init__(self, module: str = __name__, patience: tuple[float, float] = PATIENCE) -> None:
        self._module, self._bear = module, patience
        self.machine: dict[str, Any] | None = None  # as the engine sees it, once a family is loaded
        self._process: Process | None = None
        self._starting = threading.Lock()

    def start(self) -> Process:
        """A living process that imports the engine, without waiting for it."""
        with self._starting:
            if self._process is None or not self._process.alive:
                self._process = Process(self._module, self._bear)
            return self._process

    def close(self) -> None:
        if self._process:
            self._process.kill()

    def is_loaded(self, family: str) -> bool:
        process = self._process
        return process is not None and process.alive and any(name == family for name, _ in tuple(process.families))

    def load(self, family: str, device: str) -> RemoteFamily:
        """ValueError where the family cannot be loaded."""
        known = self.start().families
        if (family, device) not in known:
            ((facts, self.machine),) = self.call("load", family, device)
            known[family, device] = RemoteFamily(family, device, facts)
        return known[family, device]

    def race(
        self, family: RemoteFamily, *wanted: Any, pulse: bool = False, **options: Any
    ) -> Generator[Any, None, None]:
        """The events of `race.race`. Closing the iterator ends the run within one cycle."""
        return self.call("race", family.name, family.device, *wanted, pulse=pulse, **options)

    def call(self, name: str, *arguments: Any, pulse: bool = False, **options: Any) -> Generator[Any, None, None]:
        """What one of `CALLS` yields over there. ValueError as it raises it; RuntimeError for others, or if it dies.

        With `pulse` it yields None wherever it has waited `LOOK` seconds, so that its reader can do something else, or
        leave. Closing the iterator never waits for the engine: what it still sends is dropped.
        """
        while not (process := self.start()).turn.acquire(timeout=LOOK):  # the call before is ending, or hangs
            if pulse:
                yield None
        number, answers = process.ask(name, arguments, options)
        ended = False
        try:
            while not ended:
                try:
                    ended, error, item = answers.get(timeout=LOOK)
                except queue.Empty:
                    if pulse:
                        yield None
                    continue
                if error:
                    raise error
                if not ended:
                    yield item
        finally:
            if not ended:
                process.stop(number)


def send(stream: Any, message: Any) -> None:
    stream.write(pickle.dumps(message, pickle.HIGHEST_PROTOCOL))
    stream.flush()


# ---- the other side ----


def load(family: str, device: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    from ..families import zoo
    from ..figures import machine

    yield zoo.load(family, device=device).describe(), machine.describe()


def race(family: str, device: str, *wanted: Any, **options: Any) -> Iterator[Any]:
    from ..families import zoo
    from .race import race

    return race(zoo.load(family, device=device), *wanted, **options)


def certify(pair: str, text: str, mistake: str, draws: int, seed: int) -> Iterator[dict[str, Any]]:
    from ..families import zoo
    from ..proof import certify
    from ..proof import pair as pairs
    from ..proof.mistakes import PLANTABLE

    if pair == "embedded":
        zoo.load().use_threads()
        chosen = pairs.embedded(text)
    else:
        chosen = pairs.toy()
    return certify.certify(chosen, PLANTABLE.get(mistake), draws, seed)


CALLS: dict[str, Callable[..., Iterator[Any]]] = {"load": load, "race": race, "certify": certify}


def serve(known: dict[str, Callable[..., Iterator[Any]]]) -> None:
    """Answer these calls until the caller is gone."""
    source, sink = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # printed text must not be taken for an answer
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is meant for the page
    calls: queue.SimpleQueue[tuple[int, str, tuple[Any, ...], dict[str, Any]]] = queue.SimpleQueue()
    stopped = 0

    def listen() -> None:
        nonlocal stopped
        while True:
            try:
                message = pickle.load(source)
            except Exception:
                os._exit(0)  # in the middle of a run, too
            if message[1]:
                calls.put(message)
            else:
                stopped = max(stopped, message[0])  # that of a call before may come late

    threading.Thread(target=listen, daemon=True).start()
    from ..families import zoo
    from ..proof import certify  # noqa: F401 -- before the first call needs it
    from . import race  # noqa: F401 -- before the first call needs it

    zoo.spared_cores = 1  # for the page, and perhaps its browser
    while True:
        number, name, arguments, options = calls.get()
        error: Exception | None = None
        try:
            with contextlib.closing(known[name](*arguments, **options)) as items:  # type: ignore[type-var]
                for item in items:
                    send(sink, (number, False, None, item))
                    if number <= stopped:
                        break
        except ValueError as refusal:
            error = ValueError(*refusal.args)  # errors of other classes may not survive pickling
        except Exception as broken:
            log.exception("a call of the engine broke off")
            error = refusal_of(broken)
        ends = spoiled()
        send(sink, (number, True, error, ends))
        if ends:
            os._exit(1)


def refusal_of(broken: Exception) -> Exception:
    """What its caller is told; out of memory, while models load or costs are probed say, is a sentence for visitors."""
    import torch

    from ..engine import NO_ROOM
    from ..gpu import lane

    if not isinstance(broken, torch.OutOfMemoryError):
        return RuntimeError(f"{type(broken).__name__}: {broken}")
    lane.release_memory()
    return ValueError(NO_ROOM)


def spoiled() -> bool:
    """Whether CUDA keeps an error, an illegal address say: then every further run of this process would fail."""
    import torch

    from ..gpu.graphs import Graphs

    if Graphs.spoiled:
        return True
    try:
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
    except RuntimeError:
        log.exception("an error stays on the GPU, so this process ends")
        return True
    return False


if __name__ == "__main__":
    serve(CALLS)
