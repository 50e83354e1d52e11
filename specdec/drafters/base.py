"""Define the interface of a drafter, and base classes for drafters."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Generic, Protocol, TypeVar

import torch
from torch import Tensor

from ..models.cache import StaticCache
from ..models.reduced import DraftVocabulary
from ..models.view import TargetView
from ..sampling import argmax, probabilities, Sampler
from ..types import Costs, Proposal, SamplingParams

# (confidence in a drafted token, its index) -> whether the draft ends there
ShouldStop = Callable[[float, int], bool]
# Yields the logits of the next token, and gets the token that was drafted.  # [1, V of the draft]
Steps = Generator[Tensor, int, None]


class Drafter(ABC):
    """Drafts for one run. It gets the text, but no verdicts."""

    name: str
    deepest: int | None = None  # the number of levels that it can draft, if not only K limits it
    costs: Costs | None = None  # by these it chooses a depth itself; the trace records them

    def read_prompt(self, tokens: Sequence[int]) -> None:  # noqa: B027
        """Read the prompt `tokens`, which the target has read. This is called once, before the first draft."""

    @abstractmethod
    def propose(self, tokens: Sequence[int], k: int, params: SamplingParams, sampler: Sampler) -> Proposal:
        """Return a draft after `tokens` that is at most `k` levels deep, and `k` ≥ 1. It can be shorter, or empty.

        A drafter can end the draft after any token. It must not drop a token that it drew, nor fail because of one:
        that would change the distribution of the text.
        """


class NoDrafter(Drafter):
    """Proposes nothing, which makes the loop plain decoding."""

    name = "none"

    def propose(self, tokens: Sequence[int], k: int, params: SamplingParams, sampler: Sampler) -> Proposal:
        return Proposal()


class CopyingDrafter(Drafter):
    """Copies tokens from earlier in the text.

    `around` counts the tokens of a chat template: (before the prompt, after the prompt). These tokens are not searched,
    because an answer does not repeat them.
    """

    def __init__(self, around: tuple[int, int] = (0, 0)) -> None:
        self.around = around
        self._text: list[int] = []  # prompt and answer, without the template
        self._seen = 0  # length of `tokens` in the last call

    def read_prompt(self, tokens: Sequence[int]) -> None:
        before, after = self.around
        self._text += tokens[before : len(tokens) - after]
        self._seen = len(tokens)

    def propose(self, tokens: Sequence[int], k: int, params: SamplingParams, sampler: Sampler) -> Proposal:
        self._text += tokens[self._seen :]
        self._seen = len(tokens)
        copied = self.copied(self._text, k)
        return Proposal.chain(copied) if copied else Proposal()

    @abstractmethod
    def copied(self, text: Sequence[int], k: int) -> list[int]:
        """Return at most `k` tokens, copied from `text`, which only grows from call to call."""


class ChainDrafter(Drafter):
    """Drafts token by token."""

    _should_stop: ShouldStop | None = None
    draft_vocabulary = DraftVocabulary()

    def end_drafts_by(self, should_stop: ShouldStop) -> None:
        """End each later draft after the first token for which `should_stop` returns True."""
        self._should_stop = should_stop

    def draw(self, logits: Tensor, params: SamplingParams, sampler: Sampler, index: int) -> tuple[int, Tensor | None]:
        """Draw a token from a step's logits. Return it and its distribution [V] after temperature, top-k and top-p.

        Greedy decoding returns no distribution: the token is a point mass.
        """
        if params.temperature == 0.0:
            return int(self.draft_vocabulary.target_ids(argmax(logits))), None
        distribution = self.draft_vocabulary.spread(probabilities(logits, params))[0]
        return sampler.categorical(distribution, ("draft", index)), distribution

    def chain(self, steps: Steps, k: int, params: SamplingParams, sampler: Sampler) -> Proposal:
        """Draft a token of each of up to `k` steps. What `end_drafts_by` got may end the draft early."""
        drafted: list[int] = []
        distributions: list[Tensor] = []
        seconds: list[float] = []
        started = time.perf_counter()
        logits = next(steps)
        while True:
            token, distribution = self.draw(logits, params, sampler, len(drafted))
            drafted.append(token)
            if distribution is not None:
                distributions.append(distribution)
            now = time.perf_counter()
            seconds.append(now - started)
            started = now
            stop = self._should_stop
            if stop is not None and stop(confidence(logits, token, distribution), len(drafted) - 1):
                break
            if len(drafted) == k:
                break
            logits = steps.send(token)
        return Proposal.chain(drafted, torch.stack(distributions) if distributions else None, tuple(seconds))


def read_one_by_one(read: Callable[[list[int]], Tensor], pending: list[int]) -> Steps:
    """Read the pending tokens, and then each drafted token. `read` returns the logits after the last."""
    while True:
        token = yield read(pending)
        pending = [token]


def confidence(logits: Tensor, token: int, distribution: Tensor | None) -> float:
    """Return how confident the draft is in a token: its probability in `distribution` [V], if it was sampled.

    A greedy token's confidence is a softmax over the two largest of the `logits` [1, draft's V]. Over all tokens,
    the softmax can be small even if the target agrees.
    """
    if distribution is not None:
        return float(distribution[token])
    others = logits.float().cpu().numpy()[0].copy()
    best = others.argmax()
    own, others[best] = others.item(best), -math.inf
    return 1.0 / (1.0 + math.exp(others.item(others.argmax()) - own))


class Head(Protocol):
    """A small network with its own cache that reads the target's states."""

    draft_vocabulary: DraftVocabulary

    def new_cache(self, capacity: int) -> StaticCache: ...

    def fuse(self, states: Mapping[int, Tensor], places: slice) -> Tensor:
        """Make the features of the tokens at `places` from the target's states there.  # [n, hidden]"""
        ...

    def forward(self, features: Tensor, tokens: Sequence[int], cache: StaticCache) -> Tensor:
        """Add a cache entry for each feature; return states after `tokens`.  # [n, hidden] -> [n or slots, hidden]"""
        ...

    def logits(self, states: Tensor) -> Tensor:
        """Return the logits of states from `forward`.  # [n, hidden] -> [n, V of the draft]"""
        ...


H = TypeVar("H", bound=Head)


def checked_taps(listed: Sequence[int], layers: int, after: bool = False) -> tuple[int, ...]:
    """Return the layers to tap: `listed`, or the layers after them if `after`. Raises ValueError if one is missing."""
    taps = tuple(tap + after for tap in listed)
    if min(taps) < 0 or max(taps) > layers:
        raise ValueError(f"the head reads layers {list(listed)}; the target has {layers}")
    return taps


class HeadDrafter(Drafter, Generic[H]):
    """Keeps a head's KV cache up to date. For drafted tokens the head reads its own states, else the target's."""

    def __init__(self, view: TargetView, head: H, capacity: int) -> None:
        self.view, self.head, self.capacity = view, head, capacity
        self._from_target = 0  # entries of the cache that were computed from the target's features

    @cached_property
    def _cache(self) -> StaticCache:
        """The head's cache. It is allocated only when used, because captured CUDA graphs use their own cache."""
        return self.head.new_cache(self.capacity)

    def propose(self, tokens: Sequence[int], k: int, params: SamplingParams, sampler: Sampler) -> Proposal:
        return self.draft(*self.catch_up(tokens), k, params, sampler)

    def read_prompt(self, tokens: Sequence[int]) -> None:
        features, pending = self.catch_up(tokens)
        if pending:
            self.fill_cache(features, pending)

    @abstractmethod
    def draft(self, features: Tensor, pending: list[int], k: int, params: SamplingParams, sampler: Sampler) -> Proposal:
        """Read what `catch_up` returned, and return a draft after it that is at most `k` levels deep."""

    def catch_up(self, tokens: Sequence[int]) -> tuple[Tensor, list[int]]:
        """Remove the last draft from the cache. Return features, and the tokens that the head must read with them.

        With each token it reads the target's feature of the token before. After a prompt of one token there is none.
        """
        end = len(tokens) - 1
        start = max(0, min(self._from_target, end - 1))
        self._cache.keep(start)
        self._from_target = start
        return self.head.fuse(self.view.cache.states, slice(start, end)), list(tokens[start + 1 :])

    def fill_cache(self, features: Tensor, pending: list[int]) -> None:
        """Read the prompt's tokens, but draft nothing after them."""
        self.forward(features, pending)

    def forward(self, features: Tensor, pending: list[int]) -> Tensor:
        """Read the pending tokens with their features; return the head's states after them.  # [n or slots, hidden]"""
        states = self.head.forward(features, pending, self._cache)
        self._from_target = min(self._cache.length, self.view.cache.length)
        return states


class HeadChainDrafter(HeadDrafter[H], ChainDrafter):
    """Drafts a chain, token by token, with a head."""

    def __init__(self, view: TargetView, head: H, capacity: int) -> None:
        super().__init__(view, head, capacity)
        self.draft_vocabulary = head.draft_vocabulary

    def draft(self, features: Tensor, pending: list[int], k: int, params: SamplingParams, sampler: Sampler) -> Proposal:
        return self.chain(self.steps(features, pending, k), k, params, sampler)

    def steps(self, features: Tensor, pending: list[int], k: int) -> Steps:
        """Read what `catch_up` returned, then each drafted token with the head's own state before it."""
        while True:
            features = self.forward(features, pending)[-1:]
            token = yield self.head.logits(features)
            pending = [token]


def siblings(distribution: Tensor, count: int, sampler: Sampler, level: int) -> Iterator[tuple[int, Tensor]]:
    """Draw up to `count` different tokens. Yield each token with the distribution [V] that it was drawn from.

    Each distribution excludes the tokens that were drawn before. Verification tests the tokens in the same order
    (SpecInfer, arXiv 2305.09781).
    """
    for _ in range(count):
        token = sampler.categorical(distribution, ("draft", level))
        yield token, distribution
        distribution = distribution.index_fill(0, torch.tensor([token], device=distribution.device), 0.0)
        if not (mass := float(distribution.sum())) > 0.0:
            return
        distribution = distribution / mass
