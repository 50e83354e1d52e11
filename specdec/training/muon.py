"""Muon (Jordan et al. 2024, https://kellerjordan.github.io/posts/muon): every step of a matrix is made orthogonal.

torch's Muon always multiplies in bfloat16, and a CPU that only emulates it took forty times as long as in float32.
"""

from __future__ import annotations

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
RMS = 0.2  # AdamW's usual root mean square of a step, so that both take similar rates (arXiv:2502.16982)


class Muon(torch.optim.Optimizer):
    """Muon with Nesterov momentum and decoupled weight decay, for parameters with two dimensions."""

    def __init__(self, matrices: Iterable[nn.Parameter], lr: float, weight_decay: float) -> None:
        super().__init__(matrices, {"lr": lr, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        """Change every matrix that has a gradient."""
        for group in self.param_groups:
            for matrix in group["params"]:
                if matrix.grad is None:
                    continue
                momentum = self.state[matrix].setdefault("momentum_buffer", torch.zeros_like(matrix))
                momentum.lerp_(matrix.grad, 1.0 - MOMENTUM)
                change = orthogonal(matrix.grad.lerp(momentum, MOMENTUM))
                matrix.mul_(1.0 - group["lr"] * group["weight_decay"])
                matrix.sub_(change, alpha=group["lr"] * RMS * math.sqrt(max(matrix.shape)))


def orthogonal(matrix: Tensor) -> Tensor:
    """Return a matrix of the same shape, [n, m], with singular values near 1 in the same directions."""
    wide = matrix.to(torch.bfloat16 if multiplies_bfloat16(str(matrix.device)) else torch.float32)
    if matrix.shape[0] > matrix.shape[1]:
        wide = wide.T
    wide = wide / wide.norm().clamp(min=1e-7)
    for _ in range(ITERATIONS):
        square = wide @ wide.T
        wide = torch.addmm(wide, torch.addmm(square, square, square, beta=B, alpha=C), wide, beta=A)
    return wide.T if matrix.shape[0] > matrix.shape[1] else wide
