"""Rejection sampling: decide which tokens of a draft are accepted, and draw the target's own token after them.

One walk down the tree judges the draft (a chain is a tree). At each node, p starts as the target's distribution there.
A child x, drawn from q, is accepted with probability min(1, p(x) / q(x)); then the walk goes on at x. If x is rejected,
the residual replaces p, and the next child is tried. If no child is left, the target's own token is drawn from p.

For chains see algorithm 1 of Leviathan et al. 2022 (arXiv 2211.17192) and algorithm 2 of Chen et al. 2023 (2302.01318),
for siblings multi-step speculative sampling in SpecInfer (2305.09781, section 4.3). The rule is lossless if token i,
given its earlier siblings, was drawn from q = `probs[i]`.
"""

from abc import ABC, abstractmethod

from torch import Tensor

from .methods import RULE_FACTS, RuleFacts
from .sampling import RandomSampler, residual, Sampler
from .types import Kind, Proposal, Trial, Verdict


class Rule(ABC):
    """Judges the draft of one cycle.

    For a draft of n tokens, `rows` [n + 1, V] are the target's distributions: after the text, then after each token.
    """

    name: str
    lossless: bool
    trees: bool = False  # judges trees, not only chains

    def __init_subclass__(cls, facts: RuleFacts | None = None) -> None:
        if facts is not None:
            cls.name, cls.lossless, cls.trees = facts.name, facts.lossless, facts.trees

    @abstractmethod
    def verify(self, proposal: Proposal, rows: Tensor, sampler: Sampler) -> Verdict:
        """Accept a path of the draft, and draw the target's own token after it."""

    def sampler(self, seed: int) -> Sampler:
        """Make the sampler for a run with this rule."""
        return RandomSampler(seed)


class RejectionSampling(Rule, facts=RULE_FACTS["rejection"]):
    """The lossless rule of the papers. `proof/mistakes.py` overrides its small methods with known mistakes."""

    def verify(self, proposal: Proposal, rows: Tensor, sampler: Sampler) -> Verdict:
        node, path, trials = -1, [], []
        while True:
            p = self.row(rows, node)
            children = proposal.tree.children(node)
            for child in children:
                token = proposal.tokens[child]
                p_x, q_x = float(p[token]), proposal.q_of(child)
                accepted, u = self.accept(p_x, q_x, sampler, child)
                trials.append(Trial(child, token, p_x, q_x, u, accepted))
                if accepted:
                    path.append(child)
                    node = child
                    break
                p = self.residual(p, proposal.q(child), token)
            else:
                token = self.own_token(p, proposal, node, sampler)
                kind: Kind = "resampled" if children else "bonus"
                return Verdict(tuple(path), token, kind, tuple(trials), p, (1.0,) * len(proposal))

    def row(self, rows: Tensor, node: int) -> Tensor:
        return rows[node + 1]

    def accept(self, p: float, q: float, sampler: Sampler, node: int) -> tuple[bool, float]:
        return sampler.accept(p, q, ("accept", node))  # accepts if u q < p

    def residual(self, p: Tensor, q: Tensor | None, token: int) -> Tensor:
        return residual(p, q, token)

    def own_token(self, p: Tensor, proposal: Proposal, node: int, sampler: Sampler) -> int:
        return sampler.categorical(p, ("own", proposal.tree.depth(node)))
