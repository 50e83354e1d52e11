"""Run the host's pair on ZeroGPU, the GPUs that Spaces share. Only the app on such a Space imports this module.

The package `spaces` emulates CUDA in the main thread, where the models are loaded. For a call of a decorated function,
it asks for a GPU, forks the page, and moves the models to the GPU there. Of an exception in the fork, only the name
returns, so the engine's errors are answers.
"""

import contextlib
import logging
import os
import time
from collections.abc import Callable, Generator
from typing import Any

import gradio
import spaces  # before torch
import torch

from .calls import explain, is_spoiled, lines_of
from .engine import Engine
from .gpu.trial import SWITCH
from .messages import Step
from .process import Call, Deadline, EngineProcess, ProcessDied
from .settings import RunRequest

ON_CPU = {"SPACES_ZERO_GPU": "", "CUDA_VISIBLE_DEVICES": ""}  # the environment of the process without a GPU
MARGIN_S = 4.0  # of the duration, in which a fork starts CUDA and moves the models
log = logging.getLogger(__name__)


def duration_s(request: RunRequest, *_: Any) -> int:
    """Return for how many seconds a run asks for a GPU, 10 to 20. A visitor's quota must have as many left."""
    return min(20, 10 + request.params.max_tokens // 12)


class ZeroProcess(EngineProcess):
    """Answers calls like an `EngineProcess`, which it is on the CPU; but runs of one pair are on a shared GPU."""

    def __init__(self, pair: str) -> None:
        """Load the pair. Call this in the main thread, before the page is served."""
        super().__init__(environment=ON_CPU)
        os.environ.setdefault(SWITCH, "0")  # each fork would spend a visitor's seconds on trying Triton's kernels
        self._pair, self._engine = pair, Engine(pair)
        self._engine.models.resources.threads = 1  # OpenMP's other threads do not exist in a fork
        self._on_gpu = spaces.GPU(duration=duration_s)(self._decode)

    def call(self, name: str, *arguments: Any) -> Call | Generator[Any, None, None]:
        if name == "run" and arguments[0].target == self._pair:
            return self._run(*arguments)
        if name == "prepare" and arguments[0] == self._pair:
            return (choice for choice in [self._engine.prepare(measure=False)])  # the pair is always there
        return super().call(name, *arguments)

    def _run(self, *arguments: Any) -> Generator[Any, None, None]:
        """Yield the answers to a run. If it gets no GPU, the platform's sentence is one, and the CPU gives the rest."""
        has_begun, broken = False, None
        yield Step("ask")
        try:
            with contextlib.closing(self._on_gpu(*arguments)) as items:
                for item in items:
                    if isinstance(item, Exception):  # of the engine; it is the last item
                        broken = item
                        continue
                    yield item
                    has_begun |= isinstance(item, str)
        except (gradio.Error, RuntimeError) as error:  # of the platform; some have a message for visitors
            reason = str(getattr(error, "message", error))
            log.warning("no shared GPU: %s", reason)
            if has_begun:
                raise ProcessDied(reason) from error
            broken = None  # its run begins anew
            yield Step("ask", text=reason)
            yield from super().call("run", *arguments)
        if broken:
            raise broken

    def _decode(
        self, request: RunRequest, device: str, kind: str, translate: Callable[[str], str]
    ) -> Generator[Any, None, None]:
        """In the fork: yield what `calls.run` sends, and its error, if any. The deadline is before the platform's."""
        seconds = duration_s(request) - MARGIN_S
        deadline = Deadline(seconds, time.monotonic() + seconds)
        torch.set_num_threads(1)
        try:
            started = self._engine.start(request, measure=False, kind=kind)
            yield started.choice
            with contextlib.closing(lines_of(started, translate)) as texts:
                for text in texts:
                    deadline.check(text)
                    yield text
        except Deadline as end:
            yield end
        except Exception as error:
            yield explain(error, [self._engine])
        finally:
            if is_spoiled():
                os._exit(1)  # else the platform would use this fork again
