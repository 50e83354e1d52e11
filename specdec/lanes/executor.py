"""Choose what computes the cycles of a lane: the host, or captured graphs on a GPU."""

from collections.abc import Generator

import torch

from .. import loop
from ..events import Event
from ..gpu.lane import CudaExecutor, EagerExecutor, reason_against, target_of
from ..loop import Task


def generate(task: Task) -> Generator[Event, None, None]:
    """Run `task` in a `DeviceCycle` if its target is on a GPU and its drafter allows it, else by the host's executor.

    Raises PromptError as `loop.generate` does.
    """
    if torch.device(getattr(target_of(task), "device", "cpu")).type != "cuda":
        return loop.generate(task)
    reason = reason_against(task)
    return loop.generate(task, executor=EagerExecutor(task, eager=reason) if reason else CudaExecutor(task))
