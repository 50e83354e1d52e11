"""Wraps any drafter so that it drafts only as many tokens as pay off, and none where plain decoding is faster.

K is chosen before a draft by the acceptance so far, and within it by its confidence (`stop.py`). Only tokens that stay
in the draft decide, and none is dropped, so the output distribution is untouched. Costs are probed once and frozen, so
the same seed gives the same proposals.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..sampling import Sampler
from ..types import Costs, Proposal, SamplingParams
from .base import ChainDrafter, Drafter
from .stop import DraftLengthController, Rate


class AdaptiveDrafter:
    """Wraps `inner`. `k` is the most it may draft.

    Where `stops`, the confidence of a draft may end it. Else the depth is chosen before it is begun, as a captured
    graph needs it (`gpu/lane.py`).
    """

    name = "adaptive"

    def __init__(self, inner: Drafter, costs: Costs) -> None:
        self.inner, self.costs = inner, costs
        self.rate = Rate(1.0 / costs.passes[0])
        self.stop = DraftLengthController(self.rate)
        self.resting = self.rest = 0
        self._before: tuple[int, Proposal] | None = None  # length of the text, and the draft after it
        self.stops = isinstance(inner, ChainDrafter)
        if isinstance(inner, ChainDrafter):
            inner.should_stop = self.should_stop

    def propose(self, tokens: Sequence[int], k: int, params: SamplingParams, sampler: Sampler) -> Proposal:
        self.costs = self.costs.at(params.temperature)
        depth = self.depth(tokens, k)
        # At rest it does not even read on. At the prefill, where k is 0, it reads the prompt.
        proposal = self.inner.propose(tokens, depth, params, sampler) if depth or not k else Proposal()
        self.drafted(len(tokens), proposal)
        return proposal

    def depth(self, tokens: Sequence[int], k: int) -> int:
        """How deep to draft after this text, at most `k`."""
        self._learn(tokens)
        self.stop.begin(self.costs.cycles(k))
        return self._depth(k)

    def drafted(self, length: int, proposal: Proposal) -> None:
        """Remember what was drafted after a text of that length: the next text shows what was accepted of it."""
        self._before = (length, proposal)

    def should_stop(self, confidence: float, index: int) -> bool:
        """Whether one more token would not be worth its cost."""
        return self.stops and self.stop(confidence, index)

    def _depth(self, k: int) -> int:
        """The depth of the best expected rate; 0 where plain decoding is faster, except for a trial now and then."""
        alpha = self.stop.acceptance.upper  # if in doubt, trying is cheaper than not drafting
        expected, survival, best, depth = 1.0, 1.0, self.rate.plain, 0
        for deeper, cost in enumerate(self.costs.cycles(k)[1:], 1):
            survival *= alpha
            expected += survival
            if expected / cost > best:
                best, depth = expected / cost, deeper
        if depth:
            self.rest = 8
            # Confident tokens may go beyond the average depth; `should_stop` stops the others.
            return k if self.stops else depth
        self.resting += 1
        if self.resting <= self.rest:
            return 0
        self.resting, self.rest = 0, min(128, 2 * max(self.rest, 8))
        return min(k, 1)

    def _learn(self, tokens: Sequence[int]) -> None:
        """Learn from the text what was accepted of the last draft."""
        if self._before is None:
            return
        length, proposal = self._before
        node, depth, grown = -1, 0, list(tokens[length:])
        for token in grown:
            child = next((c for c in proposal.children(node) if proposal.tokens[c] == token), None)
            if child is None:
                break
            node, depth = child, depth + 1
        self.stop.learn(depth, depth + bool(proposal.children(node)))
        self.rate.add(len(grown), self.costs.cycle(proposal.levels))
