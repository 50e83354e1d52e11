"""The accept step of a chain as tensor operations alone: nothing in it asks the host, so a CUDA graph can hold it.

Its specification is the plain walk (`verify.RejectionSampling`): for the same random numbers it accepts the same drafts
and draws the same token; a test holds the two equal. Greedy decoding is the case of one-hot rows, a point mass the
case without distributions, plain decoding the case K = 0. Trees and other rules are judged on the host.

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
    """A packed cycle as the host reads it, with the drafts that count alone."""

    accepted: int
    token: int
    drafted: tuple[int, ...]
    p: tuple[float, ...]
    q: tuple[float, ...]
    u: tuple[float, ...]
    sound: bool
    finite: bool

    @classmethod
    def unpack(cls, numbers: list[float]) -> Record:
        """Unpack the numbers that `packed` made."""
        accepted, token, limit, sound, finite = numbers[:HEAD]
        k, n = (len(numbers) - HEAD) // 4, int(limit)
        drafted, p, q, u = (tuple(numbers[HEAD + k * i : HEAD + k * i + n]) for i in range(4))
        return cls(int(accepted), int(token), tuple(map(int, drafted)), p, q, u, sound != 0.0, finite != 0.0)

    def verdict(self, distribution: Tensor | None = None) -> Verdict:
        """The verdict that the host's walk would return."""
        n = self.accepted
        judged = zip(self.drafted[: n + 1], self.p, self.q, self.u, strict=False)
        trials = tuple(Trial(i, token, p, q, u, i < n) for i, (token, p, q, u) in enumerate(judged))
        kind: Kind = "resampled" if n < len(self.drafted) else "bonus"
        return Verdict(tuple(range(n)), self.token, kind, trials, distribution=distribution)

    def proposal(self, distributions: Tensor | None = None) -> Proposal:
        return Proposal(self.drafted, tuple(range(-1, len(self.drafted) - 1)), distributions)


def numbers(seed: int, places: int, k: int) -> Tensor:
    """Draw a run's random numbers: a row for every length that its text may have.  # float64 [places, 1 + 2 K]

    One is for the target's own token, K are coins, K draw the drafts. They are made on the host, so that a seed means
    the same on every device.
    """
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(places, 1 + 2 * k, dtype=torch.float64, generator=generator)
