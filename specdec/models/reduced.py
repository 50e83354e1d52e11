"""A small draft model that uses the target's embeddings and output matrix.

Two small matrices convert between the widths of draft and target. The draft's file holds these, its layers, a norm and
a map. Like an EAGLE-3 head, the draft proposes only the tokens in the map `d2t`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from .base import Target
from .checkpoint import check_tensors
from .config import Config
from .transformer import Transformer

# Tensors that a plain `Transformer` lacks:
READS = "reads.weight"  # [draft's width, target's width]: converts the target's embeddings
WRITES = "writes.weight"  # same shape: converts the draft's states to the target's width
MAP = "d2t"  # for each token that can be drafted: its id minus its index, as in EAGLE-3
ROWS = 64  # rows of an identity matrix that `output_rows` projects at a time


@dataclass(frozen=True, slots=True)
class DraftVocabulary:
    """The tokens that a draft can propose: a part of the target's vocabulary, or by default all of it."""

    ids: Tensor | None = None  # [V of the draft]: the target's id of each token; None: the same
    size: int = 0  # of the target's vocabulary

    @property
    def count(self) -> int:
        return self.size if self.ids is None else len(self.ids)

    def target_ids(self, indices: Tensor) -> Tensor:
        return indices if self.ids is None else self.ids[indices]

    def spread(self, probs: Tensor) -> Tensor:
        """Return the same probabilities over the target's vocabulary.  # [n, V of the draft] -> [n, V]"""
        return probs if self.ids is None else probs.new_zeros(len(probs), self.size).index_copy_(1, self.ids, probs)


class ReducedDraft(Transformer):
    """A `Transformer` whose logits are for the tokens of `draft_vocabulary` only, not for all `vocabulary` tokens."""

    def __init__(
        self,
        config: Config,
        weights: Mapping[str, Tensor],
        target: Target,
        stored: torch.dtype | None = None,
    ) -> None:
        """Build the draft. Raises ValueError if `weights`, which must have a `MAP`, do not fit `config` or `target`."""
        ids = map_ids(weights[MAP], target)
        self.draft_vocabulary = DraftVocabulary(ids, target.vocabulary)
        tensors = {name: weights[name] for name in weights if name != MAP}
        check_tensors(tensors, reduced_tensors(config, target.width))
        reads, writes = weights[READS].float(), weights[WRITES].float()
        own_weights = {name: weights[name] for name in tensors if name not in (READS, WRITES)}
        own_weights["model.embed_tokens.weight"] = target.embedding.cpu().float() @ reads.T
        own_weights["lm_head.weight"] = output_rows(target, ids) @ writes.T
        # On a CPU, small products are fastest in float32.
        dtype = torch.float32 if target.device == "cpu" else target.dtype
        super().__init__(replace(config, tie_word_embeddings=False), own_weights, dtype, target.device, stored)
        self.vocabulary = target.vocabulary
        self.parameters = sum(tensor.numel() for tensor in tensors.values())


def reduced_tensors(config: Config, width: int) -> dict[str, tuple[int, ...]]:
    """Return the names and shapes of all tensors except the map, for a target of width `width`."""
    shapes = replace(config, tie_word_embeddings=True).tensors({})
    del shapes["model.embed_tokens.weight"]
    return shapes | {name: (config.hidden_size, width) for name in (READS, WRITES)}


def map_ids(offsets: Tensor, target: Target) -> Tensor:
    """Convert the map's offsets to the target's token ids. Raises ValueError unless they are valid and distinct."""
    ids, size = offsets.long() + torch.arange(len(offsets)), target.vocabulary
    if ids.min() < 0 or ids.max() >= size or len(ids.unique()) < len(ids):
        raise ValueError(f"its map {MAP} does not name {len(ids)} different tokens of the target's {size} tokens")
    return ids.to(target.device)


def draft_vocabulary(weights: Mapping[str, Tensor], target: Target) -> DraftVocabulary:
    """Return the tokens that a head with these `weights` can draft; all tokens if it has no map."""
    return DraftVocabulary(map_ids(weights[MAP], target) if MAP in weights else None, target.vocabulary)


def output_rows(target: Target, tokens: Tensor) -> Tensor:
    """Return the rows of the target's output matrix for `tokens`, in float32.  # [n] -> [n, width]"""
    eye = torch.eye(target.width, dtype=target.dtype, device=target.device)
    columns = [target.project(rows)[:, tokens.to(target.device)].float().cpu() for rows in eye.split(ROWS)]
    return torch.cat(columns).T
