"""Judge a chain by tensor operations only: the host never waits, so a CUDA graph can capture this.

For the same random numbers it accepts the same drafts and draws the same token as `verify.RejectionSampling`; a test
compares the two. Greedy decoding has one-hot rows, point masses have no distributions, plain decoding has K = 0. Trees
and other rules are judged on the host.

Indices are tensors of one dimension: torch would read an index of no dimensions, `x[i]`, on the host.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ..types import Kind, Proposal, Trial, Verdict

Test = Callable[[Tensor, Tensor, Tensor], Tensor]  # p, q, u [K] -> which drafts pass, bool [K]
HEAD = 5  # how many numbers of a record come before those of its drafts


def ratio(p: Tensor, q: Tensor, u: Tensor) -> Tensor:
    """Accept with probability min(1, p/q)."""
    return u * q < p


def synthetic(alpha: float) -> Test:
    """Accept with probability `alpha`, whatever p and q are. This measures speed with random weights, as in vLLM.

    The text is meaningless.
    """
    return lambda p, q, u: u < alpha


@dataclass(frozen=True)
class Outcome:
    """The verdict on a draft, on the device."""

    accepted: Tensor  # [1], how many drafts were accepted
    token: Tensor  # [1], the target's own token
    p: Tensor  # [K], of all drafts, judged or not
    q: Tensor  # [K]


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

    `rows` [K + 1, V] are the target's distributions, `coins` [K] and `own` [1] uniform numbers in [0, 1), float64.
    Drafts from `limit` on count as not drafted, so that the last cycles of a text can use the same graph.
    """
    k = len(drafted)
    p = rows[:k].gather(1, drafted[:, None])[:, 0].double()
    q = torch.ones_like(p) if distributions is None else distributions.gather(1, drafted[:, None])[:, 0].double()
    passed = test(p, q, coins) & (torch.arange(k, device=rows.device) < limit)
    accepted = passed.long().cumprod(0).sum(0, keepdim=True)
    distribution = rows.index_select(0, accepted)[0]
    if k:
        last = accepted.clamp(max=k - 1)
        remaining = unnormalised_residual(
            distribution,
            None if distributions is None else distributions.index_select(0, last)[0],
            drafted.index_select(0, last),
        )
        distribution = torch.where((accepted < limit) & (remaining.sum() > 0.0), remaining, distribution)
    return Outcome(accepted, draw(distribution, own), p, q)


def unnormalised_residual(p: Tensor, q: Tensor | None, token: Tensor) -> Tensor:
    """Return max(0, p - q) after `token` was rejected; q None is a point mass.  # [V], [V], [1] -> [V]"""
    return p.scatter(0, token, 0.0) if q is None else (p - q).clamp(min=0.0)


def draw(weights: Tensor, u: Tensor) -> Tensor:
    """Draw a token by the uniform number `u` [1]: invert the cumulative sum.  # [V] -> [1]

    The first count is the drawn index. The second one bounds it if u times the total rounds up to the total.
    """
    sums = weights.double().cumsum(0)
    total = sums[-1:]
    return torch.minimum((sums <= u * total).sum(0, keepdim=True), (sums < total).sum(0, keepdim=True))


def packed(outcome: Outcome, drafted: Tensor, coins: Tensor, limit: Tensor, sound: Tensor, finite: Tensor) -> Tensor:
    """Pack one cycle into one tensor for the host.  # [HEAD + 4 K], float64: exact for ids and for float32

    `sound` [1] says whether the draft's logits were finite, `finite` [1] whether the target's were.
    """
    head = (outcome.accepted, outcome.token, limit, sound, finite)
    return torch.cat([*(part.double() for part in head), drafted.double(), outcome.p, outcome.q, coins])


@dataclass(frozen=True)
class Record:
    """A packed cycle as the host reads it. It has only the drafts below `limit`."""

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
        """Return the verdict as `RejectionSampling` on the host would."""
        n = self.accepted
        judged = zip(self.drafted[: n + 1], self.p, self.q, self.u, strict=False)
        trials = tuple(Trial(i, token, p, q, u, i < n) for i, (token, p, q, u) in enumerate(judged))
        kind: Kind = "resampled" if n < len(self.drafted) else "bonus"
        return Verdict(tuple(range(n)), self.token, kind, trials, distribution=distribution)

    def proposal(self, distributions: Tensor | None = None) -> Proposal:
        return Proposal(self.drafted, tuple(range(-1, len(self.drafted) - 1)), distributions)


def numbers(seed: int, places: int, k: int) -> Tensor:
    """Draw a run's random numbers: a row for every length that its text may have.  # float64 [places, 1 + 2 K]

    A row has one number for the target's own token, K for coins, and K for the drafts. They are made on the host, so
    that a seed means the same on every device.
    """
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(places, 1 + 2 * k, dtype=torch.float64, generator=generator)
