"""A draft model with another tokenizer: its words reach the target as text, or as the tokens that both have.

Greedy: it writes its own argmax tokens, and the target's tokenizer cuts their text (universal assisted generation in
transformers; string-level exact match in Timor et al. 2025, arXiv 2502.05202). What comes out follows from the text
alone, so each token is a point mass, and what is lost at a seam is speed only.

Sampling: it draws from its distribution over the tokens that have the same bytes in both vocabularies, warped and
normalised there (token-level intersection, the same paper). The walk is told that very distribution. Point masses would
be lossless at any temperature, but are kept with chance p(x) alone: they serve where the vocabularies share nothing.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any, Protocol

import torch
from torch import Tensor

from ..models.base import common_prefix, LanguageModel
from ..sampling import argmax, Sampler
from ..types import Proposal, SamplingParams
from .base import ChainDrafter, confidence

# Of a text that grows, this many of the last ids are cut anew each time; and before them so many bytes are looked at.
ANEW, BEFORE = 10, 40


class Words(Protocol):
    """A tokenizer, both ways (`text.Pieces`). Nothing in a text becomes a control token, and those have no bytes."""

    def bytes(self, token: int) -> bytes: ...

    def piece(self, token: int) -> str: ...

    def encode(self, text: str) -> list[int]: ...


class ForeignModel:
    """A draft model with its own tokenizer, for a target with `vocabulary` tokens of another.

    `prefix` begins every text of its own. `shared` holds the ids of one token in both vocabularies: the target's, then
    the draft model's.  # [2, S]
    """

    def __init__(
        self, model: LanguageModel[Any], own: Words, target: Words, vocabulary: int, prefix: Sequence[int] = ()
    ) -> None:
        self.model, self.own, self.target, self.vocabulary, self.prefix = model, own, target, vocabulary, list(prefix)
        self.parameters: int = getattr(model, "parameters", 0)
        # Of several ids with the same bytes the last: SentencePiece has its single bytes first, and writes the others.
        ours = {target.bytes(token): token for token in range(vocabulary)}
        theirs = {own.bytes(token): token for token in range(model.vocabulary)}
        self.own_of = {ours[data]: token for data, token in theirs.items() if data and data in ours}
        pairs = [list(self.own_of), list(self.own_of.values())]
        self.shared = torch.tensor(pairs, dtype=torch.long, device=getattr(model, "device", "cpu"))


class UniversalDrafter(ChainDrafter):
    """K counts the draft model's own tokens, and no more than K of the target's are proposed."""

    name = "universal"

    def __init__(self, part: ForeignModel) -> None:
        self.part, self.model = part, part.model
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._seen, self._text = 0, ""  # tokens of the target, and what they say in whole characters
        self._own = Rewritten(part.own)
        self._capacity, self._cache = 0, self.model.new_cache(0)  # grows with the text, see `_catch_up`
        self._cached: list[int] = []  # its own ids: the text's, then drafts that may have been rejected
        self._unread: list[int] = []

    def propose(self, tokens: Sequence[int], k: int, params: SamplingParams, sampler: Sampler) -> Proposal:
        length = self._catch_up(tokens, k)
        k = min(k, self.model.context - length + 1)
        if not self._unread:
            return Proposal()
        if k == 0:
            if self._unread[:-1]:
                self._read(self._unread[:-1])
            return Proposal()
        if params.temperature == 0.0 or not self.part.own_of:
            return self._rewritten(tokens, k)
        return self.chain([], k, params, sampler)

    def step(self, pending: list[int]) -> Tensor | None:
        """Logits of the shared tokens in the target's places; `pending` are tokens drawn from them.  # [1, V]"""
        logits = self._read([*self._unread, *(self.part.own_of[token] for token in pending)])
        self._unread = []
        ours, theirs = self.part.shared.to(logits.device)
        rows = logits.new_full((1, self.part.vocabulary), float("-inf"))
        rows[:, ours] = logits[:, theirs]
        return None if float(rows.amax()) == float("-inf") else rows

    def _rewritten(self, tokens: Sequence[int], k: int) -> Proposal:
        """The draft model's argmax tokens, up to `k` or until their text is more than `k` tokens of the target."""
        words, before = self.part.target, readable(b"".join(map(self.part.target.bytes, tokens[-ANEW:])))
        pending, own, said, ids = self._unread, list[int](), b"", list[int]()
        while len(own) < k and len(ids) <= k:
            logits = self._read(pending)
            pending = [int(argmax(logits))]
            data = self.part.own.bytes(pending[0])
            if not data:  # a control token: to the draft model, the text ends here
                break
            own, said = own + pending, said + data
            ids = continued(words, before, readable(said))
            if self.should_stop is not None and self.should_stop(confidence(logits, pending[0], None), len(own) - 1):
                break
        self._unread = []
        return Proposal.chain(ids[:k], own=cuts(self.part.own, own, [len(words.bytes(token)) for token in ids[:k]]))

    def _read(self, pending: list[int]) -> Tensor:
        logits = self.model.forward(pending, self._cache)
        self._cached += pending
        return logits

    def _catch_up(self, tokens: Sequence[int], k: int) -> int:
        """Find what the draft model has yet to read: at least its last token of the text, nothing while the text ends
        in half a character. Returns the length of the text in its tokens.
        """
        if len(tokens) < self._seen:
            raise ValueError("a drafter serves one run, whose text only grows")
        self._text += "".join(self._decoder.decode(self.part.target.bytes(token)) for token in tokens[self._seen :])
        self._seen, self._unread = len(tokens), []
        if self._decoder.getstate()[0]:
            return 0
        ids = [*self.part.prefix, *self._own.follow(self._text)]
        if len(ids) > self.model.context:
            raise ValueError(f"the text is longer than the {self.model.context} tokens that the draft model reads")
        if len(ids) + k > self._capacity:  # how many of its own tokens a text will have is not known before
            self._capacity = min(self.model.context, 2 * (len(ids) + k))
            self._cache, self._cached = self.model.new_cache(self._capacity), []
        same = common_prefix(self._cached, ids[:-1])
        self._cache.keep(same)
        del self._cached[same:]
        self._unread = ids[same:]
        return len(ids)


class Rewritten:
    """A growing text in a tokenizer's ids. What lies far enough back stays as it was cut."""

    def __init__(self, words: Words) -> None:
        self.words, self._data, self._ids = words, b"", list[int]()

    def follow(self, text: str) -> list[int]:
        """The ids of `text`, which begins with the last one."""
        data, kept = text.encode(), max(0, len(self._ids) - ANEW)
        at = len(self._data) - sum(len(self.words.bytes(token)) for token in self._ids[kept:])
        while kept and at < len(data) and data[at] & 0xC0 == 0x80:  # inside of a character
            kept -= 1
            at -= len(self.words.bytes(self._ids[kept]))
        anew = continued(self.words, readable(data[max(0, at - BEFORE) : at]), readable(data[at:])) if kept else []
        self._data, self._ids = data, [*self._ids[:kept], *anew] if anew else self.words.encode(text)
        return self._ids


def continued(words: Words, before: str, new: str) -> list[int]:
    """The ids of `new` where it follows `before`; none where no cut falls between the two.

    Counted from the end: some tokenizers put a space before a text.
    """
    ids, data = words.encode(before + new), new.encode()
    at, left = len(ids), len(data)
    while at and left > 0:
        at -= 1
        left -= len(words.bytes(ids[at]))
    return ids[at:] if b"".join(map(words.bytes, ids[at:])) == data else []


def readable(data: bytes) -> str:
    """The text of some bytes, without half a character at their end."""
    return codecs.getincrementaldecoder("utf-8")("replace").decode(data)


def cuts(words: Words, own: Sequence[int], sizes: Sequence[int]) -> tuple[tuple[str, ...], ...]:
    """For tokens of so many bytes, the pieces of `own` that each lies over; () for one that is such a piece itself.

    Nothing at all where all are.
    """
    ends = list(accumulate((len(words.bytes(token)) for token in own), initial=0))
    spans = list(zip(own, pairwise(ends), strict=True))
    told = []
    for start, end in pairwise(accumulate(sizes, initial=0)):
        under = [(token, span) for token, span in spans if span[0] < end and span[1] > start]
        same = [span for _, span in under] == [(start, end)]
        told.append(() if same else tuple(words.piece(token) for token, _ in under))
    return tuple(told) if any(told) else ()
