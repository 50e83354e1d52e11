"""Train Medusa heads on the frozen target: head i learns the target's distribution i + 1 places later.

Medusa-1 (Cai et al. 2024, arXiv 2401.10774) learns tokens; these heads learn the target's whole distribution instead.
Each head has its own output matrix, which starts as a copy of the target's. After 1.5 M tokens such a head predicted
the target's choice at 33 of 100 places; heads that shared the target's frozen matrix did so at only 20.
"""

import torch.nn.functional as F
from torch import nn, Tensor
from transformers import LlamaForCausalLM

from .heads import divergence, log_distribution, Loss, weighted_sum

HEADS = 4
LAYERS = 2


class ResBlock(nn.Module):
    """Computes x + SiLU(W x + b). At first it has no effect."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, x: Tensor) -> Tensor:
        return x + F.silu(self.linear(x))


class Output(nn.Embedding):
    """An output matrix. It is an `nn.Embedding`, because the training script gives embeddings to AdamW, not to Muon."""

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight.T


def build(output: Tensor) -> nn.ModuleList:
    """Make heads with the published tensor names, `{head}.{layer}.linear.weight|bias` and `{head}.{layers}.weight`.

    `output` is the target's output matrix [V, hidden].
    """

    def head() -> nn.Sequential:
        matrix = Output.from_pretrained(output.detach().float().clone(), freeze=False)
        return nn.Sequential(*(ResBlock(output.shape[1]) for _ in range(LAYERS)), matrix)

    return nn.ModuleList([head() for _ in range(HEADS)])


class MedusaLoss(Loss):
    def __init__(self, teacher: LlamaForCausalLM, heads: nn.ModuleList) -> None:
        super().__init__(teacher, teacher.config)
        self.heads = heads

    def of_states(self, ids: Tensor, last: Tensor, features: Tensor | None = None) -> Tensor:
        count, p = last.shape[1] - HEADS, self.target(last)
        q = [log_distribution(head(last[:, :count])) for head in self.heads]
        return weighted_sum([divergence(p[:, i + 1 : i + 1 + count], head_q) for i, head_q in enumerate(q)])
