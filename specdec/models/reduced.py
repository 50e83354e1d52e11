"""A draft model made for one target: it reads the target's embeddings, and writes through the target's output rows.

Two small matrices lie between, so its file holds its own layers alone. It knows the tokens of its map `d2t`, as EAGLE-3
heads do: all others have probability zero in its distribution, and verification gives them back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from .base import Target
from .checkpoint import check_tensors
from .config import Config
from .transformer import layer_tensors, Transformer

READS, WRITES, MAP = "reads.weight", "writes.weight", "d2t"  # the tensors that no other draft model has
ROWS = 64  # of the identity, through the output matrix at once


class ReducedDraft(Transformer):
    """`Transformer` over the whole vocabulary, with logits for the tokens `known` alone."""

    def __init__(
        self, config: Config, weights: Mapping[str, Tensor], target: Target, stored: torch.dtype | None = None
    ) -> None:
        """ValueError where the weights fit no reduced draft of `target`."""
        if lacking := [name for name in (READS, WRITES, MAP) if name not in weights]:
            raise ValueError(f"this is no draft with a reduced vocabulary: it lacks {', '.join(lacking)}")
        known = known_tokens(weights[MAP], target.vocabulary)
        if config.vocab_size < target.vocabulary:
            raise ValueError(f"its {config.vocab_size} tokens are not the {target.vocabulary} of the target")
        own = {name: weights[name] for name in weights if name != MAP}
        check_tensors(own, tensors_of(config, target.width))
        reads, writes = weights[READS].float(), weights[WRITES].float()
        layers = {name: weights[name] for name in own if name not in (READS, WRITES)}
        layers["model.embed_tokens.weight"] = target.embedding.cpu().float() @ reads.T
        layers["lm_head.weight"] = output_rows(target, known) @ writes.T
        dtype = torch.float32 if target.device == "cpu" else target.dtype  # small products are fastest so on a CPU
        super().__init__(replace(config, tie_word_embeddings=False), layers, dtype, target.device, stored)
        self.vocabulary, self.known = target.vocabulary, known.to(target.device)
        self.parameters = sum(tensor.numel() for tensor in own.values())

    def logits_of(self, x: Tensor) -> Tensor:
        """Over the target's whole vocabulary, -inf where the draft has no token.  # [n, hidden] -> [n, V]"""
        scores = super().logits_of(x)
        everywhere = scores.new_full((len(scores), self.vocabulary), float("-inf"))
        return everywhere.index_copy_(1, self.known, scores)


def tensors_of(config: Config, width: int) -> dict[str, tuple[int, ...]]:
    """The names and shapes of all but the map, for a target of that `width`."""
    shapes: dict[str, tuple[int, ...]] = {
        READS: (config.hidden_size, width),
        WRITES: (config.hidden_size, width),
        "model.norm.weight": (config.hidden_size,),
    }
    layer = layer_tensors(config, config.hidden_size).items()
    return shapes | {
        f"model.layers.{i}.{part}": shape for i in range(config.num_hidden_layers) for part, shape in layer
    }


def known_tokens(offsets: Tensor, vocabulary: int) -> Tensor:
    """The target's token of each of a draft's own, from the map that a file holds. ValueError for no such map."""
    if offsets.is_floating_point() or offsets.dim() != 1 or not len(offsets):
        raise ValueError(f"its map {MAP} is no list of whole numbers")
    known = offsets.long() + torch.arange(len(offsets))
    if known.min() < 0 or known.max() >= vocabulary:
        raise ValueError(f"its map {MAP} names a token beyond the {vocabulary} of the target")
    if len(known.unique()) < len(known):
        raise ValueError(f"its map {MAP} names a token twice")
    return known


def output_rows(target: Target, tokens: Tensor) -> Tensor:
    """The rows of the target's output matrix for those tokens, in float32.  # [n] -> [n, width]"""
    eye = torch.eye(target.width, dtype=target.dtype, device=target.device)
    parts = [target.project(part)[:, tokens.to(target.device)].float().cpu() for part in eye.split(ROWS)]
    return torch.cat(parts).T.nan_to_num(0.0, 0.0, 0.0)  # a norm whose weight is zero hides its row
