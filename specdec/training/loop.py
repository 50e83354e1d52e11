"""The optimiser's loop: batches of conversations of one length, a rate that falls until the time is over."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import nn, Tensor

from .examples import Example

BATCH = 4_096  # tokens
RATE, MATRICES = 2e-3, 6e-3  # the highest, of AdamW and of Muon
WARM_UP, STEADY, FINAL = 0.01, 0.4, 0.02  # shares of the time, and of the highest rate
AVERAGED = 0.998  # of the running mean of the weights, which is what is measured and kept
PACKED = 0.2  # share of batches whose rows are several conversations: places far from the beginning are seen, too
PACKED_LENGTH = 384
SAVED, TOLD = 180.0, 60.0  # seconds


class Draft(Protocol):
    """What is trained: a module, which says how far it is from the target and what its files hold."""

    known: Tensor  # the tokens that it can draft, ascending
    matrices: list[nn.Parameter]

    def loss(self, examples: Sequence[Example]) -> Tensor: ...

    def measured(self, examples: Sequence[Example]) -> tuple[float, float]:
        """How often its favourite is the target's, and the overlap of the two distributions."""
        ...

    def weights(self) -> dict[str, Tensor]: ...

    def config(self, vocabulary: int, context: int) -> dict[str, Any]: ...

    def parameters(self) -> Iterator[nn.Parameter]: ...

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> Any: ...


@dataclass
class Progress:
    """Of all calls together: steps, and tokens of answers that were learned from, each as often as it was seen."""

    steps: int = 0
    tokens: int = 0


def batches(examples: Sequence[Example], size: int, dice: random.Random) -> Iterator[list[Example]]:
    """Endless: of similar length each, or one after another in long rows."""
    while True:
        chosen = sorted(dice.sample(examples, min(len(examples), 1_024)), key=lambda example: len(example.tokens))
        found: list[list[Example]] = []
        while chosen:
            count = max(1, size // len(chosen[-1].tokens))
            found.append(chosen[-count:])
            del chosen[-count:]
        dice.shuffle(found)
        for batch in found:
            yield batch if dice.random() >= PACKED else joined(batch)


def joined(examples: Sequence[Example]) -> list[Example]:
    """One after another, in rows of about PACKED_LENGTH tokens."""
    rows, row = list[Example](), list[Example]()
    for i, example in enumerate(examples, 1):
        row.append(example)
        if i == len(examples) or sum(len(one.tokens) for one in row) >= PACKED_LENGTH:
            starts = [sum(len(one.tokens) for one in row[:j]) for j in range(len(row))]
            places = [one.places + start for one, start in zip(row, starts, strict=True)]
            tokens, likeliest, logs = (
                torch.cat([getattr(one, name) for one in row]) for name in ("tokens", "likeliest", "logs")
            )
            rows.append(Example(tokens, torch.cat(places), likeliest, logs, example.temperature))
            row = []
    return rows


def rate(share: float) -> float:
    """After that share of the time, as a share of the highest."""
    if share < WARM_UP:
        return FINAL + (1.0 - FINAL) * share / WARM_UP
    return FINAL + (1.0 - FINAL) * min(1.0, max(0.0, (1.0 - share) / (1.0 - STEADY)))


def fit(
    model: Draft, examples: Sequence[Example], seconds: float, checkpoint: Path, tell: Callable[[Progress], None],
    seed: int = 0,
) -> Progress:  # fmt: skip
    """Train for that long, on from the checkpoint where there is one; the model then has the averaged weights.

    `tell` is called with these weights in place, once a minute and at the end.
    """
    matrices = {id(matrix) for matrix in model.matrices}
    others = [parameter for parameter in model.parameters() if id(parameter) not in matrices]
    optimisers: list[torch.optim.Optimizer] = [
        torch.optim.AdamW(others, lr=RATE, betas=(0.9, 0.95), weight_decay=0.0),
        torch.optim.Muon(model.matrices, lr=MATRICES, weight_decay=0.05, adjust_lr_fn="match_rms_adamw"),
    ]
    progress, mean = Progress(), [parameter.detach().clone() for parameter in model.parameters()]
    if checkpoint.exists():
        saved = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(saved["model"])
        for optimiser, state in zip(optimisers, saved["optimisers"], strict=True):
            optimiser.load_state_dict(state)
        progress, mean = Progress(*saved["progress"]), saved["mean"]

    def save() -> None:
        state: dict[str, Any] = {
            "model": model.state_dict(), "optimisers": [optimiser.state_dict() for optimiser in optimisers],
            "progress": [progress.steps, progress.tokens], "mean": mean, "known": model.known,
        }  # fmt: skip
        torch.save(state, f"{checkpoint}.new")
        Path(f"{checkpoint}.new").replace(checkpoint)

    began = saved_at = told_at = time.monotonic()
    for batch in batches(examples, BATCH, random.Random(seed + progress.steps)):
        now = time.monotonic()
        if progress.steps and now - began >= seconds:
            break
        for optimiser, highest in zip(optimisers, (RATE, MATRICES), strict=True):
            for group in optimiser.param_groups:
                group["lr"] = highest * rate((now - began) / seconds)
        torch.autograd.backward(model.loss(batch))
        for optimiser in optimisers:
            optimiser.step()
            optimiser.zero_grad()
        progress.steps += 1
        progress.tokens += sum(len(example.places) for example in batch)
        weight = 1.0 - min(AVERAGED, (1 + progress.steps) / (10 + progress.steps))
        torch._foreach_lerp_(mean, [parameter.detach() for parameter in model.parameters()], weight)
        if now - saved_at > SAVED:
            save()
            saved_at = now
        if now - told_at > TOLD:
            exchange(model, mean)
            tell(progress)
            exchange(model, mean)
            told_at = now
    save()
    exchange(model, mean)
    tell(progress)
    return progress


@torch.no_grad()
def exchange(model: Draft, others: Sequence[torch.Tensor]) -> None:
    """The model's weights for those, and those for the model's."""
    for parameter, other in zip(model.parameters(), others, strict=True):
        kept = parameter.clone()
        parameter.copy_(other)
        other.copy_(kept)
