"""Medusa heads on the frozen target: head i learns to predict the target's token i + 1 places ahead.

Cai et al. 2024 (arXiv 2401.10774): Medusa-1, with the target's distribution for a label instead of one token of it.
Each head has its own output matrix, which starts as a copy of the target's. After 1.5 M tokens a head with its own
matrix guessed the target's choice in 33 of 100 places; heads that shared the target's frozen matrix guessed it in 20.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn, Tensor
from transformers import LlamaForCausalLM

from specdec.training.loss import divergence

from .draft import log_distribution

HEADS, LAYERS = 4, 2
DECAY = 0.8  # weight of a head in the loss, relative to the head before: later places are reached less often
RANKS = 6  # choices of a head whose accuracy is told


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

    return nn.ModuleList([head() for _ in range(HEADS)]).bfloat16()


class MedusaLoss:
    """The divergence of every head from the target's distribution at its place."""

    def __init__(self, teacher: LlamaForCausalLM, heads: nn.ModuleList, compiled: bool = True) -> None:
        self.output, self.heads = teacher.lm_head.weight.detach().clone(), heads
        self.run = torch.compile(self.forward, dynamic=False) if compiled else self.forward

    def __call__(self, batch: tuple[Tensor, ...], step: int) -> Tensor:
        _, last = batch  # [rows, length, hidden], after the final norm
        return self.run(last)

    def forward(self, last: Tensor) -> Tensor:
        count = last.shape[1] - HEADS
        with torch.no_grad():
            p = log_distribution(last @ self.output.T)
        total = torch.zeros((), device=last.device)
        for i, head in enumerate(self.heads):
            q = log_distribution(head(last[:, :count]))
            total = total + DECAY**i * divergence(p[:, i + 1 : i + 1 + count], q)
        return total

    @torch.no_grad()
    def accuracy(self, last: Tensor) -> list[list[float]]:
        """For every head and rank: how probable its choice of that rank is to the target."""
        count, p = last.shape[1] - HEADS, log_distribution(last @ self.output.T).exp()
        shares = []
        for i, head in enumerate(self.heads):
            choice = head(last[:, :count]).topk(RANKS).indices
            shares.append(p[:, i + 1 : i + 1 + count].gather(-1, choice).mean((0, 1)).tolist())
        return shares
