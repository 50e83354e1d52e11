"""Run the training loop for a given time, with a learning-rate schedule, measurements and checkpoints."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TypeVar

import torch
from torch import nn, Tensor

from ..models.device import multiplies_bfloat16
from ..paths import write_whole

ADAMW_LR = 2e-3
MUON_LR = 6e-3
WEIGHT_DECAY = 0.05  # of the matrices
MOMENTUM = 0.95
RMS = 0.2  # root mean square of an update of Muon, as in AdamW (arXiv 2502.16982)
WARM_UP = 0.01  # share of the time during which the rates rise
STEADY = 0.4  # share of the time after which the rates begin to fall
FINAL = 0.02  # first and final rate, as a share of the highest
AVERAGED = 0.998  # largest decay of the running mean of the weights; this mean is measured and exported
REPORTS = 20  # number of measurements; REPORT_MIN_S and REPORT_MAX_S limit their interval
REPORT_MIN_S = 10.0
REPORT_MAX_S = 60.0
REPORT_COST = 10.0  # an interval is at least this many times as long as a measurement

Data = TypeVar("Data")


@dataclass
class TrainingProgress:
    """How long a checkpoint was trained, over all calls of `fit`. A token that is read twice counts twice."""

    steps: int = 0
    tokens: int = 0
    seconds: float = 0.0


class Muon(torch.optim.Optimizer):
    """Muon (Jordan et al. 2024, kellerjordan.github.io/posts/muon) for matrices, with the updates of torch's Muon."""

    def __init__(self, matrices: Iterable[nn.Parameter], lr: float, weight_decay: float) -> None:
        super().__init__(matrices, {"lr": lr, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for matrix in group["params"]:
                if matrix.grad is None:
                    continue
                momentum = self.state[matrix].setdefault("momentum_buffer", torch.zeros_like(matrix))
                momentum.lerp_(matrix.grad, 1.0 - MOMENTUM)
                update = orthogonal(matrix.grad.lerp(momentum, MOMENTUM))
                matrix.mul_(1.0 - group["lr"] * group["weight_decay"])
                matrix.sub_(update, alpha=group["lr"] * RMS * max(matrix.shape) ** 0.5)


def orthogonal(matrix: Tensor) -> Tensor:
    """Bring the singular values near 1 by five Newton–Schulz iterations.  # [n, m] -> [n, m]"""
    a, b, c = 3.4445, -4.7750, 2.0315
    # torch's Muon multiplies in bfloat16, which takes forty times as long as float32 on a CPU that emulates it.
    wide = matrix.to(torch.bfloat16 if multiplies_bfloat16(str(matrix.device)) else torch.float32)
    is_tall = matrix.shape[0] > matrix.shape[1]
    wide = wide.T if is_tall else wide
    wide = wide / wide.norm().clamp(min=1e-7)
    for _ in range(5):
        square = wide @ wide.T
        wide = torch.addmm(wide, torch.addmm(square, square, square, beta=b, alpha=c), wide, beta=a)
    return wide.T if is_tall else wide


def rate(share: float) -> float:
    """Return the learning rate after `share` of the time, relative to the highest rate."""
    if share < WARM_UP:
        return FINAL + (1.0 - FINAL) * share / WARM_UP
    return FINAL + (1.0 - FINAL) * min(1.0, max(0.0, (1.0 - share) / (1.0 - STEADY)))


def fit(
    model: nn.Module,
    matrices: Sequence[nn.Parameter],
    loss: Callable[[Data], Tensor],
    batches: Iterable[tuple[Data, int]],
    seconds: float,
    checkpoint: Path,
    measure: Callable[[TrainingProgress], None],
    least_steps: int = 1,
) -> TrainingProgress:
    """Train for `seconds`, but at least `least_steps`, and leave the model with its averaged weights.

    Muon trains `matrices`, AdamW the other parameters, from the checkpoint on if there is one. `batches` yields each
    batch with its number of tokens. At intervals, the state is saved and `measure` called, with the averaged weights.
    """
    device = next(model.parameters()).device
    others = [p for p in model.parameters() if all(p is not matrix for matrix in matrices)]
    optimisers: list[tuple[torch.optim.Optimizer, float]] = [
        (torch.optim.AdamW(others, betas=(0.9, 0.95), weight_decay=0.0, fused=device.type == "cuda"), ADAMW_LR),
        (Muon(matrices, MUON_LR, WEIGHT_DECAY), MUON_LR),
    ]
    progress, mean = TrainingProgress(), [parameter.detach().clone() for parameter in model.parameters()]
    if checkpoint.exists():
        saved = torch.load(checkpoint, map_location=device, weights_only=True)
        model.load_state_dict(saved["model"])
        for (optimiser, _), state in zip(optimisers, saved["optimisers"], strict=True):
            optimiser.load_state_dict(state)
        progress, mean = TrainingProgress(**saved["progress"]), saved["mean"]
    earlier = replace(progress)
    reported = -1  # the step after which was measured

    def report() -> None:
        nonlocal reported
        if progress.steps == reported:
            return
        if progress.steps:
            state = {"model": model.state_dict(), "optimisers": [o.state_dict() for o, _ in optimisers], "mean": mean}
            write_whole(checkpoint, lambda path: torch.save({**state, "progress": asdict(progress)}, path))
        exchange(model, mean)
        try:
            measure(progress)
        finally:  # after Ctrl-C a checkpoint follows, which needs the weights that are trained
            exchange(model, mean)
        reported = progress.steps

    share, began = 0.0, time.monotonic()
    report()
    last = time.monotonic()
    interval = min(REPORT_MAX_S, max(REPORT_MIN_S, seconds / REPORTS, REPORT_COST * (last - began)))
    try:
        for batch, tokens in batches:
            for optimiser, highest in optimisers:
                for group in optimiser.param_groups:
                    group["lr"] = highest * rate(share)
            torch.autograd.backward(loss(batch))
            for optimiser, _ in optimisers:
                optimiser.step()
                optimiser.zero_grad()
            progress.steps += 1
            progress.tokens += tokens
            now = time.monotonic()
            progress.seconds = earlier.seconds + now - began
            weight = 1.0 - min(AVERAGED, (1 + progress.steps) / (10 + progress.steps))
            torch._foreach_lerp_(mean, [parameter.detach() for parameter in model.parameters()], weight)
            share = min((now - began) / max(seconds, 1e-9), (progress.steps - earlier.steps) / least_steps)
            if share >= 1.0:
                break
            if now - last > interval:
                report()
                last = time.monotonic()
    finally:  # also after Ctrl-C
        report()
    exchange(model, mean)
    return progress


@torch.no_grad()
def exchange(model: nn.Module, weights: Sequence[Tensor]) -> None:
    for parameter, weight in zip(model.parameters(), weights, strict=True):
        previous = parameter.clone()
        parameter.copy_(weight)
        weight.copy_(previous)
