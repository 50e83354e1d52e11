"""Any drafter, as deep as pays: K is chosen in every cycle, and 0 where plain decoding is faster.

One more draft token is worth its cost while the chance that it is kept exceeds the tokens that the same time
would give otherwise: survival > rate · marginal cost. (The rule of optimal stopping for a ratio of means; SpecDec++,
arXiv 2405.19715, and Leviathan et al., section 3, weigh the same two sides.) It decides from tokens that stay in the
draft and never drops one, so the output law is untouched; costs are probed once and frozen, so the same seed
gives the same proposals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..sampling import Chooser
from ..types import Costs, Proposal, SamplingParams
from .base import ChainDrafter, Drafter


class Share:
    """A running share with a prior; old outcomes fade, because texts change."""

    def __init__(self, prior: float, weight: float = 3.0, memory: float = 0.97) -> None:
        self.kept, self.seen, self.memory = prior * weight, weight, memory

    def add(self, kept: bool) -> None:
        self.kept = self.kept * self.memory + kept
        self.seen = self.seen * self.memory + 1.0

    @property
    def value(self) -> float:
        return self.kept / self.seen

    @property
    def optimistic(self) -> float:
        """One standard error above the mean: if in doubt, trying is cheaper than not drafting."""
        return min(1.0, self.value + math.sqrt(self.value * (1.0 - self.value) / self.seen))


class AdaptiveDrafter:
    """Wraps `inner`. `k` is the most it may draft.

    Where `stops`, the confidence of a draft may end it. Else the depth is chosen before it is begun, as a captured
    graph needs it (`gpu/lane.py`).
    """

    name = "adaptive"
    BINS = 8

    def __init__(self, inner: Drafter, costs: Costs) -> None:
        self.inner, self.costs = inner, costs
        self.acceptance = Share(0.6)  # of any drafted token
        # A distilled draft is kept more often than it is sure, a greedy one far more often.
        self.by_confidence = [Share(((i + 0.5) / self.BINS) ** (1 / 3), 2.0) for i in range(self.BINS)]
        self.tokens = self.spent = 0.0  # recently, with and without drafts: the rate that a draft must beat
        self.resting = self.rest = 0
        self._before: tuple[int, Proposal, list[int]] | None = None  # length of the text, draft, bins
        self._bins: list[int] = []
        self._survival = 1.0
        self.stops = isinstance(inner, ChainDrafter)
        if isinstance(inner, ChainDrafter):
            inner.enough = self.enough

    def propose(self, tokens: Sequence[int], k: int, params: SamplingParams, chooser: Chooser) -> Proposal:
        depth = self.depth(tokens, k)
        # At rest it does not even read on. At the prefill, where k is 0, it reads the prompt.
        proposal = self.inner.propose(tokens, depth, params, chooser) if depth or not k else Proposal()
        self.drafted(len(tokens), proposal)
        return proposal

    def depth(self, tokens: Sequence[int], k: int) -> int:
        """How deep to draft after this text, at most `k`."""
        self._learn(tokens)
        self._bins, self._survival = [], 1.0
        return self._depth(k)

    def drafted(self, length: int, proposal: Proposal) -> None:
        """What was drafted after a text of that length: the next one tells what was kept of it."""
        self._before = (length, proposal, self._bins)

    def enough(self, confidence: float, index: int) -> bool:
        """After each drafted token: would one more be worth its cost?"""
        if not self.stops:
            return False
        place = min(self.BINS - 1, int(confidence * self.BINS))
        self._bins.append(place)
        self._survival *= self.by_confidence[place].value
        return self._survival * self.acceptance.value <= self._rate * self._marginal(index + 1)

    def _marginal(self, depth: int) -> float:
        return self.costs.cycle(depth + 1) - self.costs.cycle(depth)

    @property
    def _rate(self) -> float:
        """Tokens per plain step, of recent cycles; plain decoding's own rate at least."""
        return max(1.0 / self.costs.passes[0], self.tokens / self.spent if self.spent else 0.0)

    def _depth(self, k: int) -> int:
        """The depth of the best expected rate; 0 where plain decoding is faster, except for a trial now and then."""
        alpha = self.acceptance.optimistic
        expected, survival, best, depth = 1.0, 1.0, 1.0 / self.costs.passes[0], 0
        for deeper in range(1, k + 1):
            survival *= alpha
            expected += survival
            if expected / self.costs.cycle(deeper) > best:
                best, depth = expected / self.costs.cycle(deeper), deeper
        if depth:
            self.rest = 8
            # Confident tokens may go beyond the average depth; `enough` stops the others.
            return k if self.stops else depth
        self.resting += 1
        if self.resting <= self.rest:
            return 0
        self.resting, self.rest = 0, min(128, 2 * max(self.rest, 8))
        return min(k, 1)

    def _learn(self, tokens: Sequence[int]) -> None:
        """Learn what was kept of the last draft, from the text."""
        if self._before is None:
            return
        length, proposal, bins = self._before
        node, depth, grown = -1, 0, list(tokens[length:])
        for token in grown:
            child = next((c for c in proposal.children(node) if proposal.tokens[c] == token), None)
            if child is None:
                break
            node, depth = child, depth + 1
        judged = depth + bool(proposal.children(node))
        for place in range(judged):
            self.acceptance.add(place < depth)
            if place < len(bins):
                self.by_confidence[bins[place]].add(place < depth)
        self.tokens = 0.9 * self.tokens + len(grown)
        self.spent = 0.9 * self.spent + self.costs.cycle(proposal.levels)
