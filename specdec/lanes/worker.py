"""The engine in a process of its own, for a page that must not slow it down.

In one process, page and engine would share the interpreter's lock: serving a run's events cost the run a tenth
of its speed. One call at a time. A process that dies, or is silent for too long and is ended, breaks its call only: the
next call starts another. After an error that CUDA keeps for the whole process it ends by itself.

Calls are numbered: what a call that was left still sends is dropped by the next one.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import multiprocessing
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from .heartbeat import HEARTBEAT_S

SILENCE_S = 180.0  # models load, and costs are probed, before a call's first answer
SPAWN = multiprocessing.get_context("spawn")
log = logging.getLogger(__name__)


class WorkerDied(RuntimeError):
    """The engine's process ended in the middle of a call."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A pair that is loaded: facts of its models and of the machine, and the drafter and depth of the run to come.

    `speedup` is what is expected of these; 0 where no cost was measured.
    """

    models: dict[str, Any]
    machine: dict[str, Any]
    drafter: str
    k: int
    speedup: float = 0.0


@dataclass(frozen=True, slots=True)
class Answer:
    """One item of a call, or its end. At the end, the error if there was one, and whether the process ends, too."""

    call: int
    item: Any = None
    done: bool = False
    error: Exception | None = None
    exiting: bool = False


class Worker:
    """The page's side. Calls may come from any thread; they take turns.

    `module` holds the `CALLS` that the process answers.
    """

    def __init__(self, module: str = "specdec.lanes.calls") -> None:
        self._module = module
        self._process: multiprocessing.context.SpawnProcess | None = None
        self._connection: Connection
        self._turn, self._starting = threading.Lock(), threading.Lock()
        self._number = 0  # of the last call

    def start(self) -> multiprocessing.context.SpawnProcess:
        """Start the process if none is alive, without waiting until it has imported the engine. Return it."""
        with self._starting:
            if self._process is None or not self._process.is_alive():
                self._connection, theirs = SPAWN.Pipe()
                self._process = SPAWN.Process(target=serve, args=(theirs, self._module), daemon=True)
                self._process.start()
                theirs.close()
            return self._process

    def close(self) -> None:
        if self._process:
            self._process.kill()
            self._process.join()

    def call(self, name: str, *arguments: Any, **options: Any) -> Generator[Any, None, None]:
        """Yield what one of `CALLS` yields. A ValueError of the call arrives as it is, any other as a RuntimeError.

        A heartbeat, None, comes whenever nothing else has come for `HEARTBEAT_S`, so that the reader can leave.
        Closing the iterator never waits for the engine: the next call drops what it still sends.
        """
        while not self._turn.acquire(timeout=HEARTBEAT_S):
            yield None
        try:
            self.start()
            self._number += 1
            self._connection.send((self._number, name, arguments, options))
            yield from self._answers()
        except (EOFError, OSError):
            self.close()
            raise WorkerDied("the engine's process ended") from None
        finally:
            with contextlib.suppress(OSError):
                self._connection.send(None)  # ends it within one cycle
            self._turn.release()

    def _answers(self) -> Iterator[Any]:
        """Yield the items of the last call, and heartbeats."""
        until = time.monotonic() + SILENCE_S
        while True:
            if not self._connection.poll(HEARTBEAT_S):
                if time.monotonic() > until:
                    log.error("the engine was silent for too long and is ended")
                    self.close()
                yield None
                continue
            answer: Answer = self._connection.recv()
            until = time.monotonic() + SILENCE_S
            if answer.exiting and self._process:
                self._process.join()
            if answer.call != self._number:
                continue
            if not answer.done:
                yield answer.item
                continue
            if answer.error:
                raise answer.error
            return


# ---- the engine's process ----


def serve(connection: Connection, module: str) -> None:
    """Answer the `CALLS` of `module` until the caller is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is meant for the page
    calls: queue.SimpleQueue[tuple[int, str, tuple[Any, ...], dict[str, Any]]] = queue.SimpleQueue()
    wanted = 0  # the call whose items somebody waits for

    def listen() -> None:
        nonlocal wanted
        while True:
            try:
                message = connection.recv()
            except Exception:
                os._exit(0)  # in the middle of a run, too
            wanted = message[0] if message else 0
            if message:
                calls.put(message)

    threading.Thread(target=listen, daemon=True).start()
    handlers: dict[str, Callable[..., Iterator[Any]]] = importlib.import_module(module).CALLS
    from ..families import zoo

    zoo.spared_cores = 1  # for the page, and perhaps its browser
    while True:
        number, name, arguments, options = calls.get()
        error = None
        try:
            with contextlib.closing(handlers[name](*arguments, **options)) as items:  # type: ignore[type-var]
                for item in items:
                    connection.send(Answer(number, item))
                    if wanted != number:
                        break
        except Exception as broken:
            error = to_send(broken)
        exiting = is_spoiled()
        connection.send(Answer(number, done=True, error=error, exiting=exiting))
        if exiting:
            os._exit(1)


def to_send(error: Exception) -> Exception:
    """Make an error that can be pickled. A ValueError is a sentence for visitors and arrives as it is."""
    import torch

    from ..engine import NO_ROOM
    from ..gpu import lane

    if isinstance(error, ValueError):
        return ValueError(*error.args)
    log.error("a call of the engine broke off", exc_info=error)
    if isinstance(error, torch.OutOfMemoryError):
        lane.release_memory()
        return ValueError(NO_ROOM)
    return RuntimeError(f"{type(error).__name__}: {error}")


def is_spoiled() -> bool:
    """Whether CUDA keeps an error, such as an illegal address: then every further run of this process would fail."""
    import torch

    from ..gpu.graphs import Graphs

    try:
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
    except RuntimeError:
        log.exception("an error stays on the GPU, so this process ends")
        return True
    return Graphs.spoiled
