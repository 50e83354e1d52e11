"""A draft model made for one target: it reads the target's embeddings, and writes through the target's output rows.

Two small matrices lie between, so its file holds its own layers alone. Its vocabulary is the map `d2t`, as an EAGLE-3
head's is. It never drafts other tokens; where verification rejects, they can still come from the target.
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

# the tensors that no other draft model has
READS = "reads.weight"
WRITES = "writes.weight"
MAP = "d2t"
ROWS = 64  # of the identity, through the output matrix at once


class ReducedDraft(Transformer):
    """`Transformer` over the whole vocabulary, with logits for the tokens `ids` alone."""

    def __init__(
        self,
        config: Config,
        weights: Mapping[str, Tensor],
        target: Target,
        stored: torch.dtype | None = None,
    ) -> None:
        """ValueError where the weights fit no reduced draft of `target`."""
        ids = parse_map(weights[MAP], target.vocabulary)
        own = {name: weights[name] for name in weights if name != MAP}
        check_tensors(own, tensors_of(config, target.width))
        reads, writes = weights[READS].float(), weights[WRITES].float()
        layers = {name: weights[name] for name in own if name not in (READS, WRITES)}
        layers["model.embed_tokens.weight"] = target.embedding.cpu().float() @ reads.T
        layers["lm_head.weight"] = output_rows(target, ids) @ writes.T
        dtype = torch.float32 if target.device == "cpu" else target.dtype  # small products are fastest so on a CPU
        super().__init__(replace(config, tie_word_embeddings=False), layers, dtype, target.device, stored)
        self.vocabulary, self.ids = target.vocabulary, ids.to(target.device)
        self.parameters = sum(tensor.numel() for tensor in own.values())

    def logits(self, x: Tensor) -> Tensor:
        """Logits over the target's whole vocabulary, -inf where the draft has no token.  # [n, hidden] -> [n, V]"""
        own = self.own_logits(x)
        return own.new_full((len(own), self.vocabulary), float("-inf")).index_copy_(1, self.ids, own)


def tensors_of(config: Config, width: int) -> dict[str, tuple[int, ...]]:
    """The names and shapes of all but the map, for a target of that `width`."""
    shapes = model_tensors(replace(config, tie_word_embeddings=True), {})
    del shapes["model.embed_tokens.weight"]
    return shapes | {name: (config.hidden_size, width) for name in (READS, WRITES)}


def parse_map(offsets: Tensor, vocabulary: int) -> Tensor:
    """The target's token of each of a draft's own, from the map that a file holds. ValueError for another's map."""
    ids = offsets.long() + torch.arange(len(offsets))
    if ids.min() < 0 or ids.max() >= vocabulary or len(ids.unique()) < len(ids):
        raise ValueError(f"its map {MAP} does not name {len(ids)} different tokens of the target's {vocabulary}")
    return ids


def output_rows(target: Target, tokens: Tensor) -> Tensor:
    """The rows of the target's output matrix for those tokens, in float32.  # [n] -> [n, width]"""
    eye = torch.eye(target.width, dtype=target.dtype, device=target.device)
    parts = [target.project(part)[:, tokens.to(target.device)].float().cpu() for part in eye.split(ROWS)]
    return torch.cat(parts).T.nan_to_num(0.0, 0.0, 0.0)  # a norm whose weight is zero hides its row
