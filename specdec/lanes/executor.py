"""Choose what computes the cycles of a lane: the host, or captured graphs on a GPU."""

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace

import torch

from .. import loop
from ..events import Event
from ..gpu.lane import CudaExecutor, EagerExecutor, reason_against, target_of
from ..loop import CycleResult, HostExecutor, Task
from ..types import Proposal

PIECE = 128  # tokens; of smaller pieces, a pass costs noticeably more per token
OnRead = Callable[[str, int, int], None]  # lane, tokens read, tokens of the prompt


def run_task(task: Task, on_read: OnRead = lambda lane, done, total: None) -> Generator[Event, None, None]:
    """Run `task` in a `DeviceCycle` if its target is on a GPU and its drafter allows it, else by the host's executor.

    `on_read` is told how much of a long prompt is read; by a GPU never, as it reads any prompt in an instant.
    Raises Refused as `loop.generate` does.
    """
    if torch.device(getattr(target_of(task), "device", "cpu")).type != "cuda":
        return loop.generate(task, PiecewiseExecutor(task, on_read))
    reason = reason_against(task)
    return loop.generate(task, EagerExecutor(task, eager=reason) if reason else CudaExecutor(task))


class PiecewiseExecutor(HostExecutor):
    """Reads a long prompt piece by piece, and reports before each.

    Every run does: sums over pieces round differently, so that a seed could give another text to a run that reports.
    """

    def __init__(self, task: Task, on_read: OnRead) -> None:
        super().__init__(task)
        self.on_read = on_read
        self.reading_s = 0.0  # of pieces that are read, and in no cycle's times yet

    def draft(self, tokens: Sequence[int], k: int) -> tuple[Proposal, float, str]:
        """Draft; in the prefill, which drafts nothing, then read all of the prompt but its last piece."""
        result, start = super().draft(tokens, k), time.perf_counter()
        last = 0 if self.cache.length else len(tokens) - PIECE
        while (read := self.cache.length) < last:
            self.on_read(self.task.lane, read, len(tokens))
            self.task.target.forward(tokens[read : min(read + PIECE, last)], self.cache)
        if last > 0:
            self.on_read(self.task.lane, last, len(tokens))
        self.reading_s = time.perf_counter() - start
        return result

    def cycle(self, tokens: Sequence[int], k: int) -> CycleResult:
        """Count the reading as the target's pass."""
        result = super().cycle(tokens, k)
        seconds, self.reading_s = self.reading_s, 0.0
        return replace(result, verify_s=result.verify_s + seconds)
