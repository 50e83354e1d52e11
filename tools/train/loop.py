"""The one optimiser loop: mixed precision by master weights, a budget in tokens and minutes, resumable."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import nn, Tensor
from tqdm import tqdm

WARM_UP, DECAY_FROM, FINAL_RATE = 0.02, 0.45, 0.03
SAVE_EVERY_SECONDS, TELL_EVERY_STEPS = 180, 50


@dataclass(frozen=True)
class Budget:
    """Training ends when either figure is reached; the learning rate follows whichever is nearer."""

    tokens: int
    minutes: float | None = None

    def progress(self, tokens: int, seconds: float) -> float:
        spent = tokens / self.tokens
        return max(spent, seconds / 60 / self.minutes) if self.minutes else spent


class Source(Protocol):
    """Where batches come from; the first tensor holds token ids [rows, length] (or one more a row)."""

    def batch(self, rows: int, length: int) -> tuple[Tensor, ...]: ...

    def state(self) -> dict[str, Any]: ...

    def restore(self, state: dict[str, Any]) -> None: ...


@dataclass
class Result:
    tokens: int
    seconds: float
    losses: list[tuple[int, float]]  # (tokens seen, mean loss since the last entry)


def learning_rate(progress: float) -> float:
    """Warm up, hold, then decay in a straight line; as a share of the peak."""
    if progress < WARM_UP:
        return progress / WARM_UP + 0.01
    if progress < DECAY_FROM:
        return 1.0
    return 1.0 - (1.0 - FINAL_RATE) * min(1.0, (progress - DECAY_FROM) / (1.0 - DECAY_FROM))


def fit(
    model: nn.Module,
    loss: Callable[[tuple[Tensor, ...], int], Tensor],
    source: Source,
    budget: Budget,
    checkpoint: Path,
    *,
    batch_tokens: int = 8192,
    micro_rows: int = 16,
    length: int = 256,
    long_length: int = 512,
    long_from: float = 0.85,
    rate: float = 4e-3,
    device: str = "cpu",
    label: str = "training",
) -> Result:
    """Minimise `loss(batch, step)` over `model`'s parameters.

    The forward and backward passes run in the model's own dtype (bf16); the optimiser works on fp32 copies.
    Matrices are updated by Muon, embeddings and norms by AdamW. The last share of the run sees longer
    windows, so that positions beyond `length` are trained too.
    """
    parameters = [p for p in model.parameters() if p.requires_grad]
    masters = [p.detach().float().clone() for p in parameters]
    embeddings = {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding)}
    matrices = [m for p, m in zip(parameters, masters, strict=True) if p.ndim == 2 and id(p) not in embeddings]
    chosen = {id(m) for m in matrices}
    rest = [m for m in masters if id(m) not in chosen]
    optimisers: list[torch.optim.Optimizer] = [torch.optim.AdamW(rest, lr=rate, betas=(0.9, 0.95), weight_decay=0.0)]
    if matrices:
        optimisers.append(torch.optim.Muon(matrices, lr=rate, weight_decay=0.05, adjust_lr_fn="match_rms_adamw"))

    tokens, step, before, losses = 0, 0, 0.0, []
    if checkpoint.exists():
        saved = torch.load(checkpoint, weights_only=False)
        for master, value in zip(masters, saved["masters"], strict=True):
            master.copy_(value)
        for optimiser, state in zip(optimisers, saved["optimisers"], strict=True):
            optimiser.load_state_dict(state)
        tokens, step, before, losses = saved["tokens"], saved["step"], saved["seconds"], saved["losses"]
        source.restore(saved["source"])
    write_back(parameters, masters)

    def save() -> None:
        state = {
            "masters": masters, "optimisers": [o.state_dict() for o in optimisers], "tokens": tokens, "step": step,
            "seconds": before + time.monotonic() - start, "losses": losses, "source": source.state(),
        }  # fmt: skip
        partial = checkpoint.with_suffix(".partial")
        torch.save(state, partial)
        partial.replace(checkpoint)

    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    start = saved_at = time.monotonic()
    recent: list[float] = []
    bar = tqdm(total=budget.tokens, initial=tokens, unit="tok", unit_scale=True, desc=label, mininterval=5)
    while (progress := budget.progress(tokens, before + time.monotonic() - start)) < 1.0:
        size = length if progress < long_from else long_length
        rows = max(1, micro_rows * length // size)
        parts = max(1, round(batch_tokens / (rows * size)))
        for optimiser in optimisers:
            for group in optimiser.param_groups:
                group["lr"] = rate * learning_rate(progress)
        seen = 0
        for _ in range(parts):
            batch = tuple(part.to(device) for part in source.batch(rows, size))
            value = loss(batch, step)
            (value / parts).backward()
            recent.append(value.item())
            seen += len(batch[0]) * min(size, batch[0].shape[1])
        gradients = [p.grad.float() for p in parameters if p.grad is not None]
        scale = 1.0 / max(1.0, float(torch.linalg.vector_norm(torch.stack([g.norm() for g in gradients]))))
        for parameter, master in zip(parameters, masters, strict=True):
            master.grad = None if parameter.grad is None else parameter.grad.float() * scale
            parameter.grad = None
        for optimiser in optimisers:
            optimiser.step()
        write_back(parameters, masters)
        tokens, step = tokens + seen, step + 1
        bar.update(seen)
        if step % TELL_EVERY_STEPS == 0:
            losses.append((tokens, round(sum(recent) / len(recent), 4)))
            bar.set_postfix(loss=losses[-1][1])
            recent.clear()
        if time.monotonic() - saved_at > SAVE_EVERY_SECONDS:
            save()
            saved_at = time.monotonic()
    bar.close()
    save()
    return Result(tokens, before + time.monotonic() - start, losses)


def write_back(parameters: list[nn.Parameter], masters: list[Tensor]) -> None:
    with torch.no_grad():
        for parameter, master in zip(parameters, masters, strict=True):
            parameter.copy_(master)
