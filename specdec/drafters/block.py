"""A block of tokens from one pass: masked slots see each other and the text's features, then are drawn in order.

The pass is DFlash's (Chen et al. 2026, arXiv 2602.06036), block diffusion in a single step: a few layers, whose keys
and values of the text are projections of the target's own states, denoise all slots at once. So a draft costs one pass,
however long it is. But its slots do not know each other's tokens. What they miss most is the token before: a table of
pairs, of low rank, adds what that token says to a slot's logits, as in DSpark (arXiv 2607.05147). Slots are drawn in
order, each from the distribution after its correction; that very distribution is reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from ..models.base import Target
from ..models.cache import StaticCache
from ..models.checkpoint import check_tensors
from ..models.config import Config
from ..models.matrix import linear, pack_weight
from ..models.transformer import layer_tensors, Transformer
from ..models.view import TargetView
from ..sampling import Sampler
from ..types import Proposal, SamplingParams
from .base import ChainDrafter, Reader

TAPS = "block_taps"  # of config.json: the layers whose inputs are fused
W1 = "markov_head.markov_w1.weight"
W2 = "markov_head.markov_w2.weight"


class BlockHead:
    """Layers that denoise `slots` slots at once, and the correction of each slot by the token before it.

    The first slot begins with that token's word, the others with a vector of their own; to each the feature of the
    text's last state is added.
    """

    def __init__(
        self,
        config: Config,
        weights: Mapping[str, Tensor],
        target: Target,
        taps: Sequence[int],
        stored: torch.dtype | None = None,
    ) -> None:
        """`stored` is what matrices are rounded to (`draft_dtype`). ValueError where they do not fit `target`."""
        check_tensors(weights, head_tensors(config, weights, target, len(taps)))
        self.slots, self.taps = 1 + len(weights["slots.weight"]), tuple(taps)
        # A block may begin at the context's last token: its slots need places after that.
        room = target.context + self.slots
        shape = replace(config, tie_word_embeddings=False, max_position_embeddings=room)
        layers = {name if name == "lm_head.weight" else f"model.{name}": weight for name, weight in weights.items()}
        layers["model.embed_tokens.weight"] = target.embedding
        self.decoder = Transformer(shape, layers, target.dtype, target.device, stored)
        self.fc = self.decoder.matrix(weights["fc.weight"].float())
        unit = self.decoder.unit(target.width)
        self.embed_norm, self.hidden_norm = (
            (weights[f"{name}.weight"].float() * unit).to(target.device, target.dtype)
            for name in ("embed_norm", "hidden_norm")
        )
        self.masked = weights["slots.weight"].to(target.device, target.dtype)  # [slots - 1, hidden]
        self.before = weights[W1].to(target.device, target.dtype)  # [V, rank]
        self.after = pack_weight(weights[W2].float(), target.dtype, target.device, stored)
        self.parameters = sum(tensor.numel() for tensor in weights.values())

    def new_cache(self, capacity: int) -> StaticCache:
        return self.decoder.new_cache(capacity + self.slots)

    def fuse(self, states: Mapping[int, Tensor], places: slice) -> Tensor:
        """Make the features of the tokens at `places` from the target's states there.  # [n, hidden]"""
        return linear(torch.cat([states[tap][places] for tap in self.taps], -1), self.fc)

    def forward(self, features: Tensor, tokens: Sequence[int], cache: StaticCache) -> Tensor:
        """Append features of the text to the cache; return a block's states.  # [n, hidden] -> [slots, hidden]

        The block begins with the last of `tokens`, which has no features yet.
        """
        normed = self.decoder.rms_normalise
        self.decoder.remember(features, cache)
        word = normed(self.decoder.embedding[tokens[-1]][None]) * self.embed_norm
        stream = normed(features[-1:]) * self.hidden_norm + torch.cat((word, self.masked))
        return self.decoder.run_layers(stream, cache, cache.length, causal=False)

    def corrected(self, logits: Tensor, token: int) -> Tensor:
        """Add to a slot's logits what the token before it says.  # [1, V] -> [1, V]"""
        return linear(self.before[token][None], self.after, logits)


def head_tensors(
    config: Config, weights: Mapping[str, Tensor], target: Target, taps: int
) -> dict[str, tuple[int, ...]]:
    """The names and shapes of a head; its own tensors say how many slots it has, and the rank of the correction."""
    width, words = target.width, target.vocabulary
    slots, table = weights.get("slots.weight", torch.empty(0)), weights.get(W1, torch.empty(0))
    layers = range(config.num_hidden_layers)
    return {
        "fc.weight": (width, taps * width),
        "lm_head.weight": (words, width),
        "slots.weight": (len(slots), width),
        W1: (words, table.shape[-1]),
        W2: (words, table.shape[-1]),
        **{f"{name}.weight": (width,) for name in ("embed_norm", "hidden_norm", "norm")},
        **{f"layers.{i}.{name}": shape for i in layers for name, shape in layer_tensors(config, width).items()},
    }


class BlockDrafter(Reader[BlockHead], ChainDrafter):
    """Draws tokens slot by slot from one pass: at most as many as there are slots."""

    name = "block"

    def __init__(self, view: TargetView, head: BlockHead, capacity: int) -> None:
        super().__init__(view, head, capacity)
        self.deepest = head.slots
        self._slots: Iterator[Tensor] = iter(())

    def propose(self, tokens: Sequence[int], k: int, params: SamplingParams, sampler: Sampler) -> Proposal:
        if k == 0 or self.view.cache.length == 0:  # at the prefill there are no features yet
            return Proposal()
        k, pending = min(k, self.head.slots), self.catch_up(tokens)
        self._slots = self._one_by_one(pending, k)
        return self.chain(pending[-1:], k, params, sampler)

    def step(self, pending: list[int]) -> Tensor:
        return self.head.corrected(next(self._slots), pending[-1])

    def _one_by_one(self, pending: list[int], k: int) -> Iterator[Tensor]:
        yield from self.head.decoder.logits(self.forward(pending)[:k])[:, None]
