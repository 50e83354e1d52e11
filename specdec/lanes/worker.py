"""Run the engine in its own process, so that the page does not slow it down.

In one process, the page and the engine would share the interpreter's lock, which made runs a tenth slower. The engine's
process answers one call at a time. If it dies, or is killed after a long silence, the current call fails and the next
one starts a new process. When no later run can succeed, the process ends itself.

Calls are numbered, so that late answers to an abandoned call are dropped.
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

SILENCE_S = 180.0  # a process silent for longer is killed; loading models and measuring costs takes less
SPAWN = multiprocessing.get_context("spawn")
log = logging.getLogger(__name__)


class WorkerDied(RuntimeError):
    """The engine's process ended during a call."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """Facts of the loaded models and of the machine, and the drafter and K of the coming run.

    `speedup` is the expected speed-up; 0 if no costs were measured.
    """

    models: dict[str, Any]
    machine: dict[str, Any]
    drafter: str
    k: int
    speedup: float = 0.0


@dataclass(frozen=True, slots=True)
class Answer:
    """One item of a call, or its end (`done`), perhaps with an error. If `exiting`, the process ends after the call."""

    call: int
    item: Any = None
    done: bool = False
    error: Exception | None = None
    exiting: bool = False


class Worker:
    """The page's side of the connection. Any thread can make calls; they run one after the other.

    `module` holds the `CALLS` that the process answers.
    """

    def __init__(self, module: str = "specdec.lanes.calls") -> None:
        self._module = module
        self._process: multiprocessing.context.SpawnProcess | None = None
        self._connection: Connection
        self._turn, self._starting = threading.Lock(), threading.Lock()
        self._number = 0  # of the last call

    def start(self) -> multiprocessing.context.SpawnProcess:
        """Start the process if none is alive, and return it. The process can still be importing the engine."""
        with self._starting:
            if self._process is None or not self._process.is_alive():
                self._connection, engine_end = SPAWN.Pipe()
                self._process = SPAWN.Process(target=serve, args=(engine_end, self._module), daemon=True)
                self._process.start()
                engine_end.close()
            return self._process

    def close(self) -> None:
        if self._process:
            self._process.kill()
            self._process.join()

    def call(self, name: str, *arguments: Any, **options: Any) -> Generator[Any, None, None]:
        """Call the function `name` of `CALLS` and yield its items. Raise errors as ValueError or RuntimeError.

        After every `HEARTBEAT_S` without an item, None is yielded, so that the reader can stop. Closing the iterator
        does not wait for the engine.
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
                self._connection.send(None)  # the engine ends the call after its next item
            self._turn.release()

    def _answers(self) -> Iterator[Any]:
        """Yield the items of the last call, and None as heartbeats."""
        deadline = time.monotonic() + SILENCE_S
        while True:
            if not self._connection.poll(HEARTBEAT_S):
                if time.monotonic() > deadline:
                    log.error("the engine was silent for too long, so its process is killed")
                    self.close()
                yield None
                continue
            answer: Answer = self._connection.recv()
            deadline = time.monotonic() + SILENCE_S
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
    """Answer calls of `module.CALLS` until the connection closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is meant for the page
    calls: queue.SimpleQueue[tuple[int, str, tuple[Any, ...], dict[str, Any]]] = queue.SimpleQueue()
    current = 0  # number of the call that the page still reads

    def listen() -> None:
        nonlocal current
        while True:
            try:
                message = connection.recv()
            except Exception:
                os._exit(0)  # the page is gone: end even in the middle of a run
            current = message[0] if message else 0
            if message:
                calls.put(message)

    threading.Thread(target=listen, daemon=True).start()
    handlers: dict[str, Callable[..., Iterator[Any]]] = importlib.import_module(module).CALLS
    from ..families import zoo

    zoo.spared_cores = 1  # leave one core to the page
    while True:
        number, name, arguments, options = calls.get()
        error = None
        try:
            with contextlib.closing(handlers[name](*arguments, **options)) as items:  # type: ignore[type-var]
                for item in items:
                    connection.send(Answer(number, item))
                    if current != number:
                        break
        except Exception as failure:
            error = picklable(failure)
        exiting = is_spoiled()
        connection.send(Answer(number, done=True, error=error, exiting=exiting))
        if exiting:
            os._exit(1)


def picklable(error: Exception) -> Exception:
    """Convert an error to one that can be pickled. A ValueError keeps its message, which visitors see."""
    import torch

    from ..engine import NO_ROOM
    from ..gpu import lane

    if isinstance(error, ValueError):
        return ValueError(*error.args)
    log.error("a call of the engine failed", exc_info=error)
    if isinstance(error, torch.OutOfMemoryError):
        lane.release_memory()
        return ValueError(NO_ROOM)
    return RuntimeError(f"{type(error).__name__}: {error}")


def is_spoiled() -> bool:
    """Return whether every further run would fail."""
    import torch

    from ..gpu.graphs import Graphs

    try:
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
    except RuntimeError:
        log.exception("CUDA cannot recover from an error, so this process ends")
        return True
    return Graphs.spoiled
