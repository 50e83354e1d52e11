"""The draft model: one layer, distilled from the target to predict what the target would write; its controls."""

from __future__ import annotations

import torch
from torch import nn, Tensor
from torch.nn.functional import cross_entropy
from transformers import LlamaForCausalLM

from specdec.training.loss import divergence

# Sharper than what it was trained on: people decode greedily or below temperature 1.
TEMPERATURE = 0.7
# More than half of what the draft learns on is the target's own writing: that is what it will be asked to foresee.
MIXTURE = {"story": 0.16, "code": 0.16, "facts": 0.08, "own": 0.6}
TUNED_MIXTURE = {"edits": 0.6, "own": 0.4}  # for the draft of the target that was tuned on edits
LARGER = 2  # times the width: two to three times the parameters, because attention is a small part of them


def shape(width: int) -> dict[str, int]:
    return {
        "num_hidden_layers": 1,
        "hidden_size": width,
        "intermediate_size": width * 11 // 4,
        "num_attention_heads": max(1, width // 64),
    }


def inherit(student: LlamaForCausalLM, teacher: LlamaForCausalLM) -> None:
    """Start from the target's embedding: its principal directions, where the student is narrower.

    The other weights of a wider student keep their random start.
    """
    with torch.no_grad():
        words = teacher.model.embed_tokens.weight.float()
        width = student.config.hidden_size
        if width < words.shape[1]:
            words = words @ torch.linalg.svd(words, full_matrices=False).Vh[:width].T
        student.model.embed_tokens.weight[:, : words.shape[1]].copy_(words)


def log_distribution(logits: Tensor) -> Tensor:
    return (logits.float() / TEMPERATURE).log_softmax(-1)


class DistillationLoss:
    """Several students share the teacher's distribution, which its last states give."""

    def __init__(self, teacher: LlamaForCausalLM, students: nn.ModuleList, compiled: bool = True) -> None:
        self.head = teacher.lm_head.weight.detach().clone()
        self.students = students
        self.run = torch.compile(self.forward, dynamic=False) if compiled else self.forward

    def __call__(self, batch: tuple[Tensor, ...], step: int) -> Tensor:
        ids, last = batch  # [rows, length], [rows, length, hidden]
        return self.run(ids, last)

    def forward(self, ids: Tensor, last: Tensor) -> Tensor:
        with torch.no_grad():
            p = log_distribution(last @ self.head.T)
        total = torch.zeros((), device=ids.device)
        for student in self.students:
            total = total + divergence(p, log_distribution(student(input_ids=ids, use_cache=False).logits))
        return total


class NextTokenLoss:
    """What the corpus says next. No teacher: the control for distillation."""

    def __init__(self, student: LlamaForCausalLM, compiled: bool = True) -> None:
        self.student = student
        self.run = torch.compile(self.forward, dynamic=False) if compiled else self.forward

    def __call__(self, batch: tuple[Tensor, ...], step: int) -> Tensor:
        (ids,) = batch  # [rows, length + 1]
        return self.run(ids[:, :-1].contiguous(), ids[:, 1:].contiguous())

    def forward(self, inputs: Tensor, targets: Tensor) -> Tensor:
        logits = self.student(input_ids=inputs, use_cache=False).logits
        return cross_entropy(logits.float().flatten(0, 1), targets.flatten())
