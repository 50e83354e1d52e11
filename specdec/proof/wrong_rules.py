"""Rules that are wrong in one seam each (accept, residual, own token, row): what `mistakes.py` plants."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from ..rules import BlockVerification
from ..sampling import residual, Sampler
from ..types import Kind, Proposal, Verdict
from ..verify import RejectionSampling


class ResidualIsNothing(RejectionSampling):
    name = "target minus target"

    def residual(self, p: Tensor, q: Tensor | None, token: int) -> Tensor:
        left = (p - p).clamp(min=0.0)
        return left / left.sum()


class ResampleFromTarget(RejectionSampling):
    name = "resample from the target"

    def residual(self, p: Tensor, q: Tensor | None, token: int) -> Tensor:
        return p


class AbsoluteResidual(RejectionSampling):
    name = "absolute residual"

    def residual(self, p: Tensor, q: Tensor | None, token: int) -> Tensor:
        left = (p - point_distribution(p, q, token)).abs()
        return left / left.sum() if float(left.sum()) > 0 else p


class SwappedResidual(RejectionSampling):
    name = "residual the wrong way round"

    def residual(self, p: Tensor, q: Tensor | None, token: int) -> Tensor:
        return residual(point_distribution(p, q, token), p, token)


class ResidualWithEpsilon(RejectionSampling):
    name = "epsilon in the residual"

    def residual(self, p: Tensor, q: Tensor | None, token: int) -> Tensor:
        left = (p - point_distribution(p, q, token)).clamp(min=0.0) + 1e-3
        return left / left.sum()


class ResidualWithFloor(RejectionSampling):
    name = "floor under the residual"

    def residual(self, p: Tensor, q: Tensor | None, token: int) -> Tensor:
        left = (p - point_distribution(p, q, token)).clamp(min=1e-2)
        return left / left.sum()


class ResidualKeepsToken(RejectionSampling):
    name = "rejected guess stays possible"

    def residual(self, p: Tensor, q: Tensor | None, token: int) -> Tensor:
        return residual(p, None if q is None else q * (torch.arange(len(q)) != token), token) if q is not None else p


class SwappedRatio(RejectionSampling):
    name = "ratio the wrong way round"

    def accept(self, p: float, q: float, sampler: Sampler, node: int) -> tuple[bool, float]:
        return sampler.accept(q, p, ("accept", node)) if p > 0.0 else (True, 0.0)


class AcceptEverything(RejectionSampling):
    name = "accept everything"

    def accept(self, p: float, q: float, sampler: Sampler, node: int) -> tuple[bool, float]:
        return True, 0.0


class Lenient(RejectionSampling):
    name = "lenient acceptance"

    def accept(self, p: float, q: float, sampler: Sampler, node: int) -> tuple[bool, float]:
        return sampler.accept(1.1 * p, q, ("accept", node))


class RatioWithEpsilon(RejectionSampling):
    name = "epsilon in the ratio"

    def accept(self, p: float, q: float, sampler: Sampler, node: int) -> tuple[bool, float]:
        return sampler.accept(p + 1e-3 * q, q, ("accept", node))


class CoarseRatio(RejectionSampling):
    name = "ratio in bfloat16"

    def accept(self, p: float, q: float, sampler: Sampler, node: int) -> tuple[bool, float]:
        return sampler.accept(p, float(torch.tensor(q).bfloat16()), ("accept", node))


class LooksAtU(RejectionSampling):
    """`if accepted or u < 0.9`. As a distribution: accept with probability max(p / q, 0.9)."""

    name = "a second look at u"

    def accept(self, p: float, q: float, sampler: Sampler, node: int) -> tuple[bool, float]:
        return sampler.accept(max(p, 0.9 * q), q, ("accept", node))


class UnjudgedFromFourth(RejectionSampling):
    name = "the fourth token and later unjudged"

    def accept(self, p: float, q: float, sampler: Sampler, node: int) -> tuple[bool, float]:
        return super().accept(p, q, sampler, node) if node < 3 else (True, 0.0)


class ReusedCoin(RejectionSampling):
    """The coin of the last test serves as the random number of the draw that follows.

    As a distribution: given the answer, that coin is uniform on [p/q, 1] after a rejection and on [0, p/q] otherwise,
    so the draw by the inverse of the cumulative distribution reaches only that part of it.
    """

    name = "accept coin used again"

    def verify(self, proposal: Proposal, rows: Tensor, sampler: Sampler) -> Verdict:
        self._coin = 0.0, 1.0
        return super().verify(proposal, rows, sampler)

    def accept(self, p: float, q: float, sampler: Sampler, node: int) -> tuple[bool, float]:
        accepted, u = super().accept(p, q, sampler, node)
        ratio = min(1.0, p / q)
        self._coin = (0.0, ratio) if accepted else (ratio, 1.0)
        return accepted, u

    def own_token(self, p: Tensor, proposal: Proposal, node: int, sampler: Sampler) -> int:
        return sampler.categorical(reached(p, *self._coin), ("own", node))


class SameCoins(RejectionSampling):
    """Draft and verification draw the same numbers, each from a generator of its own with the same seed.

    As a distribution: the number that drew a token is uniform on that token's share of [0, 1], and judges it as well;
    the draw after a rejection takes that of the next draft.
    """

    name = "the draft's numbers as coins"

    def verify(self, proposal: Proposal, rows: Tensor, sampler: Sampler) -> Verdict:
        self._shares = [] if proposal.probs is None else list(map(share, proposal.probs, proposal.tokens))
        return super().verify(proposal, rows, sampler)

    def accept(self, p: float, q: float, sampler: Sampler, node: int) -> tuple[bool, float]:
        low, high = self._shares[node] if self._shares else (0.0, 1.0)
        return sampler.accept(min(max(p / q - low, 0.0), high - low), high - low, ("accept", node))

    def own_token(self, p: Tensor, proposal: Proposal, node: int, sampler: Sampler) -> int:
        low, high = self._shares[node + 2] if node + 2 < len(self._shares) else (0.0, 1.0)
        return sampler.categorical(reached(p, low, high), ("own", node))


def share(q: Tensor, token: int) -> tuple[float, float]:
    """The numbers that draw this token, by the inverse of the cumulative distribution."""
    before = float(q[:token].sum())
    return before, before + float(q[token])


def reached(p: Tensor, low: float, high: float) -> Tensor:
    """What a number between `low` and `high` draws from p.  # [V]"""
    upper = p.cumsum(0) / p.sum()
    lower = torch.cat([upper.new_zeros(1), upper[:-1]])
    part = (upper.clamp(max=high) - lower.clamp(min=low)).clamp(min=0.0)
    return part / part.sum()


class TokenResidualAfterBlock(BlockVerification):
    name = "block verification with the residual of one token"

    def residual(self, weight: float, p: Tensor, q: Tensor, token: int) -> Tensor:
        return super().residual(1.0, p, q, token)


class BlockByProduct(BlockVerification):
    """A prefix is kept with the product of its ratios alone, as only the whole block is."""

    name = "block verification by the product of ratios"

    def enough(self, weight: float, p: Tensor, q: Tensor) -> float:
        return weight


class OffByOneRow(RejectionSampling):
    name = "off-by-one row"

    def row(self, rows: Tensor, node: int) -> Tensor:
        return rows[min(node + 2, len(rows) - 1)]


class BonusFromDraft(RejectionSampling):
    name = "bonus from the draft"

    def own_token(self, p: Tensor, proposal: Proposal, node: int, sampler: Sampler) -> int:
        if proposal.probs is not None and len(proposal) > 0 and node == len(proposal) - 1:
            p = proposal.probs[node]
        return sampler.categorical(p, ("own", node))


class OneCoin(RejectionSampling):
    """One uniform number for the whole block. As a distribution: keep the prefix whose smallest ratio exceeds u."""

    name = "one coin for the whole block"

    def verify(self, proposal: Proposal, rows: Tensor, sampler: Sampler) -> Verdict:
        self._passed = 1.0
        return super().verify(proposal, rows, sampler)

    def accept(self, p: float, q: float, sampler: Sampler, node: int) -> tuple[bool, float]:
        ratio = min(1.0, p / q)
        smallest = min(self._passed, ratio)
        accepted, u = sampler.accept(smallest, self._passed, ("accept", node))
        self._passed = smallest
        return accepted, u


class BonusAfterRejection(RejectionSampling):
    """Counts the resampled token as accepted: after a rejected *last* draft it still adds a bonus."""

    name = "bonus after a rejected last token"

    def verify(self, proposal: Proposal, rows: Tensor, sampler: Sampler) -> Verdict:
        verdict = super().verify(proposal, rows, sampler)
        if len(proposal) == 0 or verdict.kind == "bonus" or len(verdict.path) != len(proposal) - 1:
            return verdict
        return replace(verdict, extra=(sampler.categorical(rows[-1], ("own", len(proposal))),))


class TopMatch(RejectionSampling):
    name = "accept the target's favourite"

    def verify(self, proposal: Proposal, rows: Tensor, sampler: Sampler) -> Verdict:
        best = rows.argmax(-1).tolist()
        path: list[int] = []
        while len(path) < len(proposal) and proposal.tokens[len(path)] == best[len(path)]:
            path.append(len(path))
        kind: Kind = "bonus" if len(path) == len(proposal) else "resampled"
        return Verdict(tuple(path), sampler.categorical(rows[len(path)], ("own", len(path))), kind, ())


def point_distribution(p: Tensor, q: Tensor | None, token: int) -> Tensor:
    if q is not None:
        return q
    point = torch.zeros_like(p)
    point[token] = 1.0
    return point
