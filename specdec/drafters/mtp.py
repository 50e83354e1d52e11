"""Draft with a multi-token-prediction layer (DeepSeek-V3, arXiv 2412.19437, section 2.2).

The layer's input is the target's last state at token i and the embedding of token i + 1, both normed and projected
together. The layer and the target's output matrix then predict token i + 2. For further tokens, the layer's own output
replaces the target's state; it is normed, as that is, unless the layer was trained otherwise.
DeepSeek-V3, GLM-4.5 and Qwen3-Next are published with such a layer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from ..models.base import Target
from ..models.cache import StaticCache
from ..models.checkpoint import check_tensors
from ..models.config import Config
from ..models.matrix import linear
from ..models.reduced import DraftVocabulary
from ..models.transformer import Transformer
from .base import HeadChainDrafter

NORM = "shared_head.norm.weight"  # the layer's own norm, before the target's output matrix


class MTPHead:
    """A decoder of one layer on [norm(embedding), norm(state)], with the target's output matrix."""

    draft_vocabulary = DraftVocabulary()

    def __init__(
        self,
        config: Config,
        weights: Mapping[str, Tensor],
        target: Target,
        stored: torch.dtype | None = None,
        norm_output: bool = True,
    ) -> None:
        """Make the head from `weights` with DeepSeek-V3's names. Raises ValueError if they do not fit `target`.

        The layer's matrices and a copy of the target's output matrix are rounded to the dtype `stored`. With
        `norm_output`, the state that replaces the target's is normed.
        """
        width = target.width
        layer = config.layer_tensors(width)
        norms = {name: (width,) for name in ("enorm.weight", "hnorm.weight", NORM)}
        check_tensors(weights, norms | layer | {"eh_proj.weight": (width, 2 * width)})
        config = replace(config, num_hidden_layers=1, tie_word_embeddings=False, max_position_embeddings=target.context)
        parts = {f"model.layers.0.{name}": weights[name] for name in layer}
        parts["model.embed_tokens.weight"], parts["model.norm.weight"] = target.embedding, weights[NORM]
        identity = torch.eye(width, dtype=target.dtype, device=target.device)
        parts["lm_head.weight"] = target.project(identity).t().contiguous()
        self.decoder = Transformer(config, parts, target.dtype, target.device, stored)
        scale = torch.cat([weights["enorm.weight"], weights["hnorm.weight"]]).float()
        folding = self.decoder.folding
        self.eh_proj = folding.matrix(weights["eh_proj.weight"].float() * scale * folding.unit(width))
        self.target, self.taps, self.norm_output = target, (target.depth,), norm_output
        self.parameters = sum(tensor.numel() for tensor in weights.values())

    def new_cache(self, capacity: int) -> StaticCache:
        return self.decoder.new_cache(capacity)

    def fuse(self, states: Mapping[int, Tensor], places: slice) -> Tensor:
        """Return the target's states after its last layer and final norm, at positions `places`.  # [n, hidden]"""
        return self.target.normed(states[self.target.depth][places])

    def forward(self, features: Tensor, tokens: Sequence[int], cache: StaticCache) -> Tensor:
        """Append each feature and the next token to the cache; return states.  # [n, hidden], n ids -> [n, hidden]"""
        start, normed = cache.length, self.decoder.rms_normalise
        embedded = F.embedding(torch.tensor(tokens, device=self.decoder.device), self.decoder.embedding)
        stream = linear(torch.cat((normed(embedded), normed(features)), -1), self.eh_proj)
        states = self.decoder.run_layers(stream, cache, start)
        cache.keep(start + len(tokens))
        return self.decoder.normed(states) if self.norm_output else states

    def logits(self, states: Tensor) -> Tensor:
        """Return the logits of states from `forward`.  # [n, hidden] -> [n, V]"""
        return self.decoder.project(states) if self.norm_output else self.decoder.logits(states)


class MTPDrafter(HeadChainDrafter[MTPHead]):
    """Drafts a chain, token by token, with a multi-token-prediction layer."""

    name = "mtp"
