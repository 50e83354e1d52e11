"""The draft model: one layer, distilled from the target, so that it learns what the target would say."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn, Tensor
from tqdm import tqdm
from transformers import LlamaForCausalLM

from .data import TokenStreams

CLOSENESS = 0.5
# Half of what the draft learns on is the target's own writing: that is what it will be asked to foresee.
MIXTURE = {"story": 0.2, "code": 0.18, "facts": 0.12, "own": 0.5}


def shape(width: int) -> dict[str, int]:
    return {
        "num_hidden_layers": 1,
        "hidden_size": width,
        "intermediate_size": width * 11 // 4,
        "num_attention_heads": max(1, width // 64),
    }


class DistillationLoss:
    """KL(p ‖ q) plus the total variation between p and q, which is the chance that a drafted token is rejected.

    DistillSpec (arXiv 2310.08461) compares such divergences. Several students share the teacher's pass.
    """

    def __init__(self, teacher: LlamaForCausalLM, students: nn.ModuleList, compiled: bool = True) -> None:
        self.teacher, self.students = teacher.eval().requires_grad_(False), students
        self.run = torch.compile(self.forward, dynamic=False) if compiled else self.forward

    def __call__(self, ids: Tensor, step: int) -> Tensor:  # ids: [rows, length + 1]
        return self.run(ids[:, :-1].contiguous())

    def forward(self, inputs: Tensor) -> Tensor:
        with torch.no_grad():
            p = self.teacher(input_ids=inputs, use_cache=False).logits.float().log_softmax(-1)
            chance = p.exp()
        total = torch.zeros((), device=inputs.device)
        for student in self.students:
            q = student(input_ids=inputs, use_cache=False).logits.float().log_softmax(-1)
            divergence = (chance * (p - q)).sum(-1).mean()
            variation = 0.5 * (chance - q.exp()).abs().sum(-1).mean()
            total = total + divergence + CLOSENESS * variation
        return total


@torch.inference_mode()
def own_writing(
    teacher: LlamaForCausalLM, streams: TokenStreams, tokens: int, seed: int, rows: int = 64, length: int = 256
) -> np.ndarray:
    """About `tokens` ids that the target wrote itself, from short beginnings of every domain."""
    torch.manual_seed(seed)
    device, written = next(teacher.parameters()).device, []
    for batch in tqdm(range(max(1, tokens // (rows * length))), desc="target writes", unit="batch"):
        starts = streams.batch(rows, 31).to(device)
        out = teacher.generate(
            starts, attention_mask=torch.ones_like(starts), do_sample=True, temperature=(0.6, 0.8, 1.0)[batch % 3],
            top_k=0, max_new_tokens=length - 32, min_new_tokens=length - 32, pad_token_id=0,
        )  # fmt: skip
        written.append(out.cpu().numpy().astype(np.uint16).reshape(-1))
    return np.concatenate(written)
