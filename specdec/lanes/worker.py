"""The engine in a process of its own, for a page that must not slow it down.

In one process page and engine would take turns at the interpreter's lock: serving a run's events cost the run a tenth
of its speed. Calls go down the process' standard input as pickles, what they yield comes back up its output. One call
at a time; a process that dies breaks its call, and the next call starts another.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
log = logging.getLogger(__name__)


class WorkerDied(RuntimeError):
    """The engine's process ended in the middle of a call."""


@dataclass(frozen=True, slots=True)
class RemoteFamily:
    """A family that is loaded over there."""

    name: str
    device: str
    facts: dict[str, Any]

    def describe(self) -> dict[str, Any]:
        return self.facts


class Worker:
    """This side. Callers see to it that calls do not overlap."""

    def __init__(self) -> None:
        self.machine: dict[str, Any] | None = None  # as the engine sees it, once a family is loaded
        self._process: subprocess.Popen[bytes] | None = None
        self._families: dict[tuple[str, str], RemoteFamily] = {}
        self._calls = 0
        self._starting = threading.Lock()

    def start(self) -> None:
        """Have a process that imports the engine, without waiting for it."""
        with self._starting:
            if self._process is None or self._process.poll() is not None:
                self._families.clear()
                path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
                self._process = subprocess.Popen(
                    [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                    env={**os.environ, "PYTHONPATH": path},
                )  # fmt: skip
                atexit.register(self._process.kill)

    def close(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()

    def is_loaded(self, family: str) -> bool:
        alive = self._process is not None and self._process.poll() is None
        return alive and any(name == family for name, _ in tuple(self._families))

    def load(self, family: str, device: str) -> RemoteFamily:
        """ValueError where the family cannot be loaded."""
        self.start()
        if (family, device) not in self._families:
            ((facts, self.machine),) = self.call("load", family, device)
            self._families[family, device] = RemoteFamily(family, device, facts)
        return self._families[family, device]

    def race(self, family: RemoteFamily, *wanted: Any, **options: Any) -> Generator[Any, None, None]:
        """The events of `race.race`. Closing the iterator ends the run within one cycle."""
        return self.call("race", family.name, family.device, *wanted, **options)

    def call(self, name: str, *arguments: Any, **options: Any) -> Generator[Any, None, None]:
        """What one of `CALLS` yields over there. ValueError as it raises it; RuntimeError for others, or if it dies."""
        self.start()
        assert self._process is not None
        process, ended = self._process, False
        self._calls += 1
        number = self._calls
        try:
            tell(process, (number, name, arguments, options))
            while True:
                ended, error, item = answer(process)
                if error:
                    raise error
                if ended:
                    return
                yield item
        finally:
            if not ended:  # stop it, and pass over what it told before it heard of that
                with contextlib.suppress(WorkerDied):
                    tell(process, (number, "", (), {}))
                    while not answer(process)[0]:
                        pass


def tell(process: subprocess.Popen[bytes], message: Any) -> None:
    assert process.stdin is not None
    with dying(process):
        send(process.stdin, message)


def answer(process: subprocess.Popen[bytes]) -> Any:
    assert process.stdout is not None
    with dying(process):
        return pickle.load(process.stdout)


@contextlib.contextmanager
def dying(process: subprocess.Popen[bytes]) -> Iterator[None]:
    try:
        yield
    except (EOFError, OSError, pickle.UnpicklingError) as error:
        process.kill()
        raise WorkerDied(f"the engine's process ended with {process.wait()}") from error


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
    from ..proof import certify
    from ..proof.mistakes import MISTAKES

    chosen = certify.toy() if pair == "toy" else certify.embedded(text)
    return certify.certify(chosen, MISTAKES.get(mistake), draws, seed)


CALLS: dict[str, Callable[..., Iterator[Any]]] = {"load": load, "race": race, "certify": certify}


def serve() -> None:
    """Answer calls until whoever asks is gone."""
    source, sink = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever prints shall not be taken for an answer
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
                stopped = message[0]

    threading.Thread(target=listen, daemon=True).start()
    from ..families import zoo
    from ..proof import certify  # noqa: F401 -- while nobody waits for it
    from . import race  # noqa: F401 -- while nobody waits for it

    zoo.spared_cores = 1  # for the page, and perhaps its browser
    while True:
        number, name, arguments, options = calls.get()
        error: Exception | None = None
        try:
            with contextlib.closing(CALLS[name](*arguments, **options)) as items:  # type: ignore[type-var]
                for item in items:
                    send(sink, (False, None, item))
                    if stopped == number:
                        break
        except ValueError as refusal:
            error = ValueError(*refusal.args)  # errors of other classes may not survive the way
        except Exception as broken:
            log.exception("a call of the engine broke off")
            error = RuntimeError(f"{type(broken).__name__}: {broken}")
        send(sink, (True, error, None))


if __name__ == "__main__":
    serve()
