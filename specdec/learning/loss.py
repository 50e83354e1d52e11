"""How far a draft's distribution is from the target's: what every drafter here is trained to make small."""

from __future__ import annotations

from torch import Tensor

CLOSENESS = 1.0


def divergence(p: Tensor, q: Tensor) -> Tensor:
    """KL(p ‖ q) plus the total variation between p and q, which is the chance that a drafted token is rejected.

    p and q are logarithms of distributions [..., V]. DistillSpec (arXiv 2310.08461) compares such divergences.
    """
    chance = p.exp()
    variation = 0.5 * (chance - q.exp()).abs().sum(-1).mean()
    return (chance * (p - q)).sum(-1).mean() + CLOSENESS * variation
