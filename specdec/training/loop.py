"""The optimiser's loop: learning rates that fall until the time is over, measurements, checkpoints."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .loss import Draft, HeldOut, Reading

ADAMW_LR = 2e-3
MUON_LR = 6e-3
WEIGHT_DECAY = 0.05  # of matrices
WARM_UP = 0.01  # share of the time
STEADY = 0.4  # share of the time after which rates begin to fall
FINAL = 0.02  # share of the highest rate at the end
AVERAGED = 0.998  # of the running mean of the weights, which is what is measured and exported
REPORTS = 20  # measurements in the time that there is, not more often than every
REPORT_MIN_S = 10.0
REPORT_MAX_S = 60.0


@dataclass
class Progress:
    """Of all calls together. Tokens of answers count as often as they were learned from."""

    steps: int = 0
    tokens: int = 0
    seconds: float = 0.0
    agreement: list[float] = field(default_factory=list)  # with the target's favourite, at each token of a draft
    overlap: list[float] = field(default_factory=list)


def rate(share: float) -> float:
    """After that share of the time, as a share of the highest."""
    if share < WARM_UP:
        return FINAL + (1.0 - FINAL) * share / WARM_UP
    return FINAL + (1.0 - FINAL) * min(1.0, max(0.0, (1.0 - share) / (1.0 - STEADY)))


def fit(
    draft: Draft,
    readings: Iterable[Reading],
    held_out: HeldOut,
    seconds: float,
    checkpoint: Path,
    report: Callable[[Progress], None],
    stop: Callable[[], bool],
) -> Progress:
    """Train for that long, or until `stop()`, on from the checkpoint where there is one.

    `report` is called with the averaged weights in place, about twenty times and at the end. A checkpoint is written
    each time.
    """
    matrices = draft.matrices()
    others = [p for p in draft.parameters() if all(p is not matrix for matrix in matrices)]
    fused = draft.draft_ids.device.type == "cuda"
    optimisers: list[tuple[torch.optim.Optimizer, float]] = [
        (torch.optim.AdamW(others, betas=(0.9, 0.95), weight_decay=0.0, fused=fused), ADAMW_LR),
        (torch.optim.Muon(matrices, weight_decay=WEIGHT_DECAY, adjust_lr_fn="match_rms_adamw"), MUON_LR),
    ]
    progress, mean = Progress(), [parameter.detach().clone() for parameter in draft.parameters()]
    if checkpoint.exists():
        saved = torch.load(checkpoint, map_location=draft.draft_ids.device, weights_only=True)
        draft.load_state_dict(saved["model"])
        for (optimiser, _), state in zip(optimisers, saved["optimisers"], strict=True):
            optimiser.load_state_dict(state)
        progress, mean = Progress(**saved["progress"]), saved["mean"]
    seconds_before = progress.seconds

    def measure() -> None:
        if progress.steps:
            save(checkpoint, draft, [optimiser for optimiser, _ in optimisers], progress, mean)
        exchange(draft, mean)
        progress.agreement, progress.overlap = held_out.measure(draft)
        report(progress)
        exchange(draft, mean)

    began = time.monotonic()
    measure()
    reported = time.monotonic()
    interval = min(REPORT_MAX_S, max(REPORT_MIN_S, seconds / REPORTS))
    for steps, reading in enumerate(readings):
        now = time.monotonic()
        if steps and (now - began >= seconds or stop()):
            break
        for optimiser, highest in optimisers:
            for group in optimiser.param_groups:
                group["lr"] = highest * rate((now - began) / max(seconds, 1e-9))
        torch.autograd.backward(draft.loss(reading))
        for optimiser, _ in optimisers:
            optimiser.step()
            optimiser.zero_grad()
        progress.steps += 1
        progress.tokens += len(reading.places)
        progress.seconds = seconds_before + time.monotonic() - began
        weight = 1.0 - min(AVERAGED, (1 + progress.steps) / (10 + progress.steps))
        torch._foreach_lerp_(mean, [parameter.detach() for parameter in draft.parameters()], weight)
        if now - reported > interval:
            measure()
            reported = time.monotonic()
    measure()
    return progress


def save(
    path: Path, draft: Draft, optimisers: Sequence[torch.optim.Optimizer], progress: Progress, mean: Sequence[Tensor]
) -> None:
    """Whole or not at all."""
    state: dict[str, Any] = {
        "model": draft.state_dict(),
        "optimisers": [optimiser.state_dict() for optimiser in optimisers],
        "progress": asdict(progress),
        "mean": list(mean),
        "draft_ids": draft.draft_ids.cpu(),
    }
    new = path.with_name(f".{path.name}")
    torch.save(state, new)
    new.replace(path)


@torch.no_grad()
def exchange(draft: Draft, others: Sequence[Tensor]) -> None:
    """The draft's weights for those, and those for the draft's."""
    for parameter, other in zip(draft.parameters(), others, strict=True):
        own = parameter.clone()
        parameter.copy_(other)
        other.copy_(own)
