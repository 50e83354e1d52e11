"""A smaller language model drafts, token by token. The classic (Leviathan 2022, Chen 2023)."""

from __future__ import annotations

import time
from collections.abc import Sequence

import torch
from torch import Tensor

from ..models.base import LanguageModel
from ..sampling import Chooser, probabilities
from ..types import Proposal, SamplingParams


class DraftModelDrafter:
    """Draws each token from the draft model's law, warped exactly as the target's will be."""

    name = "draft_model"

    def __init__(self, model: LanguageModel, capacity: int | None = None) -> None:
        self.model = model
        self.capacity = min(capacity or model.context, model.context)
        self._cache = model.new_cache(self.capacity)
        self._cached: list[int] = []  # the ids in the cache: text, then drafts that may have been rejected
        self._text = 0  # how many of them are text for certain

    def propose(self, tokens: Sequence[int], k: int, params: SamplingParams, chooser: Chooser) -> Proposal:
        if len(tokens) > self.capacity:
            raise ValueError(f"the text is longer than the {self.capacity} tokens that the draft model reads")
        k = min(k, self.capacity - len(tokens) + 1)
        started = time.perf_counter()
        pending = self._catch_up(tokens)
        if k == 0:
            if pending[:-1]:
                self.model.forward(pending[:-1], self._cache)
                self._cached += pending[:-1]
            return Proposal()
        drafted: list[int] = []
        laws: list[Tensor] = []
        seconds: list[float] = []
        while len(drafted) < k:
            logits = self.model.forward(pending, self._cache)
            self._cached += pending
            token, law = self.draw(logits, params, chooser, len(drafted))
            drafted.append(token)
            laws.append(law)
            pending = [token]
            now = time.perf_counter()
            seconds.append(now - started)
            started = now
        return Proposal.chain(drafted, torch.stack(laws), tuple(seconds))

    def draw(self, logits: Tensor, params: SamplingParams, chooser: Chooser, index: int) -> tuple[int, Tensor]:
        """A token, and the very law that it was drawn from.  # [1, V] -> [V]"""
        law = probabilities(logits, params)[0]
        return chooser.categorical(law, ("draft", index)), law

    def _catch_up(self, tokens: Sequence[int]) -> list[int]:
        """Forget rejected drafts; return the tokens that the cache has not seen (at least the last one)."""
        if len(tokens) <= self._text:
            raise ValueError("a drafter serves one run, whose text only grows")
        same, limit = self._text, min(len(self._cached), len(tokens) - 1)
        while same < limit and self._cached[same] == tokens[same]:
            same += 1
        self._text = same
        self._cache.keep(same)
        del self._cached[same:]
        return list(tokens[same:])
