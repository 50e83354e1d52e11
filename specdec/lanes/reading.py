"""Report how much of a long prompt a target has read, so that a visitor sees that something happens."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor

from ..loop import Task
from ..models.base import LanguageModel

PIECE = 128  # tokens; of smaller pieces, a pass costs noticeably more per token
OnRead = Callable[[str, int, int], None]  # lane, tokens read, tokens of the prompt


class ReportedTarget:
    """A target that reads a long prompt piece by piece, and reports after each. Its logits are the target's."""

    def __init__(self, target: LanguageModel[Any], report: Callable[[int, int], None]) -> None:
        self.target, self.report = target, report
        self.vocabulary, self.context = target.vocabulary, target.context

    def new_cache(self, capacity: int) -> Any:
        return self.target.new_cache(capacity)

    def forward(self, tokens: Sequence[int], cache: Any, parents: Sequence[int] = (), rows: int = 1) -> Tensor:
        is_prompt = not cache.length and not parents and not getattr(cache, "begun", ())
        last = max(0, len(tokens) - max(rows, PIECE)) if is_prompt else 0
        read = 0
        while read < last:
            self.report(read, len(tokens))
            end = min(last, read + PIECE)
            self.target.forward(tokens[read:end], cache)
            read = end
        if read:
            self.report(read, len(tokens))
        return self.target.forward(tokens[read:], cache, parents, rows)


def reported(task: Task, on_read: OnRead) -> Task:
    """Return the task with a target that reports, if the host runs it: a GPU reads any prompt in an instant."""
    if getattr(getattr(task.target, "model", task.target), "device", "cpu") != "cpu":
        return task
    return replace(task, target=ReportedTarget(task.target, lambda done, total: on_read(task.lane, done, total)))
