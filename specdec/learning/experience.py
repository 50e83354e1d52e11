"""What a run teaches: the target's own logits at every place where it judged a draft. It computed them anyway.

A rejection says what the draft should have expected there, and an acceptance says it, too; after a rejection nothing
was judged, so nothing is learned.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..drafters import DraftModelDrafter, NoDrafter
from ..engine import generate, Task
from ..events import Committed, Event
from ..families.zoo import Family
from ..figures.stats import LaneStats
from ..models.base import LanguageModel
from ..types import SamplingParams


@dataclass(frozen=True)
class Lesson:
    """A text, and the target's logits for its tokens from `first` on."""

    tokens: tuple[int, ...]
    first: int
    logits: Tensor  # float16 [len(tokens) - first, V]


class Overheard:
    """A language model, of whose last pass the logits are kept."""

    def __init__(self, model: LanguageModel[Any]) -> None:
        self.model, self.vocabulary, self.context = model, model.vocabulary, model.context
        self.logits = torch.empty(0)

    def new_cache(self, capacity: int) -> Any:
        return self.model.new_cache(capacity)

    def forward(self, tokens: Sequence[int], cache: Any, parents: Sequence[int] = (), rows: int = 1) -> Tensor:
        self.logits = self.model.forward(tokens, cache, parents, rows)
        return self.logits


def run(
    family: Family, draft: LanguageModel[Any] | None, prompt: Sequence[int], k: int, params: SamplingParams
) -> Generator[None, None, tuple[LaneStats, Lesson]]:
    """One run of the shipped loop, plain without a draft. None after every event, where it may be left."""
    target, lane = Overheard(family.target), "speculative" if draft else "plain"
    drafter = DraftModelDrafter(draft, min(draft.context, len(prompt) + params.max_tokens)) if draft else NoDrafter()
    task = Task(
        target, prompt, params, drafter, k if draft else 0, end_tokens=family.end_tokens,
        token_bytes=family.pieces.bytes, piece=family.pieces.piece, lane=lane, details=False,
    )  # fmt: skip
    tokens, told, events = list(prompt), list[Tensor](), list[Event]()
    for event in generate(task):
        events.append(event)
        if isinstance(event, Committed):
            tokens += event.tokens
            told.append(
                target.logits[: len(event.tokens)].half()
            )  # of a chain: row i is the distribution of its token i
        yield
    return LaneStats.of(events, lane), Lesson(tuple(tokens), len(prompt), torch.cat(told))
