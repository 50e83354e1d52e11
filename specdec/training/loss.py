"""How far a draft's distribution is from the target's: what every drafter here is trained to make small."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

CLOSENESS = 1.0
AT_ONCE = 256  # places whose logits are in memory


def divergence(p: Tensor, q: Tensor) -> Tensor:
    """KL(p ‖ q) plus the total variation between p and q, which is the chance that a drafted token is rejected.

    p and q are logarithms of distributions [..., V]. DistillSpec (arXiv 2310.08461) compares such divergences.
    """
    chance = p.exp()
    variation = 0.5 * (chance - q.exp()).abs().sum(-1).mean()
    return (chance * (p - q)).sum(-1).mean() + CLOSENESS * variation


class Divergence(torch.autograd.Function):
    """`divergence` from what a target said of its likeliest tokens, for a p that is zero elsewhere.

    The mean over places, of states times output rows. Written as one operation: over a vocabulary of thousands, what
    autograd would keep costs more than the products.
    """

    @staticmethod
    def forward(ctx: Any, states: Tensor, rows: Tensor, tokens: Tensor, p: Tensor, temperature: float) -> Tensor:
        """# [n, hidden], [V, hidden], ids in V [n, kept], distributions over them [n, kept] -> []"""
        count = len(states)
        of_states, of_rows = torch.empty_like(states), torch.zeros_like(rows, dtype=torch.float32)
        total = torch.zeros(())
        buffer = torch.empty(min(AT_ONCE, count), len(rows))
        for first in range(0, count, AT_ONCE):
            part = slice(first, first + AT_ONCE)
            state, ids, chance = states[part], tokens[part].long(), p[part]
            logits = buffer[: len(state)].copy_(state @ rows.T).div_(temperature)
            q = logits.sub_(logits.amax(-1, keepdim=True)).exp_()
            q.div_(q.sum(-1, keepdim=True))
            there = q.gather(1, ids).clamp_min(1e-12)
            log_p = chance.clamp_min(1e-12).log()
            total += (chance * (log_p - there.log())).sum()
            total += CLOSENESS * (1.0 - torch.minimum(chance, there).sum(-1)).sum()
            short = there.where(there < chance, 0.0)  # where q is to grow: the variation is 1 - Σ min(p, q)
            scale = 1.0 / (temperature * count)
            gradient = q.mul_((1.0 + CLOSENESS * short.sum(-1, keepdim=True)) * scale)
            gradient.scatter_add_(1, ids, -(chance + CLOSENESS * short) * scale)
            gradient = gradient.to(states.dtype)
            of_states[part] = gradient @ rows
            of_rows += gradient.T @ state
        ctx.save_for_backward(of_states, of_rows.to(rows.dtype))
        return total / count

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        of_states, of_rows = ctx.saved_tensors
        return of_states * gradients[0], of_rows * gradients[0], None, None, None
