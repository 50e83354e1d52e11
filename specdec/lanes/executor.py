"""Choose what computes the cycles of a lane: the host, or captured graphs on a GPU."""

from collections.abc import Generator

import torch

from .. import loop
from ..events import Event
from ..gpu.lane import CudaExecutor, EagerExecutor, reason_against, target_of
from ..loop import HostExecutor, OnRead, Task


def run_task(task: Task, on_read: OnRead = lambda lane, done, total: None) -> Generator[Event, None, None]:
    """Run `task` in a `DeviceCycle` if its target is on a GPU and its drafter allows it, else by the host's executor.

    `on_read` is told how much of a long prompt is read; by a GPU never, as it reads any prompt in an instant.
    Raises Refused as `loop.generate` does.
    """
    if torch.device(getattr(target_of(task), "device", "cpu")).type != "cuda":
        return loop.generate(task, HostExecutor(task, on_read=on_read))
    reason = reason_against(task)
    return loop.generate(task, EagerExecutor(task, eager=reason) if reason else CudaExecutor(task))
