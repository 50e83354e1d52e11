"""Define verification rules with one mistake each. `mistakes.py` lists them."""

from dataclasses import replace

import torch
from torch import Tensor

from ..rules import BlockVerification
from ..sampling import residual, Sampler
from ..types import Proposal, Verdict
from ..verify import RejectionSampling


class ResidualIsNothing(RejectionSampling):
    def residual(self, p: Tensor, q: Tensor | None, token: int) -> Tensor:
        difference = (p - p).clamp(min=0.0)
        return difference / difference.sum()


class ResampleFromTarget(RejectionSampling):
    def residual(self, p: Tensor, q: Tensor | None, token: int) -> Tensor:
        return p


class ResidualWithEpsilon(RejectionSampling):
    def residual(self, p: Tensor, q: Tensor | None, token: int) -> Tensor:
        difference = (p - point_distribution(p, q, token)).clamp(min=0.0) + 1e-3
        return difference / difference.sum()


class ResidualKeepsToken(RejectionSampling):
    def residual(self, p: Tensor, q: Tensor | None, token: int) -> Tensor:
        return p if q is None else residual(p, q * (torch.arange(len(q)) != token), token)


class SwappedRatio(RejectionSampling):
    def accept(self, p: float, q: float, sampler: Sampler, node: int) -> tuple[bool, float]:
        return sampler.accept(q, p, ("accept", node)) if p > 0.0 else (True, 0.0)


class AcceptEverything(RejectionSampling):
    def accept(self, p: float, q: float, sampler: Sampler, node: int) -> tuple[bool, float]:
        return True, 0.0


class CoarseRatio(RejectionSampling):
    def accept(self, p: float, q: float, sampler: Sampler, node: int) -> tuple[bool, float]:
        return sampler.accept(p, float(torch.tensor(q).bfloat16()), ("accept", node))


class UnjudgedFromFourth(RejectionSampling):
    def accept(self, p: float, q: float, sampler: Sampler, node: int) -> tuple[bool, float]:
        return super().accept(p, q, sampler, node) if node < 3 else (True, 0.0)


class TokenResidualAfterBlock(BlockVerification):
    def residual(self, weight: float, p: Tensor, q: Tensor, token: int) -> Tensor:
        return super().residual(1.0, p, q, token)


class BlockByProduct(BlockVerification):
    """Accepts each prefix with probability `weight`, which is right only for the whole block."""

    def pass_chance(self, weight: float, p: Tensor, q: Tensor) -> float:
        return weight


class OffByOneRow(RejectionSampling):
    def row(self, rows: Tensor, node: int) -> Tensor:
        return rows[min(node + 2, len(rows) - 1)]


class BonusFromDraft(RejectionSampling):
    def own_token(self, p: Tensor, proposal: Proposal, node: int, sampler: Sampler) -> int:
        if proposal.probs is not None and len(proposal) > 0 and node == len(proposal) - 1:
            p = proposal.probs[node]
        return sampler.categorical(p, ("own", node))


class OneCoin(RejectionSampling):
    """Uses one uniform number u for the whole block: accepts the longest prefix whose ratios p/q all exceed u."""

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
    """Adds a bonus token even after the draft's last token was rejected."""

    def verify(self, proposal: Proposal, rows: Tensor, sampler: Sampler) -> Verdict:
        verdict = super().verify(proposal, rows, sampler)
        if len(proposal) == 0 or verdict.kind == "bonus" or len(verdict.path) != len(proposal) - 1:
            return verdict
        return replace(verdict, extra=(sampler.categorical(rows[-1], ("own", len(proposal))),))


def point_distribution(p: Tensor, q: Tensor | None, token: int) -> Tensor:
    if q is not None:
        return q
    point = torch.zeros_like(p)
    point[token] = 1.0
    return point
