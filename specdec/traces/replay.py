"""Judge a recorded cycle again by the engine's own rules.

A trace records what a decision depends on: p, q, the coin u, block verification's h, a rounded entropy, and the tokens
that the target drew. The replay passes these values to the rule instead of probability rows and random numbers.
"""

import math

import torch
from torch import Tensor

from ..describe import statuses
from ..events import UNNAMED
from ..rules import RULES, TypicalAcceptance
from ..sampling import Sampler
from ..types import is_chain, Proposal, Status
from .cycle import BLOCK_RULE, chances, CycleEvents, NOISE

NEAR = 1e-5  # relative tolerance for typical acceptance, whose limit depends on a rounded entropy


class NotRecorded(Exception):
    """The trace lacks a number without which the cycle cannot be judged."""


class ReplayedSampler(Sampler):
    """Returns the coins and draws of the trace. `unchecked` holds the nodes for which they are missing."""

    def __init__(self, cycle: CycleEvents, rule: str) -> None:
        self.cycle, self.rule, self.unchecked = cycle, rule, set[int]()
        tokens = {UNNAMED, *cycle.committed.tokens, *(x.token for x in cycle.positions)}
        self.index = {token: number for number, token in enumerate(tokens)}  # a vocabulary of this cycle's tokens
        self._drawn, self._node = 0, -1  # the number of draws, and the node that they have reached

    def accept(self, p: float, q: float, key: tuple[str, int]) -> tuple[bool, float]:
        x = self.cycle.positions[key[1]]
        p, q = chances(x)
        if self.rule == BLOCK_RULE:
            if x.u is None or x.h is None:
                raise NotRecorded
            return x.u < x.h, x.u
        if x.u is None and 0.0 < p < 1.0:  # p = 0 and p = 1 need no coin
            self.unchecked.add(x.node)
            return x.status != "rejected", 0.0
        u = x.u or 0.0
        return u * q < p, u

    def categorical(self, probs: Tensor, key: tuple[str, int]) -> int:
        """Return the target's next draw. It matters only to rules that draw before they look at the draft."""
        positions, children = self.cycle.positions, self.cycle.tree.children(self._node)
        token = (*self.cycle.committed.tokens, None)[self._drawn]  # None: the text ended before this draw
        if self.rule == NOISE:
            row = positions[children[0]].target if children else None
            token = row.sample.token if row and row.sample else None
        if token is None:
            self.unchecked |= {*children}
            token = next((positions[node].token for node in children if node in self.cycle.path), UNNAMED)
        self._drawn = min(self._drawn + 1, len(self.cycle.committed.tokens))
        self._node = next((node for node in children if positions[node].token == token), self._node)
        return self.index.get(token, self.index[UNNAMED])


class ReplayedTypical(TypicalAcceptance):
    def __init__(self, cycle: CycleEvents) -> None:
        self.cycle = cycle

    def is_plausible(self, proposal: Proposal, rows: Tensor, node: int) -> bool:
        x = self.cycle.positions[node]
        if x.target is None:
            raise NotRecorded
        p, limit = chances(x)[0], min(self.epsilon, self.delta * math.exp(-x.target.entropy))
        return x.status == "accepted" if abs(p - limit) <= NEAR * limit else p >= limit


def replay_statuses(cycle: CycleEvents, name: str) -> list[Status | None] | None:
    """Return each draft's status by the rule `name`, or None where it is unclear. Returns None for an unknown rule."""
    kind = next((kind for kind in RULES.values() if kind.name == name), None)
    if kind is None:
        return None
    sampler, n = ReplayedSampler(cycle, name), len(cycle.positions)
    tokens = tuple(sampler.index[x.token] for x in cycle.positions)
    draft = Proposal(tokens, cycle.tree.parents, torch.ones(n, len(sampler.index)))
    rule = ReplayedTypical(cycle) if issubclass(kind, TypicalAcceptance) else kind()
    if not (kind.trees or is_chain(draft.parents)):
        return [None] * n
    try:
        verdict = rule.verify(draft, torch.zeros(n + 1, len(sampler.index)), sampler)
    except NotRecorded:
        return [None] * n
    return [None if node in sampler.unchecked else status for node, status in enumerate(statuses(draft, verdict))]
