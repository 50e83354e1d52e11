"""The contract of a drafter: text in, proposal out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..sampling import Chooser
from ..types import Proposal, SamplingParams


class Drafter(Protocol):
    """One instance serves one run: it may keep caches, and finds out by itself what was kept of its drafts."""

    name: str

    def propose(self, tokens: Sequence[int], k: int, params: SamplingParams, chooser: Chooser) -> Proposal:
        """A draft of at most `k` tokens depth behind `tokens`. Fewer, or none, is always allowed.

        With `k` 0, at the prefill, nothing is wanted: a drafter may read the prompt then.

        The length of a draft may depend on tokens that stay in it. A token that ends a draft is never
        dropped: that would change the law of what is left.
        """
        ...


class NoDrafter:
    """Proposes nothing: the loop is then plain decoding."""

    name = "none"

    def propose(self, tokens: Sequence[int], k: int, params: SamplingParams, chooser: Chooser) -> Proposal:
        return Proposal()
