"""The draft model: one layer, distilled from the target, so that it learns what the target would say."""

from __future__ import annotations

import torch
from torch import Tensor
from transformers import LlamaForCausalLM

SHAPE = {"num_hidden_layers": 1, "hidden_size": 128, "intermediate_size": 352, "num_attention_heads": 2}
CLOSENESS = 0.5


class DistillationLoss:
    """KL(p ‖ q), plus the total variation between p and q: the chance that a drafted token is rejected.

    DistillSpec (arXiv 2310.08461) compares such divergences. KL alone learns fast; the total variation is what
    verification will measure.
    """

    def __init__(self, teacher: LlamaForCausalLM, student: LlamaForCausalLM, compiled: bool = True) -> None:
        self.teacher, self.student = teacher.eval().requires_grad_(False), student
        self.run = torch.compile(self.forward, dynamic=False) if compiled else self.forward

    def __call__(self, ids: Tensor, step: int) -> Tensor:  # ids: [rows, length + 1]
        return self.run(ids[:, :-1].contiguous())

    def forward(self, inputs: Tensor) -> Tensor:
        with torch.no_grad():
            p = self.teacher(input_ids=inputs, use_cache=False).logits.float().log_softmax(-1)
        q = self.student(input_ids=inputs, use_cache=False).logits.float().log_softmax(-1)
        chance, guess = p.exp(), q.exp()
        divergence = (chance * (p - q)).sum(-1).mean()
        variation = 0.5 * (chance - guess).abs().sum(-1).mean()
        return divergence + CLOSENESS * variation
