"""The walk: a proposal, the target's rows and randomness in; a verdict out. Pure.

It serves chains and trees, greedy and sampled, model drafts and point masses. At a node, p is the target's
row. Each child in turn is kept with probability min(1, p/q); after a rejection the residual takes p's place, and
the next sibling is tried. When no child is kept, the target's own token is drawn from what p has become.

Chains: Leviathan et al. 2022 (arXiv 2211.17192), Chen et al. 2023 (2302.01318). Siblings: SpecInfer
(2305.09781). Lossless when each `probs[i]` is the distribution that token i was drawn from after its earlier siblings.
"""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from .sampling import RandomSampler, residual, Sampler
from .types import Kind, Proposal, Trial, Verdict


class Rule(Protocol):
    """Decides a cycle. Row i + 1 of `rows` [n + 1, V] is the target's distribution after node i, row 0 after the
    text.
    """

    name: str
    lossless: bool
    trees: bool = True  # whether it judges siblings, too

    def verify(self, proposal: Proposal, rows: Tensor, sampler: Sampler) -> Verdict: ...

    def sampler(self, seed: int) -> Sampler:
        """The randomness of a run under this rule."""
        return RandomSampler(seed)


class RejectionSampling(Rule):
    """The lossless rule of the papers. `proof/wrong_rules.py` plants known mistakes in the four small methods."""

    name = "rejection sampling"
    lossless = True

    def verify(self, proposal: Proposal, rows: Tensor, sampler: Sampler) -> Verdict:
        node, path, trials = -1, [], []
        while True:
            p = self.row(rows, node)
            children = proposal.children(node)
            for child in children:
                token = proposal.tokens[child]
                q = None if proposal.probs is None else proposal.probs[child]
                p_x, q_x = float(p[token]), 1.0 if q is None else float(q[token])
                accepted, u = self.accept(p_x, q_x, sampler, child)
                trials.append(Trial(child, token, p_x, q_x, u, accepted))
                if accepted:
                    path.append(child)
                    node = child
                    break
                p = self.residual(p, q, token)
            else:
                token = self.own_token(p, proposal, node, sampler)
                kind: Kind = "resampled" if children else "bonus"
                return Verdict(tuple(path), token, kind, tuple(trials), distribution=p)

    def row(self, rows: Tensor, node: int) -> Tensor:
        return rows[node + 1]

    def accept(self, p: float, q: float, sampler: Sampler, node: int) -> tuple[bool, float]:
        return sampler.accept(p, q, ("accept", node))  # u q < p

    def residual(self, p: Tensor, q: Tensor | None, token: int) -> Tensor:
        return residual(p, q, token)

    def own_token(self, p: Tensor, proposal: Proposal, node: int, sampler: Sampler) -> int:
        # The level of the last accepted token; -1 if there is none.
        return sampler.categorical(p, ("own", proposal.depth(node) - 1))
