"""Accept or reject a chain of drafts by tensor operations only: the host never waits, so CUDA graphs can capture them.

For the same random numbers, `accept` accepts the same drafts and draws the same token as `verify.RejectionSampling`.
K is the number of drafts (0 in plain decoding), V the size of the vocabulary. Trees and other rules need the host.

Every index is a tensor of shape [1]: for `x[i]` with a scalar tensor i, torch would copy i to the host and wait.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ..types import Kind, Proposal, Trial, Verdict

Test = Callable[[Tensor, Tensor, Tensor], Tensor]  # p, q, u [K] -> which drafts pass, bool [K]
HEAD = 5  # a packed record begins with this many numbers of the cycle; those of its drafts follow


def ratio(p: Tensor, q: Tensor, u: Tensor) -> Tensor:
    """Accept with probability min(1, p/q)."""
    return u * q < p


@dataclass(frozen=True)
class Outcome:
    """Holds the result of verification, on the device."""

    accepted: Tensor  # [1], how many drafts were accepted
    token: Tensor  # [1], the target's own token
    p: Tensor  # [K], the target's probability of each draft, also of drafts after the first rejection
    q: Tensor  # [K], the drafter's probability of each draft


def accept(
    rows: Tensor,
    drafted: Tensor,
    distributions: Tensor | None,
    coins: Tensor,
    uniform: Tensor,
    limit: Tensor,
    test: Test = ratio,
) -> Outcome:
    """Verify the first `limit` [1] drafts. `drafted` [K] was drawn from `distributions` [K, V] (None: point masses).

    `rows` [K + 1, V] are the target's distributions. `coins` [K] decide on the drafts, and `uniform` [1] draws the own
    token; both are float64 in [0, 1). Drafts beyond `limit` are ignored, so that a text's end can use the same graph.
    """
    k = len(drafted)
    p = rows[:k].gather(1, drafted[:, None])[:, 0].double()
    q = torch.ones_like(p) if distributions is None else distributions.gather(1, drafted[:, None])[:, 0].double()
    passed = test(p, q, coins) & (torch.arange(k, device=rows.device) < limit)
    accepted = passed.long().cumprod(0).sum(0, keepdim=True)
    distribution = rows.index_select(0, accepted)[0]
    if k:
        last = accepted.clamp(max=k - 1)
        if distributions is None:
            remaining = distribution.scatter(0, drafted.index_select(0, last), 0.0)
        else:
            remaining = (distribution - distributions.index_select(0, last)[0]).clamp(min=0.0)
        distribution = torch.where((accepted < limit) & (remaining.sum() > 0.0), remaining, distribution)
    return Outcome(accepted, draw(distribution, uniform), p, q)


def draw(weights: Tensor, u: Tensor) -> Tensor:
    """Draw a token with the uniform number `u` [1], by inverting the cumulative sum of `weights`.  # [V] -> [1]

    The id is the number of sums ≤ u · total; if that product rounds up to total, it is the last token with a weight.
    """
    sums = weights.double().cumsum(0)
    total = sums[-1:]
    return torch.minimum((sums <= u * total).sum(0, keepdim=True), (sums < total).sum(0, keepdim=True))


def packed(outcome: Outcome, drafted: Tensor, coins: Tensor, limit: Tensor, sound: Tensor, finite: Tensor) -> Tensor:
    """Pack one cycle into one tensor for the host.  # [HEAD + 4 K], float64, which holds ids and float32 exactly

    `sound` [1] says whether the draft's logits were finite, `finite` [1] whether the target's were.
    """
    head = (outcome.accepted, outcome.token, limit, sound, finite)
    return torch.cat([*(value.double() for value in head), drafted.double(), outcome.p, outcome.q, coins])


@dataclass(frozen=True)
class Record:
    """Holds one cycle on the host, with only the first `limit` drafts."""

    accepted: int
    token: int
    drafted: tuple[int, ...]
    p: tuple[float, ...]
    q: tuple[float, ...]
    u: tuple[float, ...]
    sound: bool
    finite: bool

    @classmethod
    def unpack(cls, values: list[float]) -> "Record":
        accepted, token, limit, sound, finite = values[:HEAD]
        k, n = (len(values) - HEAD) // 4, int(limit)
        drafted, p, q, u = (tuple(values[HEAD + k * i : HEAD + k * i + n]) for i in range(4))
        return cls(int(accepted), int(token), tuple(map(int, drafted)), p, q, u, sound != 0.0, finite != 0.0)

    def verdict(self, distribution: Tensor | None = None) -> Verdict:
        """Return the verdict that `RejectionSampling` would return on the host."""
        n = self.accepted
        judged = zip(self.drafted[: n + 1], self.p, self.q, self.u, strict=False)
        trials = tuple(Trial(i, token, p, q, u, i < n) for i, (token, p, q, u) in enumerate(judged))
        kind: Kind = "resampled" if n < len(self.drafted) else "bonus"
        return Verdict(tuple(range(n)), self.token, kind, trials, distribution, (1.0,) * len(self.drafted))

    def proposal(self, distributions: Tensor | None = None) -> Proposal:
        return Proposal(self.drafted, tuple(range(-1, len(self.drafted) - 1)), distributions)


def numbers(seed: int, lengths: int, k: int) -> Tensor:
    """Draw a run's random numbers. A cycle after i tokens of text uses row i.  # float64 [lengths, 1 + 2 K]

    A row has one number for the target's own token, K for coins, and K for the drafter. All devices get the same ones.
    """
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(lengths, 1 + 2 * k, dtype=torch.float64, generator=generator)
