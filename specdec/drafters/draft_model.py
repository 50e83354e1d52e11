"""Draft with a language model: a smaller one (Leviathan 2022, Chen 2023), or a copy of the target in fewer bits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from torch import Tensor

from ..models.base import common_prefix, LanguageModel
from ..models.quantised import QuantisedCopy
from ..models.reduced import ReducedDraft
from ..sampling import Sampler
from ..types import Proposal, SamplingParams
from .base import ChainDrafter, read_one_by_one


class DraftModelDrafter(ChainDrafter):
    """Draws each token from the draft model's distribution, with the target's temperature, top-k and top-p."""

    name = "draft_model"

    def __init__(self, model: LanguageModel[Any], capacity: int | None = None) -> None:
        self.model = model
        self.capacity = min(capacity or model.context, model.context)
        if isinstance(model, ReducedDraft):
            self.draft_vocabulary = model.draft_vocabulary
        self._cached: list[int] = []  # the ids in the cache: committed tokens, then drafts that may have been rejected
        self._committed = 0  # how many ids in the cache are certainly committed tokens

    @cached_property
    def _cache(self) -> Any:
        """The cache. It is allocated only when used, because captured CUDA graphs use their own cache."""
        return self.model.new_cache(self.capacity)

    def read_prompt(self, tokens: Sequence[int]) -> None:
        if len(tokens) <= self.capacity and (pending := self._catch_up(tokens)[:-1]):
            self._read(pending)

    def propose(self, tokens: Sequence[int], k: int, params: SamplingParams, sampler: Sampler) -> Proposal:
        if len(tokens) > self.capacity:
            return Proposal()  # the draft model cannot read so long a text
        steps = read_one_by_one(self._read, self._catch_up(tokens))
        return self.chain(steps, min(k, self.capacity - len(tokens) + 1), params, sampler)

    def _read(self, pending: list[int]) -> Tensor:
        logits = self.model.forward(pending, self._cache)
        self._cached += pending
        return logits

    def _catch_up(self, tokens: Sequence[int]) -> list[int]:
        """Remove rejected drafts from the cache. Return the tokens that the cache lacks: at least the last one."""
        if len(tokens) <= self._committed:
            raise ValueError("a drafter serves one run, whose text only grows")
        start = self._committed
        self._committed = start + common_prefix(self._cached[start:], tokens[start:-1])
        self._cache.keep(self._committed)
        del self._cached[self._committed :]
        return list(tokens[self._committed :])


class QuantisedDrafter(DraftModelDrafter):
    """Drafts with a copy of the target in fewer bits. The first run makes the copy, and later runs share it."""

    name = "quantised"

    def __init__(self, copy: QuantisedCopy, capacity: int | None = None) -> None:
        super().__init__(copy.model(), capacity)
