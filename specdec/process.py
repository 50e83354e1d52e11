"""Run engines in their own process, so that the page does not slow them down, and needs no torch.

In one process, the page and the engine would share the interpreter's lock, which made runs a tenth slower. The engine's
process answers one call at a time, with lines of a trace and with `Step`s and `Choice`s that say how far it is. If it
dies, or is killed after a long silence, the current call fails and the next one starts a new process. When no later run
can succeed, the process ends itself. Calls are numbered, so that late answers to an abandoned call are dropped.
"""

import contextlib
import importlib
import logging
import math
import multiprocessing
import os
import signal
import threading
import time
from asyncio import CancelledError
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

HEARTBEAT_S = 0.25  # a call without news answers None after this many seconds, so that its reader can leave
SILENCE_S = 180.0  # a process that is silent for longer is killed; steps of preparing give signs of life
SPAWN = multiprocessing.get_context("spawn")
log = logging.getLogger(__name__)


class ProcessDied(RuntimeError):
    """The engine's process ended during a call."""


class EngineProcess:
    """The page's side of the connection. Any thread can make calls; they are answered one after the other.

    `module` holds the `CALLS` that the process answers. `environment` replaces variables for it.
    """

    def __init__(self, module: str = f"{__package__}.calls", environment: Mapping[str, str] | None = None) -> None:
        self._module, self._environment = module, dict(environment or {})
        self._process: multiprocessing.context.SpawnProcess | None = None
        self._connection: Any = None  # a `Connection`, once the process is started
        self._turn, self._starting = threading.Lock(), threading.Lock()
        self._calls = 0

    def start(self) -> multiprocessing.context.SpawnProcess:
        """Start the process if none is alive, and return it. The process can still be importing the engine."""
        with self._starting:
            if self._process is None or not self._process.is_alive():
                self._connection, engine_end = SPAWN.Pipe()
                arguments = (engine_end, self._module, self._environment)
                process = SPAWN.Process(target=serve, args=arguments, daemon=True)
                process.start()
                self._process = process
                engine_end.close()
            return self._process

    def close(self) -> None:
        if self._process:
            self._process.kill()
            self._process.join()

    def call(self, name: str, *arguments: Any) -> "Call | Generator[Any, None, None]":
        """Call the function `name` of `CALLS`."""
        return Call(self, (name, arguments))


class Call(Iterator[Any]):
    """Iterates over the answers to a call: lines (str), and objects. None is a heartbeat.

    Raises the engine's errors: Refused, or RuntimeError for all others; and ProcessDied.
    """

    def __init__(self, process: EngineProcess, message: tuple[Any, ...]) -> None:
        self._process, self._message, self._last_sign = process, message, 0.0
        self._number = 0  # until the call has its turn; -1 when it is over

    def __next__(self) -> Any:
        if self._number < 0:
            raise StopIteration
        try:
            if not self._number and self._process._turn.acquire(timeout=HEARTBEAT_S):
                self._number = self._process._calls = self._process._calls + 1
                self._send()
            return self._receive() if self._number else None
        except (EOFError, OSError):
            self._process.close()  # before another call has its turn, which would start a new process
            self.close()
            raise ProcessDied("the engine's process ended") from None
        except BaseException:
            self.close()
            raise

    def _receive(self) -> Any:
        connection = self._process._connection
        if not connection.poll(HEARTBEAT_S):
            if time.monotonic() - self._last_sign > SILENCE_S:
                log.error("the engine was silent for too long, so its process is killed")
                self._process.close()
            return None
        answered, kind, content = connection.recv()
        self._last_sign = time.monotonic()
        if kind == "last":  # the process ends after this call
            self._process.close()
        if answered == self._number:
            if kind == "item":
                return content
            raise StopIteration if content is None else content
        if kind == "last":
            self._send()  # to a new process
        return None

    def _send(self) -> None:
        self._process.start()
        self._process._connection.send((self._number, *self._message))
        self._last_sign = time.monotonic()

    def close(self) -> None:
        """End the call, without waiting for the engine, which stops after its next answer."""
        if self._number > 0:
            with contextlib.suppress(OSError, AttributeError):  # no process, or none could be started
                self._process._connection.send(None)
            self._process._turn.release()
        self._number = -1


@dataclass(eq=False)
class Deadline(Exception):
    """The end of a visitor's seconds, which count from the first line. `check` raises it."""

    seconds: float
    end: float = math.inf
    is_over: bool = False

    def check(self, answer: Any) -> None:
        """Take the engine's next answer. Raises this deadline if one before was late: only the last may be."""
        if self.is_over:
            raise self
        if isinstance(answer, str):
            self.end = min(self.end, time.monotonic() + self.seconds)
        self.is_over = time.monotonic() > self.end


# ---- the engine's process ----


def serve(connection: Connection, module: str, environment: dict[str, str]) -> None:
    """Answer calls of `module.CALLS` until the connection closes."""
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is meant for the page
    waiting: SimpleQueue[tuple[Any, ...]] = SimpleQueue()
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
                waiting.put(message)

    threading.Thread(target=listen, daemon=True).start()
    threading.Thread(target=compile_layers, daemon=True).start()
    from . import calls  # which imports torch

    handlers: dict[str, Callable[..., None]] = importlib.import_module(module).CALLS
    engines: calls.Engines = {}
    while True:
        number, name, arguments = waiting.get()

        def send(item: Any, number: int = number) -> None:
            connection.send((number, "item", item))
            if current != number:
                raise CancelledError  # no Exception, so the loop does not catch it as the engine's

        error = None
        try:
            with contextlib.suppress(CancelledError):
                handlers[name](engines, send, *arguments)
        except Exception as failure:
            error = calls.explain(failure, engines.values())
        spoiled = calls.is_spoiled()
        connection.send((number, "last" if spoiled else "end", error))
        if spoiled:
            os._exit(1)


def compile_layers() -> None:
    """Compile the layers of small models, while the engine is imported and the page fetches the first pair."""
    import torch

    from .models.native import library

    if not torch.cuda.is_available():
        library()
