"""Draft on the device with fixed shapes and tensors that stay in place, so that CUDA graphs can capture the steps.

Each class computes the same logits as its drafter in `drafters/`. A drafter reads only new tokens. Here the first step
of a draft always reads the same number of last tokens, even those that it has read before.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..drafters.adaptive import AdaptiveDrafter
from ..drafters.base import Drafter, NoDrafter
from ..drafters.draft_model import DraftModelDrafter
from ..drafters.eagle3 import Eagle3Drafter, Eagle3Head
from ..drafters.early_exit import EarlyExitDrafter
from ..drafters.medusa import MedusaDrafter, MedusaHeads
from ..drafters.prompt_lookup import MAX_NGRAM, PromptLookupDrafter
from ..models.reduced import DraftVocabulary, ReducedDraft
from ..models.transformer import Transformer
from .graphs import StaticDecoder

ALL = DraftVocabulary()


@dataclass(frozen=True)
class Text:
    """A text on the device. The target's cache holds all tokens except the last."""

    tokens: Tensor  # [capacity + K + 1, rounded up]
    length: Tensor  # [1]; at least 2 when a draft begins
    prompt_end: Tensor  # [1]: the index after the prompt, without what a chat template adds behind it
    drafted: Tensor  # [K], the current draft
    target: StaticDecoder
    depth: int  # K: a cycle adds at most K + 1 tokens


class Steps:
    """Computes the logits of a draft with `source`, the drafter's weights, if it has any.

    When a draft begins, all tokens before the text's last `reach` must have been read; after cycles without a draft,
    `catch_up` reads them. `ids[i]` is the target's id of token i of the draft's vocabulary.
    """

    reach: int
    ids: Tensor  # [V of the draft], where V is the size of the vocabulary

    def __init__(self, text: Text, source: Any = None, vocabulary: DraftVocabulary = ALL) -> None:
        self.text, self.k, self.source = text, text.depth, source
        self.reach = len(text.tokens)  # by default, there is nothing to catch up
        everything = torch.arange(text.target.model.vocabulary, device=text.tokens.device)
        self.ids = everything if vocabulary.ids is None else vocabulary.ids

    def prefill(self, prompt: Sequence[int]) -> None:
        """Read the prompt, after the target has read it."""

    def catch_up(self, first: int, last: int, bucket: int) -> None:
        """Read the tokens from `first` to below `last`. Their number varies, so no graph captures this."""

    def valid_drafts(self, accepted: int, k: int) -> int:
        """Return how many of the `accepted` tokens the drafter's own cache already holds."""
        return 0

    def logits(self, bucket: int, k: int) -> Iterator[Tensor]:
        """Yield logits `k` times: after the text, then after each token that the caller writes to `text.drafted`.

        Attention reads the first `bucket` positions of the cache (`graphs.py`). Logits have shape [1, V of the draft].
        """
        raise NotImplementedError


class DraftModelSteps(Steps):
    """Drafts with a model. Its first step always reads the last two tokens.

    If all drafts of the cycle before were accepted, the model has read neither. Otherwise it has read the first, and
    reading it again writes the same entry to the cache.
    """

    def __init__(self, text: Text, model: Transformer) -> None:
        super().__init__(text, model, model.draft_vocabulary if isinstance(model, ReducedDraft) else ALL)
        self.decoder, self.reach = StaticDecoder(model, len(text.tokens)), 2

    def prefill(self, prompt: Sequence[int]) -> None:
        self.decoder.prefill(prompt)

    def catch_up(self, first: int, last: int, bucket: int) -> None:
        self.decoder.run_layers(self.text.tokens[first:last], self.decoder.place(first), bucket)

    def valid_drafts(self, accepted: int, k: int) -> int:
        return min(accepted, k - 1)  # the model never reads its last draft

    def logits(self, bucket: int, k: int) -> Iterator[Tensor]:
        text, places = self.text, self.decoder.places(self.text.length - 2, k + 1)
        yield self._logits(text.tokens.index_select(0, places[:2]), places[:1], bucket)
        for i in range(1, k):
            yield self._logits(text.drafted[i - 1 : i], places[i + 1 : i + 2], bucket)

    def _logits(self, ids: Tensor, start: Tensor, bucket: int) -> Tensor:
        """Read `ids`; return logits after the last one.  # [1, V of the draft]"""
        return self.decoder.model.logits(self.decoder.run_layers(ids, start, bucket)[-1:])


class EarlyExitSteps(Steps):
    """Drafts with the target's first layers. Verification continues from the hidden states after those layers."""

    def logits(self, bucket: int, k: int) -> Iterator[Tensor]:
        text, target, start = self.text, self.text.target, self.text.length - 1
        token = text.tokens.index_select(0, start)
        for i in range(k):
            yield target.model.logits(target.run_layers(token, start + i, bucket, 0, target.cache.exit_layer))
            token = text.drafted[i : i + 1]


class MedusaSteps(Steps):
    """Drafts all tokens at once, from the target's last hidden state."""

    source: MedusaHeads

    def logits(self, bucket: int, k: int) -> Iterator[Tensor]:
        (tap,) = self.source.taps
        state = self.text.target.cache.states[tap].index_select(0, self.text.length - 2)
        yield from self.source.logits(state, k)[:, None]


class Eagle3Steps(Steps):
    """Drafts with an EAGLE-3 head. Its first step reads the last K + 1 pairs, as many as a cycle can add.

    Pair i consists of the target's features of token i and the embedding of token i + 1, and has position i in the
    head's cache. If the text has fewer pairs, the step also reads pairs beyond the text's end. Those are masked.
    """

    def __init__(self, text: Text, head: Eagle3Head) -> None:
        super().__init__(text, head, head.draft_vocabulary)
        self.head, self.decoder = head, StaticDecoder(head.decoder, len(text.tokens))
        self.reach = self.k + 1

    def prefill(self, prompt: Sequence[int]) -> None:
        self.decoder.clear()
        if pairs := len(prompt) - 1:
            features = self.head.fuse(self.text.target.cache.states, slice(pairs))
            self.head.forward(features, prompt[1:], self.decoder.cache)

    def catch_up(self, first: int, last: int, bucket: int) -> None:
        first -= 1  # a pair's index is that of its first token
        places = self.decoder.places(self.decoder.place(first), last - 1 - first)
        features = self.head.fuse(self.text.target.cache.states, places)
        self._read(features, self.text.tokens[first + 1 : last], self.decoder.place(first), bucket)

    def logits(self, bucket: int, k: int) -> Iterator[Tensor]:
        state, places = self._after_text(bucket), self.decoder.places(self.text.length - 2, k)
        yield self.head.logits(state)
        for i in range(1, k):
            state = self._read(state, self.text.drafted[i - 1 : i], places[i : i + 1], bucket)
            yield self.head.logits(state)

    def _after_text(self, bucket: int) -> Tensor:
        """Read the last K + 1 pairs; return the state after the last one.  # [1, hidden]"""
        text, last = self.text, self.text.length - 2
        start = (last - self.k).clamp(min=0)
        places = self.decoder.places(start, self.k + 1)
        features = self.head.fuse(text.target.cache.states, places)
        states = self._read(features, text.tokens.index_select(0, places + 1), start, bucket)
        return states.index_select(0, last - start)

    def _read(self, features: Tensor, tokens: Tensor, start: Tensor, bucket: int) -> Tensor:
        stream, normed = self.head.inputs(features, tokens)
        return self.head.carried(self.decoder.run_layers(stream, start, bucket, normed_input=normed))


@dataclass(frozen=True)
class Draft:
    """What drafts on the device, and what it needs of the target's decoder. Equal drafts can use the same runner."""

    k: int  # a cycle drafts at most this many tokens
    steps: type[Steps] | None = None  # None: prompt lookup, which has no logits
    source: Any = None
    taps: tuple[int, ...] = ()
    exit_layer: int = 0
    around: tuple[int, int] = (0, 0)  # see `CopyingDrafter`


# Class of drafter -> its draft of at most `k` tokens. Other classes, also subclasses, draft on the host.
DRAFTS: dict[type, Callable[[Any, int], Draft]] = {
    NoDrafter: lambda drafter, k: Draft(0),
    PromptLookupDrafter: lambda drafter, k: Draft(k, around=drafter.around),
    DraftModelDrafter: lambda drafter, k: Draft(k, DraftModelSteps, drafter.model),
    EarlyExitDrafter: lambda drafter, k: Draft(k, EarlyExitSteps, exit_layer=drafter.view.exit_layer),
    MedusaDrafter: lambda drafter, k: Draft(k, MedusaSteps, drafter.heads, drafter.heads.taps),
    Eagle3Drafter: lambda drafter, k: Draft(k, Eagle3Steps, drafter.head, drafter.head.taps),
}


def inner_of(drafter: Drafter) -> Drafter:
    return drafter.inner if type(drafter) is AdaptiveDrafter else drafter


def draft_of(drafter: Drafter, k: int) -> Draft:
    """Return the draft of at most `k` tokens, no more than `drafter.deepest`. Only drafters in `DRAFTS` have one."""
    inner = inner_of(drafter)
    return DRAFTS[type(inner) if k else NoDrafter](inner, k)


def look_up(text: Text, bucket: int, around: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """Draft as `PromptLookupDrafter` does: copy what follows an earlier occurrence of the last 3, 2 or 1 tokens.

    Returns the copied tokens [K], and whether the last token occurs earlier at all, bool [1].
    """
    before, after = around
    ends = torch.arange(bucket, device=text.tokens.device)
    places = ends + before
    places += after * (places >= text.prompt_end)  # of the text without the template's tokens
    tokens, length = text.tokens[places.clamp(max=len(text.tokens) - 1)], text.length - before - after
    same = ends < length
    score = torch.zeros_like(ends)  # length of the match that ends before each index
    for n in range(1, MAX_NGRAM + 1):
        suffix = tokens.index_select(0, (length - n).clamp(min=0))
        same = same & (ends >= n) & (tokens.roll(n) == suffix)
        score = score + same
    best = (score * bucket + ends).masked_fill(ends >= length, -1).amax(0, keepdim=True)  # longest, then latest
    match = best % bucket
    # At the end of the text, the copy continues with its own first tokens, so the index wraps around.
    places = match + ends[: len(text.drafted)] % (length - match).clamp(min=1)
    return tokens.index_select(0, places), best >= bucket
