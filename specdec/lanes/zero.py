"""Runs on ZeroGPU, Hugging Face's shared GPUs. Imported there alone, in the page's main thread, before it is served.

The package `spaces` (0.51.3 was read) stands in for CUDA in the thread that imports it: a family loaded there is put
aside when the page is launched. Every call of a decorated function asks for a GPU, forks this process, and moves the
family to the GPU in there. Arguments and answers are pickled. Of an error only the name arrives, so what the engine
refuses is an answer. Graphs and pinned memory are made by a run, so in the fork.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Generator, Iterator
from typing import Any

import spaces
import torch

from ..families import presets, zoo
from ..figures import machine
from ..gpu.trial import SWITCH
from .heartbeat import with_heartbeat
from .race import race
from .worker import NoGPU, WorkerDied

LEASE_S = 20  # for which each run asks for a GPU; the visitor's quota must hold them
START_S = 3.0  # of the lease, before weights are moved
BYTES_PER_S = 2e9  # of weights that are moved
MAX_RUNS = 16  # at once, waiting for a GPU or on one; each holds a thread of the page
log = logging.getLogger(__name__)
os.environ[SWITCH] = "0"  # each fork would compile in its visitor's seconds


family = zoo.load(presets.hosts(), device="auto")
facts = family.describe()  # now: once put aside, its tensors tell nothing more


def seconds_left() -> float:
    """Seconds of a lease that are left for decoding, once the weights are on the GPU."""
    weights = sum(2 * model["parameters"] for model in facts.values() if isinstance(model, dict))
    return LEASE_S - START_S - weights / BYTES_PER_S


@spaces.GPU(duration=LEASE_S)
def on_gpu(**arguments: Any) -> Iterator[Any]:
    """In the fork: facts of the machine, then the events of `race`. TimeoutError or ValueError comes as the last."""
    limit, start = seconds_left(), time.monotonic()
    family.threads = 1  # OpenMP's others did not come along
    yield machine.describe() | {"shared": True}
    try:
        with contextlib.closing(race(family, **arguments)) as events:
            for event in events:
                yield event
                if time.monotonic() - start > limit:
                    yield TimeoutError(round(limit))
                    return
    except ValueError as refusal:
        yield ValueError(*refusal.args)
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()  # raises after an error on the GPU, which would stay: this fork is then not used again


class ZeroGPU:
    """The page's side, for runs of the one family. They take no turns: each has its own fork."""

    def __init__(self) -> None:
        self.family, self.models = family.name, facts
        self.machine = dict[str, Any]()  # as a fork sees it, once a run has begun
        self._seats = threading.Semaphore(MAX_RUNS)

    def race(self, **arguments: Any) -> Generator[Any, None, None]:
        """The events of `race.race`, and heartbeats. Closing the iterator ends the run within one cycle.

        NoGPU if there is none to be had, TimeoutError, with the seconds, if the run outlasts what it asked for.
        """
        if not self._seats.acquire(blocking=False):
            raise NoGPU("too many runs at once")
        begun = False
        try:  # in this context: whose quota it is stands in Gradio's context variables
            with contextlib.closing(with_heartbeat(self._lent(arguments))) as answers:
                for answer in answers:
                    begun |= answer is not None
                    if isinstance(answer, dict):
                        self.machine.update(answer)
                    else:
                        yield answer
        except Exception as error:
            if type(error) in (ValueError, TimeoutError):  # the run's own; else Gradio's, with the platform's sentence
                raise
            message = str(getattr(error, "message", error))
            log.warning("the GPU was %s: %s", "lost" if begun else "refused", message)
            raise WorkerDied(message) if begun else NoGPU(message) from None

    def _lent(self, arguments: dict[str, Any]) -> Generator[Any, None, None]:
        try:
            yield from on_gpu(**arguments)
        finally:
            self._seats.release()
