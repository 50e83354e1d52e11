"""Wrap any drafter so that it drafts only as many tokens as pay off, and none while plain decoding is faster.

In each cycle, the acceptance rate so far decides whether to draft. During the draft, the confidence in its last token
decides whether it ends (`stop.py`). If a drafter cannot stop early, the acceptance rate chooses the depth. No drafted
token is dropped, so decoding stays lossless. Costs are measured only once, so the same seed gives the same proposals.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..sampling import Sampler
from ..types import Costs, Proposal, SamplingParams
from .base import ChainDrafter, Drafter
from .stop import DraftLengthController, Rate


class AdaptiveDrafter(Drafter):
    """Wraps the drafter `inner`.

    A token's confidence can end the draft of a `ChainDrafter`. `gpu/lane.py` calls only `depth` and `remember_draft`,
    because captured CUDA graphs need the depth before the draft begins.
    """

    name = "adaptive"
    costs: Costs

    def __init__(self, inner: Drafter, costs: Costs, name: str = name) -> None:
        self.inner, self.costs, self.name, self.deepest = inner, costs, name, inner.deepest
        self.rate = Rate(1.0 / costs.passes[0])
        self.stop = DraftLengthController(self.rate)
        self.skipped = self.cycles_to_skip = 0  # cycles without a draft since the last trial; how many until the next
        self._last: tuple[int, Proposal] | None = None  # the length of the text before the last draft, and this draft
        self._cycle_costs = costs.cycles(0)  # by the depth of that draft
        self.ends_early = isinstance(inner, ChainDrafter)
        if isinstance(inner, ChainDrafter):
            inner.end_drafts_by(self.stop)

    def read_prompt(self, tokens: Sequence[int]) -> None:
        self.inner.read_prompt(tokens)
        self.remember_draft(len(tokens), Proposal())

    def propose(self, tokens: Sequence[int], k: int, params: SamplingParams, sampler: Sampler) -> Proposal:
        depth = self.depth(tokens, k, params.temperature, self.ends_early)
        proposal = self.inner.propose(tokens, depth, params, sampler) if depth else Proposal()
        self.remember_draft(len(tokens), proposal)
        return proposal

    def depth(self, tokens: Sequence[int], k: int, temperature: float, ends_early: bool = False) -> int:
        """Choose how deep to draft after this text, at most `k`. A draft that `ends_early` may always reach `k`."""
        self._learn(tokens)
        self._cycle_costs = self.costs.at(temperature).cycles(k)
        self.stop.begin(self._cycle_costs)
        return self._depth(self._cycle_costs, ends_early)

    def remember_draft(self, length: int, proposal: Proposal) -> None:
        """Remember the draft after a text of `length` tokens. The next text shows which drafts were accepted."""
        self._last = (length, proposal)

    def _depth(self, cycle_costs: Sequence[float], ends_early: bool) -> int:
        """Return the depth with the most expected tokens per time, or the largest if the draft `ends_early`.

        Return 0 while plain decoding is faster. Now and then return 1 nevertheless, to see whether that changed.
        """
        alpha = self.stop.acceptance.upper  # an optimistic estimate, because a useless trial costs little
        expected, survival, best, depth = 1.0, 1.0, self.rate.plain, 0
        k = len(cycle_costs) - 1
        for deeper, cost in enumerate(cycle_costs[1:], 1):
            survival *= alpha
            expected += survival
            if expected / cost > best:
                best, depth = expected / cost, deeper
        if depth:
            self.cycles_to_skip = 8
            # `depth` is best for an average draft. A confident draft can go deeper; `stop` ends the others.
            return k if ends_early else depth
        self.skipped += 1
        if self.skipped <= self.cycles_to_skip:
            return 0
        self.skipped, self.cycles_to_skip = 0, min(128, 2 * max(self.cycles_to_skip, 8))
        return 1

    def _learn(self, tokens: Sequence[int]) -> None:
        """Compare the text with the last draft, and learn which tokens were accepted."""
        if self._last is None:
            return
        (length, proposal), self._last = self._last, None
        node, depth, new_tokens = -1, 0, list(tokens[length:])
        for token in new_tokens:
            child = next((c for c in proposal.tree.children(node) if proposal.tokens[c] == token), None)
            if child is None:
                break
            node, depth = child, depth + 1
        self.stop.learn(depth, depth + bool(proposal.tree.children(node)))
        self.rate.add(len(new_tokens), self._cycle_costs[proposal.tree.max_depth])
