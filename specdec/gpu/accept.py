"""The accept step of a chain as tensor operations alone: nothing in it asks the host, so a CUDA graph can hold it.

Its specification is the plain walk (`verify.RejectionSampling`): for the same random numbers it accepts the same drafts
and draws the same token; a test holds the two equal. Greedy decoding is the case of one-hot rows, a point mass the
case without distributions, plain decoding the case K = 0. Trees have a walk of their own (`trees.py`); other rules are
judged on the host.

An index that is a tensor of no dimensions, `x[i]`, would make torch read it on the host: indices here have one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ..types import Kind, Proposal, Trial, Verdict

Test = Callable[[Tensor, Tensor, Tensor], Tensor]  # p, q, u [K] -> which drafts pass, bool [K]
HEAD = 5  # numbers of a record before those of its drafts
ABSENT = 0  # what became of a drafted token
UNJUDGED = 1
REJECTED = 2
ACCEPTED = 3


def ratio(p: Tensor, q: Tensor, u: Tensor) -> Tensor:
    """Accept with probability min(1, p/q)."""
    return u * q < p


def synthetic(alpha: float) -> Test:
    """Accept with probability `alpha`, whatever the models say: for measuring speed where weights are random.

    The text is then worth nothing. (vLLM offers the same.)
    """
    return lambda p, q, u: u < alpha


@dataclass(frozen=True)
class Outcome:
    """What became of a draft, on the device: [1], [1], and [K] each for all drafts, judged or not."""

    accepted: Tensor
    token: Tensor
    p: Tensor
    q: Tensor


def accept(
    rows: Tensor,
    drafted: Tensor,
    distributions: Tensor | None,
    coins: Tensor,
    own: Tensor,
    limit: Tensor,
    test: Test = ratio,
) -> Outcome:
    """Judge the first `limit` [1] of the drafts [K], drawn from `distributions` [K, V] (None: point masses).

    `rows` [K + 1, V] are the target's distributions, `coins` [K] and `own` [1] uniform numbers in [0, 1), float64. What
    stands from `limit` on counts as not drafted: that is how one captured K serves the last cycle, too.
    """
    k = len(drafted)
    p = rows[:k].gather(1, drafted[:, None])[:, 0].double()
    q = torch.ones_like(p) if distributions is None else distributions.gather(1, drafted[:, None])[:, 0].double()
    passed = test(p, q, coins) & (torch.arange(k, device=rows.device) < limit)
    accepted = passed.long().cumprod(0).sum(0, keepdim=True)
    distribution = rows.index_select(0, accepted)[0]
    if k:
        last = accepted.clamp(max=k - 1)
        left = left_over(
            distribution,
            None if distributions is None else distributions.index_select(0, last)[0],
            drafted.index_select(0, last),
        )
        distribution = torch.where((accepted < limit) & (left.sum() > 0.0), left, distribution)
    return Outcome(accepted, draw(distribution, own), p, q)


def left_over(p: Tensor, q: Tensor | None, token: Tensor) -> Tensor:
    """The residual after a rejected `token`, not normalised; q None is a point mass.  # [V], [V], [1] -> [V]"""
    return p.scatter(0, token, 0.0) if q is None else (p - q).clamp(min=0.0)


def draw(weights: Tensor, u: Tensor) -> Tensor:
    """Draw a token by the uniform number `u` [1]: invert the cumulative sum.  # [V] -> [1]

    Sums are counted instead of searched. The second count holds where u times the total rounds up to the total.
    """
    sums = weights.double().cumsum(0)
    total = sums[-1:]
    return torch.minimum((sums <= u * total).sum(0, keepdim=True), (sums < total).sum(0, keepdim=True))


def packed(outcome: Outcome, drafted: Tensor, coins: Tensor, limit: Tensor, sound: Tensor, finite: Tensor) -> Tensor:
    """Pack one cycle into one tensor for the host.  # [HEAD + 4 K], float64: exact for ids and for float32

    `sound` and `finite` [1] say whether the draft model's and the target's logits were numbers.
    """
    head = (outcome.accepted, outcome.token, limit, sound, finite)
    return torch.cat([*(part.double() for part in head), drafted.double(), outcome.p, outcome.q, coins])


@dataclass(frozen=True)
class Record:
    """A packed cycle as the host reads it, without the absent nodes."""

    token: int
    nodes: tuple[int, ...]  # their places among all
    drafted: tuple[int, ...]
    parents: tuple[int, ...]
    fates: tuple[int, ...]
    p: tuple[float, ...]
    q: tuple[float, ...]
    u: tuple[float, ...]
    sound: bool
    finite: bool

    @classmethod
    def of_chain(cls, numbers: list[float]) -> Record:
        """Unpack the numbers that `packed` made."""
        accepted, token, limit, sound, finite = numbers[:HEAD]
        k, n = (len(numbers) - HEAD) // 4, int(limit)
        drafted, p, q, u = (tuple(numbers[HEAD + k * i : HEAD + k * i + n]) for i in range(4))
        fates = tuple(ACCEPTED if i < accepted else REJECTED if i == accepted else UNJUDGED for i in range(n))
        tokens, parents = tuple(map(int, drafted)), tuple(range(-1, n - 1))
        return cls(int(token), tuple(range(n)), tokens, parents, fates, p, q, u, sound != 0.0, finite != 0.0)

    @classmethod
    def of_tree(cls, numbers: list[float]) -> Record:
        """Unpack the numbers that `trees.packed` made."""
        _, token, _, sound, finite = numbers[:HEAD]
        n = (len(numbers) - HEAD) // 6
        drafted, parents, fates, p, q, u = (numbers[HEAD + n * i : HEAD + n * (i + 1)] for i in range(6))
        nodes = [node for node in range(n) if fates[node] != ABSENT]
        place = {-1: -1, **{node: i for i, node in enumerate(nodes)}}
        tokens, fate = (tuple(int(of[node]) for node in nodes) for of in (drafted, fates))
        above = tuple(place[int(parents[node])] for node in nodes)
        ps, qs, us = (tuple(of[node] for node in nodes) for of in (p, q, u))
        return cls(int(token), tuple(nodes), tokens, above, fate, ps, qs, us, sound != 0.0, finite != 0.0)

    @property
    def accepted(self) -> int:
        return self.fates.count(ACCEPTED)

    def verdict(self, distribution: Tensor | None = None) -> Verdict:
        """The verdict that the host's walk would return."""
        judged = [node for node, fate in enumerate(self.fates) if fate >= REJECTED]
        path = tuple(node for node in judged if self.fates[node] == ACCEPTED)
        trials = tuple(
            Trial(i, self.drafted[i], self.p[i], self.q[i], self.u[i], self.fates[i] == ACCEPTED) for i in judged
        )
        last = path[-1] if path else -1
        kind: Kind = "resampled" if last in self.parents else "bonus"
        return Verdict(path, self.token, kind, trials, distribution=distribution)

    def proposal(self, distributions: Tensor | None = None) -> Proposal:
        return Proposal(self.drafted, self.parents, distributions)


@dataclass(frozen=True)
class Extent:
    """How large the drafts of a run are at most: tokens deep, tokens in all, and siblings."""

    depth: int
    nodes: int
    width: int = 1

    @classmethod
    def chain(cls, k: int) -> Extent:
        return cls(k, k)

    @property
    def numbers(self) -> int:
        """Random numbers of a cycle: one for the target's own token, a coin a node, and the drafts', level by level."""
        return 1 + self.nodes + self.depth * self.width


def numbers(seed: int, places: int, extent: Extent) -> Tensor:
    """Draw a run's random numbers: a row for every length that its text may have.  # float64 [places, extent.numbers]

    They are made on the host, so that a seed means the same on every device.
    """
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(places, extent.numbers, dtype=torch.float64, generator=generator)
