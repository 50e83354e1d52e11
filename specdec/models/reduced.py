"""A small draft model that uses the target's embeddings and output matrix.

Two small matrices convert between the widths, so its file holds only them and its layers. It drafts only the tokens in
its map `d2t`, as an EAGLE-3 head does; all others still come from the target.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from .base import Target
from .checkpoint import check_tensors
from .config import Config
from .transformer import model_tensors, Transformer

# Tensors that only such a draft model has:
READS = "reads.weight"
WRITES = "writes.weight"
MAP = "d2t"
ROWS = 64  # rows of the identity matrix that are multiplied by the output matrix at once


class ReducedDraft(Transformer):
    """A `Transformer` over the target's vocabulary that has finite logits for the tokens `ids` only."""

    def __init__(
        self,
        config: Config,
        weights: Mapping[str, Tensor],
        target: Target,
        stored: torch.dtype | None = None,
    ) -> None:
        """Raises ValueError if the weights are not those of a reduced draft of `target`."""
        ids = parse_map(weights[MAP], target.vocabulary)
        own = {name: weights[name] for name in weights if name != MAP}
        check_tensors(own, reduced_tensors(config, target.width))
        reads, writes = weights[READS].float(), weights[WRITES].float()
        layers = {name: weights[name] for name in own if name not in (READS, WRITES)}
        layers["model.embed_tokens.weight"] = target.embedding.cpu().float() @ reads.T
        layers["lm_head.weight"] = output_rows(target, ids) @ writes.T
        # On a CPU, small products are fastest in float32.
        dtype = torch.float32 if target.device == "cpu" else target.dtype
        super().__init__(replace(config, tie_word_embeddings=False), layers, dtype, target.device, stored)
        self.vocabulary, self.ids = target.vocabulary, ids.to(target.device)
        self.parameters = sum(tensor.numel() for tensor in own.values())

    def logits(self, x: Tensor) -> Tensor:
        """Return logits over the target's vocabulary, -inf for tokens that the draft lacks.  # [n, hidden] -> [n, V]"""
        own = self.own_logits(x)
        return own.new_full((len(own), self.vocabulary), float("-inf")).index_copy_(1, self.ids, own)


def reduced_tensors(config: Config, width: int) -> dict[str, tuple[int, ...]]:
    """Return the names and shapes of all tensors except the map, for a target of that `width`."""
    shapes = model_tensors(replace(config, tie_word_embeddings=True), {})
    del shapes["model.embed_tokens.weight"]
    return shapes | {name: (config.hidden_size, width) for name in (READS, WRITES)}


def parse_map(offsets: Tensor, vocabulary: int) -> Tensor:
    """Return the target's id of each draft token, from the offsets in a file. Raises ValueError if they do not fit."""
    ids = offsets.long() + torch.arange(len(offsets))
    if ids.min() < 0 or ids.max() >= vocabulary or len(ids.unique()) < len(ids):
        raise ValueError(f"its map {MAP} does not name {len(ids)} different tokens of the target's {vocabulary}")
    return ids


def output_rows(target: Target, tokens: Tensor) -> Tensor:
    """Return the rows of the target's output matrix for `tokens`, in float32.  # [n] -> [n, width]"""
    eye = torch.eye(target.width, dtype=target.dtype, device=target.device)
    parts = [target.project(part)[:, tokens.to(target.device)].float().cpu() for part in eye.split(ROWS)]
    return torch.cat(parts).T.nan_to_num(0.0, 0.0, 0.0)  # NaN where `project` divides by a norm weight of 0
