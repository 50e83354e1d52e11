"""How drafts are made on the device: each method over tensors that stay in place, so that a CUDA graph can hold it.

The specification of each is its drafter (`drafters/`); tests hold the two equal. Where that one remembers what it has
read, this one reads again, in shapes that never change: to read a place a second time changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from ..drafters import Drafter, Eagle3Head, MedusaHeads
from ..methods import METHODS
from ..models.transformer import Transformer
from .graphs import StaticDecoder

LONGEST = 3  # n-gram of prompt lookup
# What drafts: a model, heads, the target's own layers below the one of that number, or the text itself.
Draft = Transformer | MedusaHeads | Eagle3Head | int | Literal["lookup"] | None


@dataclass(frozen=True)
class Text:
    """A text on the device. The target's cache holds all of it but the last token."""

    tokens: Tensor  # [capacity + K + 1, aligned]
    length: Tensor  # [1], two at least where there is a draft
    drafted: Tensor  # [K], after the text
    target: StaticDecoder


class Plain:
    """No drafts."""

    @staticmethod
    def source(drafter: Any) -> Draft:
        """What it drafts with."""
        return None


class LookUp:
    """By `look_up`, all at once."""

    @staticmethod
    def source(drafter: Any) -> Draft:
        return "lookup"


class Steps:
    """Drafting token by token.

    `reach` is how many of the text's last tokens the first step reads by itself. Before it, `read` gets what stands
    further left and was not read yet: after cycles that drafted nothing.
    """

    reach: int

    @staticmethod
    def source(drafter: Any) -> Draft:
        raise NotImplementedError

    def __init__(self, text: Text) -> None:
        self.text, self.k = text, len(text.drafted)  # the most
        self.reach = len(text.tokens)  # nothing of its own is to be kept up

    def prefill(self, prompt: Sequence[int]) -> None:
        """Read the prompt, after the target has read it."""

    def read(self, first: int, last: int, bucket: int) -> None:
        """Read the tokens from `first` to below `last`. Numbers of the host: nothing waits, and no graph holds it."""

    def kept(self, accepted: int, k: int) -> int:
        """Of its own drafts, how many it has read as it will have to read them in the text."""
        return 0

    def logits(self, bucket: int, k: int) -> Iterator[Tensor]:
        """Logits after the text, then after each draft, which is in `drafted` by then.  # k times [1, V]"""
        raise NotImplementedError


class DraftModelSteps(Steps):
    """The first step is two tokens wide, so that no cycle needs a further pass.

    After full acceptance the model has seen neither its own last draft nor the bonus; else it reads a token again.
    """

    @staticmethod
    def source(drafter: Any) -> Draft:
        return drafter.model

    def __init__(self, text: Text, model: Transformer) -> None:
        super().__init__(text)
        self.decoder, self.reach = StaticDecoder(model, len(text.tokens)), 2

    def prefill(self, prompt: Sequence[int]) -> None:
        self.decoder.prefill(prompt)

    def read(self, first: int, last: int, bucket: int) -> None:
        self.decoder.run_layers(self.text.tokens[first:last], self.decoder.place(first), bucket)

    def kept(self, accepted: int, k: int) -> int:
        return min(accepted, k - 1)  # it never reads the last one

    def logits(self, bucket: int, k: int) -> Iterator[Tensor]:
        text, start = self.text, self.text.length - 2
        ids = text.tokens.index_select(0, self.decoder.places(start, 2))
        yield self.decoder.forward(ids, start, bucket)[-1:]
        for i in range(1, k):
            yield self.decoder.forward(text.drafted[i - 1 : i], start + 1 + i, bucket)


class EarlyExitSteps(Steps):
    """The target's first layers. Its check goes on from the states that they leave."""

    @staticmethod
    def source(drafter: Any) -> Draft:
        return drafter.view.exit_layer

    def logits(self, bucket: int, k: int) -> Iterator[Tensor]:
        text, target, start = self.text, self.text.target, self.text.length - 1
        token = text.tokens.index_select(0, start)
        for i in range(k):
            yield target.model.logits(target.run_layers(token, start + i, bucket, 0, target.cache.exit_layer))
            token = text.drafted[i : i + 1]


class MedusaSteps(Steps):
    """All at once, from the target's last state."""

    @staticmethod
    def source(drafter: Any) -> Draft:
        return drafter.heads

    def __init__(self, text: Text, heads: MedusaHeads) -> None:
        super().__init__(text)
        self.heads = heads

    def logits(self, bucket: int, k: int) -> Iterator[Tensor]:
        (tap,) = self.heads.taps
        state = self.text.target.cache.states[tap].index_select(0, self.text.length - 2)
        yield from self.heads.logits(state, k)[:, None]


class Eagle3Steps(Steps):
    """The first step reads the last K + 1 pairs of the text: the last cycle may have added that many.

    Of a shorter text it reads all, and pairs beyond its end: out of sight of the others, and overwritten in time.
    """

    @staticmethod
    def source(drafter: Any) -> Draft:
        return drafter.head

    def __init__(self, text: Text, head: Eagle3Head) -> None:
        super().__init__(text)
        self.head, self.decoder = head, StaticDecoder(head.decoder, len(text.tokens))
        self.reach = self.k + 1

    def prefill(self, prompt: Sequence[int]) -> None:
        self.decoder.clear()
        if pairs := len(prompt) - 1:
            features = self.head.fuse(self.text.target.cache.states, slice(pairs))
            self.head.read(features, prompt[1:], self.decoder.cache)

    def read(self, first: int, last: int, bucket: int) -> None:
        first -= 1  # a pair has the number of its earlier token
        places = self.decoder.places(self.decoder.place(first), last - 1 - first)
        features = self.head.fuse(self.text.target.cache.states, places)
        self._read(features, self.text.tokens[first + 1 : last], self.decoder.place(first), bucket)

    def logits(self, bucket: int, k: int) -> Iterator[Tensor]:
        text, last = self.text, self.text.length - 2  # the place of the last pair
        start = (last - self.k).clamp(min=0)
        places = self.decoder.places(start, self.k + 1)
        features = self.head.fuse(text.target.cache.states, places)
        states = self._read(features, text.tokens.index_select(0, places + 1), start, bucket)
        state = states.index_select(0, last - start)
        yield self.head.logits(state)
        for i in range(1, k):
            state = self._read(state, text.drafted[i - 1 : i], last + i, bucket)
            yield self.head.logits(state)

    def _read(self, features: Tensor, tokens: Tensor, start: Tensor, bucket: int) -> Tensor:
        stream, pairs = self.head.inputs(features, tokens)
        return self.decoder.run_layers(stream, start, bucket, read=pairs)


def form_of(drafter: Drafter) -> type[Plain | LookUp | Steps] | None:
    """How that very class drafts on the device, None where it does not: a subclass may draft differently."""
    return FORMS.get(type(drafter))


def deepest(draft: Draft, k: int) -> int:
    """Of `k` tokens, those that it can draft: Medusa has a head for each."""
    if draft is None:
        return 0
    return min(k, draft.count) if isinstance(draft, MedusaHeads) else k


def target_for(draft: Draft, target: Transformer, capacity: int) -> StaticDecoder:
    """The target, keeping the states that are drafted from."""
    if isinstance(draft, int):
        return StaticDecoder(target, capacity, exit_layer=draft)
    return StaticDecoder(target, capacity, draft.taps if isinstance(draft, MedusaHeads | Eagle3Head) else ())


def steps_of(draft: Transformer | MedusaHeads | Eagle3Head | int, text: Text) -> Steps:
    if isinstance(draft, Transformer):
        return DraftModelSteps(text, draft)
    if isinstance(draft, MedusaHeads):
        return MedusaSteps(text, draft)
    return Eagle3Steps(text, draft) if isinstance(draft, Eagle3Head) else EarlyExitSteps(text)


def look_up(text: Text, bucket: int) -> tuple[Tensor, Tensor]:
    """What followed the longest suffix of 3, 2 or 1 tokens at its latest earlier place, and whether there is one.

    [K] and bool [1]. `PromptLookupDrafter` without its index.
    """
    tokens, length = text.tokens[:bucket], text.length
    ends = torch.arange(bucket, device=tokens.device)
    same = ends < length
    score = torch.zeros_like(ends)
    for n in range(1, LONGEST + 1):
        suffix = tokens.index_select(0, (length - n).clamp(min=0))
        same = same & (ends >= n) & (tokens.roll(n) == suffix)
        score = score + same
    best = (score * bucket + ends).masked_fill(ends >= length, -1).amax(0, keepdim=True)
    match = best % bucket
    # A copy may run on into itself.
    places = match + ends[: len(text.drafted)] % (length - match).clamp(min=1)
    return tokens.index_select(0, places), best >= bucket


FORMS: dict[type, type[Plain | LookUp | Steps]] = {m.drafter_class: globals()[m.gpu] for m in METHODS.values() if m.gpu}
