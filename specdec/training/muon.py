"""Implement Muon, an optimiser with orthogonal updates (Jordan et al. 2024, kellerjordan.github.io/posts/muon).

torch's Muon always multiplies in bfloat16. On a CPU that emulates bfloat16, this took forty times as long as float32.
"""

import math
from collections.abc import Iterable

import torch
from torch import nn, Tensor

from ..models.device import multiplies_bfloat16

MOMENTUM = 0.95
ITERATIONS = 5
A = 3.4445  # A, B and C are the coefficients of the Newton–Schulz iteration
B = -4.7750
C = 2.0315
RMS = 0.2  # root mean square of an update, as in AdamW (arXiv 2502.16982)


class Muon(torch.optim.Optimizer):
    """Muon with Nesterov momentum and decoupled weight decay, for parameters with two dimensions."""

    def __init__(self, matrices: Iterable[nn.Parameter], lr: float, weight_decay: float) -> None:
        super().__init__(matrices, {"lr": lr, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        """Update every matrix that has a gradient."""
        for group in self.param_groups:
            for matrix in group["params"]:
                if matrix.grad is None:
                    continue
                momentum = self.state[matrix].setdefault("momentum_buffer", torch.zeros_like(matrix))
                momentum.lerp_(matrix.grad, 1.0 - MOMENTUM)
                update = orthogonal(matrix.grad.lerp(momentum, MOMENTUM))
                matrix.mul_(1.0 - group["lr"] * group["weight_decay"])
                matrix.sub_(update, alpha=group["lr"] * RMS * math.sqrt(max(matrix.shape)))


def orthogonal(matrix: Tensor) -> Tensor:
    """Return a matrix with the same singular vectors, but with singular values near 1.  # [n, m] -> [n, m]"""
    wide = matrix.to(torch.bfloat16 if multiplies_bfloat16(str(matrix.device)) else torch.float32)
    if matrix.shape[0] > matrix.shape[1]:
        wide = wide.T
    wide = wide / wide.norm().clamp(min=1e-7)
    for _ in range(ITERATIONS):
        square = wide @ wide.T
        wide = torch.addmm(wide, torch.addmm(square, square, square, beta=B, alpha=C), wide, beta=A)
    return wide.T if matrix.shape[0] > matrix.shape[1] else wide
