"""The text that plain decoding wrote, as its draft: the most that any draft could gain on this machine. No method."""

from __future__ import annotations

from collections.abc import Sequence

from ..sampling import Sampler
from ..types import Proposal, SamplingParams


class OracleDrafter:
    """Names the tokens of `text`, prompt included, while the run is still there.

    They are point masses, and lossless as those of a copy are: unless `text` was drawn with the coins that judge it.
    So a sampled text is judged with shared noise, which tosses none and keeps them all.
    """

    name = "oracle"

    def __init__(self, text: Sequence[int]) -> None:
        self._text, self._same = list(text), 0  # so many of its tokens were read, and were the run's

    def propose(self, tokens: Sequence[int], k: int, params: SamplingParams, sampler: Sampler) -> Proposal:
        if list(tokens[self._same :]) != self._text[self._same : len(tokens)]:
            return Proposal()
        self._same = len(tokens)
        return Proposal.chain(self._text[len(tokens) : len(tokens) + k])
