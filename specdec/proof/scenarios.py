"""Known mistakes of state and of batches, kept on purpose: right in any single cycle, they err in what is kept from one
to the next, or from the third text of a request on.

A certificate of texts shows them (`tests/servers/test_scenarios.py`), if its prompts are long enough and its requests
ask for enough texts at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from ..drafters.base import NoDrafter
from ..engine import Task
from ..models.base import LanguageModel
from ..sampling import RandomSampler, Sampler
from ..types import SamplingParams
from .toys import ByPrefix, run_loop, TokenList
from .wrong_rules import OffByOneRow

WINDOW = 8  # tokens that a windowed toy reads


class Windowed(ByPrefix):
    """A toy with a sliding window: a row depends on the last tokens alone."""

    def __init__(self, model: LanguageModel[Any], cache: type[TokenList] = TokenList) -> None:
        self._model, self._cache, self.vocabulary, self.context = model, cache, model.vocabulary, model.context

    def logits(self, prefix: tuple[int, ...]) -> Tensor:
        last: Tensor = self._model.forward(prefix[-WINDOW:], self._model.new_cache(WINDOW))[-1]
        return last

    def new_cache(self, capacity: int) -> TokenList:
        return self._cache([])


class KeepsTail(TokenList):
    """A ring that cannot roll back once it has wrapped: what was rejected stays in the window."""

    stale = 0

    @property
    def length(self) -> int:
        return len(self.tokens) - self.stale

    def keep(self, length: int, path: Sequence[int] = ()) -> None:
        if len(self.tokens) <= WINDOW:
            super().keep(length, path)
        else:
            self.stale = len(self.tokens) - length - len(path)


class Reset(RandomSampler):
    """Begins anew in every cycle."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._seed = seed

    def at(self, length: int) -> None:
        super().__init__(self._seed)


@dataclass(frozen=True)
class Scenario:
    """`plant` makes the mistake in a task that writes the text at one `place` of its request."""

    key: str
    plant: Callable[[Task, int], Task] = lambda task, place: task
    sampler: Callable[[int], Sampler] = RandomSampler

    def texts(
        self, make: Callable[[Sequence[int], SamplingParams], Task], prompt: Sequence[int], params: SamplingParams,
        draws: int,
    ) -> list[tuple[int, ...]]:  # fmt: skip
        """Those of one request."""
        return [
            run_loop(lambda place=place: self.plant(make(prompt, params), place))(self.sampler(params.seed + place))  # type: ignore[misc]
            for place in range(draws)
        ]


def keeps_tail(task: Task, place: int) -> Task:
    """Of a windowed target."""
    return replace(task, target=Windowed(task.target, KeepsTail))


def shifts_rows(task: Task, place: int) -> Task:
    return replace(task, rule=OffByOneRow()) if place > 1 else task


SCENARIOS = {
    scenario.key: scenario
    for scenario in (
        Scenario("kept_tail", keeps_tail),  # rMLX issue 506
        Scenario("reset_generator", sampler=Reset),  # llama.cpp pull request 27694
        Scenario("third_text", shifts_rows),  # vLLM pull request 14645
        Scenario("no_drafts", lambda task, place: replace(task, drafter=NoDrafter())),  # LM Studio issue 1914
    )
}
