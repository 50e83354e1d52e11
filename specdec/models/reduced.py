"""A small draft model that uses the target's embeddings and output matrix.

Two small matrices convert between the widths of draft and target. The draft's file holds these, its layers, a norm and
a map. Like an EAGLE-3 head, the draft proposes only the tokens in the map `d2t`.
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

# Tensors that a plain `Transformer` lacks:
READS = "reads.weight"  # [draft's width, target's width]: converts the target's embeddings
WRITES = "writes.weight"  # same shape: converts the draft's states to the target's width
MAP = "d2t"  # for each token that can be drafted: its id minus its index, as in EAGLE-3
ROWS = 64  # rows of an identity matrix that `output_rows` projects at a time


class ReducedDraft(Transformer):
    """A `Transformer` whose logits cover the target's vocabulary, but are -inf except at the tokens `ids`."""

    def __init__(
        self,
        config: Config,
        weights: Mapping[str, Tensor],
        target: Target,
        stored: torch.dtype | None = None,
    ) -> None:
        """Build the draft. Raises ValueError if `weights`, which must have a `MAP`, do not fit `config` or `target`."""
        ids = parse_map(weights[MAP], target.vocabulary)
        tensors = {name: weights[name] for name in weights if name != MAP}
        check_tensors(tensors, reduced_tensors(config, target.width))
        reads, writes = weights[READS].float(), weights[WRITES].float()
        own_weights = {name: weights[name] for name in tensors if name not in (READS, WRITES)}
        own_weights["model.embed_tokens.weight"] = target.embedding.cpu().float() @ reads.T
        own_weights["lm_head.weight"] = output_rows(target, ids) @ writes.T
        # On a CPU, small products are fastest in float32.
        dtype = torch.float32 if target.device == "cpu" else target.dtype
        super().__init__(replace(config, tie_word_embeddings=False), own_weights, dtype, target.device, stored)
        self.vocabulary, self.ids = target.vocabulary, ids.to(target.device)
        self.parameters = sum(tensor.numel() for tensor in tensors.values())

    def logits(self, x: Tensor) -> Tensor:
        """Return logits over the target's vocabulary, -inf for tokens outside the map.  # [n, hidden] -> [n, V]"""
        logits = self.own_logits(x)
        return logits.new_full((len(logits), self.vocabulary), float("-inf")).index_copy_(1, self.ids, logits)


def reduced_tensors(config: Config, width: int) -> dict[str, tuple[int, ...]]:
    """Return the names and shapes of all tensors except the map, for a target of width `width`."""
    shapes = model_tensors(replace(config, tie_word_embeddings=True), {})
    del shapes["model.embed_tokens.weight"]
    return shapes | {name: (config.hidden_size, width) for name in (READS, WRITES)}


def parse_map(offsets: Tensor, vocabulary: int) -> Tensor:
    """Convert the map's offsets to the target's token ids. Raises ValueError unless they are valid and distinct."""
    ids = offsets.long() + torch.arange(len(offsets))
    if ids.min() < 0 or ids.max() >= vocabulary or len(ids.unique()) < len(ids):
        raise ValueError(f"its map {MAP} does not name {len(ids)} different tokens of the target's {vocabulary} tokens")
    return ids


def output_rows(target: Target, tokens: Tensor) -> Tensor:
    """Return the rows of the target's output matrix for `tokens`, in float32.  # [n] -> [n, width]"""
    eye = torch.eye(target.width, dtype=target.dtype, device=target.device)
    columns = [target.project(rows)[:, tokens.to(target.device)].float().cpu() for rows in eye.split(ROWS)]
    return torch.cat(columns).T
