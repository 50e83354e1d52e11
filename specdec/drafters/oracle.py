"""Drafts the text that plain decoding wrote: the most that any drafter could gain on this machine. No method."""

from __future__ import annotations

from collections.abc import Sequence

from ..sampling import Sampler
from ..types import Proposal, SamplingParams


class OracleDrafter:
    """Drafts the tokens of `text`, prompt included, while the run agrees with it.

    Its tokens are point masses, and lossless as a copy's are, unless `text` was drawn with the coins that judge it.
    So judge a sampled text with shared noise, which tosses no coins and accepts every token.
    """

    name = "oracle"

    def __init__(self, text: Sequence[int]) -> None:
        self._text = list(text)
        self._same = 0  # tokens that the run has in common with the text

    def propose(self, tokens: Sequence[int], k: int, params: SamplingParams, sampler: Sampler) -> Proposal:
        if list(tokens[self._same :]) != self._text[self._same : len(tokens)]:
            return Proposal()
        self._same = len(tokens)
        return Proposal.chain(self._text[len(tokens) : len(tokens) + k])
