"""Compute the training loss: the divergence between the drafter's distribution and the target's."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn, Tensor

from ..models.base import Target
from ..models.device import multiplies_bfloat16
from ..models.reduced import output_rows
from ..models.transformer import Transformer
from .examples import Batch
from .target_pass import hidden_states

LOSS_TEMPERATURE = 0.8  # of both distributions in the loss; below 1, because people decode at low temperatures
DECAY = 0.8  # weight of a drafted token in the loss, relative to the drafted token before it
PLACES_AT_ONCE = {"cpu": 256, "cuda": 8_192}  # places (see `Reading`) whose logits are in memory at the same time


def precision(device: str) -> torch.dtype:
    """Return the dtype of matrix products, in training and in the target."""
    return torch.bfloat16 if multiplies_bfloat16(device) else torch.float32


@dataclass(frozen=True)
class Reading:
    """A batch, with the target's hidden states for it."""

    tokens: Tensor  # int64 [rows, n]
    places: Tensor  # int64 [m]: indices into the flattened tokens; the token after each is part of an answer
    states: Tensor  # [m, width]: the target's normed states at these places
    features: Tensor  # [rows, n, taps · width]: the concatenated inputs of the target's layers `taps`


def read_batch(target: Transformer, batch: Batch, taps: Sequence[int], dtype: torch.dtype) -> Reading:
    """Run the target over a batch in one pass, with results in `dtype`. Returns before a GPU has finished."""
    tokens, places = torch.from_numpy(batch.tokens), torch.from_numpy(batch.places)
    if target.device != "cpu":
        tokens, places = (tensor.pin_memory().to(target.device, non_blocking=True) for tensor in (tokens, places))
    states, inputs = hidden_states(target, tokens, taps)
    with torch.no_grad():
        normed = target.normed(states.flatten(0, 1)[places]).to(dtype)
        features = torch.cat(inputs, -1).to(dtype) if taps else states[..., :0]
    return Reading(tokens, places, normed, features)


class TrainableDraft(nn.Module):
    """A drafter in training. `draft_ids` are the V tokens that it can draft, in ascending order."""

    taps: tuple[int, ...] = ()
    embedding: Tensor
    draft_ids: Tensor
    target_rows: Tensor  # the rows of the target's output matrix for `draft_ids`
    predictions: Callable[[Reading], list[Tensor]]  # states [m, draft width] for a draft's first, second, … token
    outputs: Callable[[], Tensor]  # the output matrix [V, draft width]
    weights: Callable[[], dict[str, Tensor]]  # the tensors of the drafter's file, by name
    config: Callable[[int, int], dict[str, Any]]  # its config.json, of the target's vocabulary and context

    def __init__(self, target: Target, draft_ids: Tensor) -> None:
        super().__init__()
        self.dtype = precision(target.device)  # of matrix products
        rows = output_rows(target, draft_ids)
        self.rows_scale = float(rows.square().mean().rsqrt())  # times this, the rows have a root mean square of 1
        self.register_buffer("embedding", target.embedding.detach().to(self.dtype), persistent=False)
        self.register_buffer("target_rows", rows.to(self.dtype), persistent=False)
        self.register_buffer("draft_ids", draft_ids)

    def loss(self, reading: Reading) -> Tensor:
        total: Tensor = Divergence.apply(reading.states, self.target_rows, self.outputs(), *self.predictions(reading))
        return total

    def matrices(self) -> list[nn.Parameter]:
        return [parameter for parameter in self.parameters() if parameter.dim() == 2]


def layer_matrices(qkv: Iterable[Tensor], out: Tensor, gate_up: Tensor, down: Tensor) -> dict[str, Tensor]:
    """Return a layer's matrices under the names of its checkpoint, without `.weight`."""
    attention = dict(zip("qkvo", (*qkv, out), strict=True))
    mlp = dict(zip(("gate", "up", "down"), (*gate_up.chunk(2), down), strict=True))
    return {f"self_attn.{part}_proj": w for part, w in attention.items()} | {f"mlp.{n}_proj": w for n, w in mlp.items()}


class Divergence(torch.autograd.Function):
    """Computes KL(p ‖ q) plus the total variation between p and q, which is the probability of a rejection.

    It is a mean over places, and a sum over a draft's tokens, weighted with `DECAY`. DistillSpec (arXiv 2310.08461)
    compares such losses. `forward` computes the gradient, as autograd would store thousands of logits for each place.
    """

    @staticmethod
    def forward(ctx: Any, target_states: Tensor, target_rows: Tensor, rows: Tensor, *drafts: Tensor) -> Tensor:
        """Return the loss.  # [m, width], [V, width], [V, draft width], [m, draft width] each -> []"""
        count = len(target_states)
        gradients = [torch.empty_like(states) for states in drafts]
        rows_gradient = torch.zeros_like(rows, dtype=torch.float32) if ctx.needs_input_grad[2] else None
        total = torch.zeros((), device=rows.device)
        for chunk in slices(count, rows.device):
            log_p = log_distribution(target_states[chunk], target_rows)
            p = log_p.exp()
            negative_entropy = log_p.mul_(p).sum()
            for i, states in enumerate(drafts):
                log_q = log_distribution(states[chunk], rows)
                q = log_q.exp()
                divergence = negative_entropy - log_q.mul_(p).sum()
                variation = len(p) - torch.minimum(p, q).sum()
                total += DECAY**i * (divergence + variation)
                # The variation is 1 - Σ min(p, q), so its derivative by q is -1 where q < p, and 0 elsewhere.
                below = q.where(q < p, 0.0)
                gradient = q.mul_(1.0 + below.sum(-1, keepdim=True)).sub_(below).sub_(p)
                gradient = gradient.mul_(DECAY**i / (LOSS_TEMPERATURE * count)).to(rows.dtype)
                gradients[i][chunk] = gradient @ rows
                if rows_gradient is not None:
                    rows_gradient += gradient.T @ states[chunk]
        ctx.save_for_backward(None if rows_gradient is None else rows_gradient.to(rows.dtype), *gradients)
        return total / count

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return None, None, *(None if saved is None else saved * gradients[0] for saved in ctx.saved_tensors)


def slices(count: int, device: torch.device) -> list[slice]:
    size = PLACES_AT_ONCE["cpu" if device.type == "cpu" else "cuda"]
    return [slice(first, first + size) for first in range(0, count, size)]


def log_distribution(states: Tensor, rows: Tensor) -> Tensor:
    """Return log-probabilities of `draft_ids` at LOSS_TEMPERATURE.  # [n, width], [V, width] -> float32 [n, V]"""
    return F.linear(states, rows).float().div_(LOSS_TEMPERATURE).log_softmax(-1)


class HeldOut:
    @torch.no_grad()
    def __init__(self, target: Transformer, readings: Iterable[Reading], draft_ids: Tensor) -> None:
        self.draft_ids = draft_ids
        # Each reading, with the target's likeliest token and logsumexp at every place.
        self.readings = list[tuple[Reading, Tensor, Tensor]]()
        for reading in readings:
            favourites, normalisers = list[Tensor](), list[Tensor]()
            for chunk in slices(len(reading.places), reading.states.device):
                logits = target.project(reading.states[chunk].to(target.dtype)).float()
                favourites.append(logits.argmax(-1))
                normalisers.append(logits.div_(LOSS_TEMPERATURE).logsumexp(-1, keepdim=True))
            self.readings.append((reading, torch.cat(favourites), torch.cat(normalisers)))

    @torch.no_grad()
    def measure(self, draft: TrainableDraft) -> tuple[list[float], list[float]]:
        """Return, for a draft's first, second, … token: how often its best is the target's, and Σ min(p, q)."""
        rows, sums = draft.outputs(), list[Tensor]()
        for reading, favourites, normalisers in self.readings:
            predictions = draft.predictions(reading)
            for chunk in slices(len(reading.places), rows.device):
                logits = F.linear(reading.states[chunk], draft.target_rows).float() / LOSS_TEMPERATURE
                p, chunk_sums = (logits - normalisers[chunk]).exp_(), list[Tensor]()
                for states in predictions:
                    log_q = log_distribution(states[chunk], rows)
                    agreed = self.draft_ids[log_q.argmax(-1)] == favourites[chunk]
                    chunk_sums += [agreed.sum().float(), torch.minimum(p, log_q.exp_()).sum()]
                sums.append(torch.stack(chunk_sums))
        count = sum(len(reading.places) for reading, *_ in self.readings)
        figures = [round(figure, 4) for figure in (torch.stack(sums).sum(0) / count).tolist()]
        return figures[::2], figures[1::2]
