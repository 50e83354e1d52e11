"""How far a draft's distribution is from the target's: what every drafter here is trained to make small."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..models.device import multiplies_bfloat16
from .examples import Example

TEMPERATURE = 0.8  # sharper than the target's own distribution: people decode greedily or below temperature 1
CLOSENESS = 1.0
AT_ONCE = 256  # places whose logits are in memory
# What products are computed in: a processor that only emulates bfloat16 takes several times as long with it.
LOW = torch.bfloat16 if multiplies_bfloat16("cpu") else torch.float32


def divergence(p: Tensor, q: Tensor) -> Tensor:
    """KL(p ‖ q) plus the total variation between p and q, which is the chance that a drafted token is rejected.

    p and q are logarithms of distributions [..., V]. DistillSpec (arXiv 2310.08461) compares such divergences.
    """
    chance = p.exp()
    variation = 0.5 * (chance - q.exp()).abs().sum(-1).mean()
    return (chance * (p - q)).sum(-1).mean() + CLOSENESS * variation


def known_chances(examples: Sequence[Example], known: Tensor) -> tuple[Tensor, Tensor]:
    """Of all answers: where in `known`, ascending ids, the target's likeliest tokens are, and their chances there.

    A token that is not known has none: the others share what it had.  # -> [places, kept] each
    """
    tokens, logs = (torch.cat([getattr(example, name) for example in examples]) for name in ("likeliest", "logs"))
    places = torch.searchsorted(known, tokens.long()).clamp(max=len(known) - 1)
    return places, (logs.float().masked_fill(known[places] != tokens, -1e4) / TEMPERATURE).softmax(-1)


def compared(states: Tensor, rows: Tensor, known: Tensor, example: Example, there: Tensor) -> tuple[float, float]:
    """Places where the draft's favourite is the target's, and the overlap of the two distributions, summed over places.

    # states [n, hidden] at the places `there` of an answer, output rows [V, hidden] of the known tokens
    """
    logits, likeliest = (states @ rows.T).float(), example.likeliest[there]
    agreed = float((known[logits.argmax(-1)] == likeliest[:, 0]).sum())
    places = torch.searchsorted(known, likeliest.long()).clamp(max=len(known) - 1)
    p = (example.logs[there].float() / TEMPERATURE).softmax(-1)
    q = (logits / TEMPERATURE).softmax(-1).gather(1, places)
    return agreed, float(torch.minimum(p, q).where(known[places] == likeliest, 0.0).sum())


class Divergence(torch.autograd.Function):
    """`divergence` from what a target said of its likeliest tokens, for a p that is zero elsewhere.

    The mean over places, of states times output rows. Written as one operation: over a vocabulary of thousands, what
    autograd would keep costs more than the products.
    """

    @staticmethod
    def forward(ctx: Any, states: Tensor, rows: Tensor, tokens: Tensor, p: Tensor, temperature: float) -> Tensor:
        """# [n, hidden], [V, hidden], ids in V [n, kept], distributions over them [n, kept] -> []"""
        count = len(states)
        of_states = torch.empty_like(states)
        of_rows = torch.zeros_like(rows, dtype=torch.float32) if ctx.needs_input_grad[1] else None
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
            if of_rows is not None:
                of_rows += gradient.T @ state
        ctx.save_for_backward(of_states, None if of_rows is None else of_rows.to(rows.dtype))
        return total / count

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        of_states, of_rows = ctx.saved_tensors
        return of_states * gradients[0], None if of_rows is None else of_rows * gradients[0], None, None, None
