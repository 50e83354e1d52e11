"""Draft a block of tokens in one pass: block diffusion in a single step, as in DFlash (Chen et al. 2026, 2602.06036).

A few layers denoise all masked slots at once. The slots attend to each other and the text. The text's keys and values
come from the target's states. A draft of any length costs one pass, but no slot depends on the tokens of other slots.
A low-rank table [V, V] corrects this, as in DSpark (arXiv 2607.05147): the table's row for the token before a slot is
added to the slot's logits. Tokens are drawn slot by slot.
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
from ..models.matrix import linear
from ..models.transformer import Transformer
from ..models.view import TargetView
from ..sampling import Sampler
from ..types import Proposal, SamplingParams
from .base import ChainDrafter, HeadDrafter

TAPS = "block_taps"  # key of config.json: the layers of the target whose inputs are fused
W1 = "markov_head.markov_w1.weight"
W2 = "markov_head.markov_w2.weight"


class BlockHead:
    """Denoises all slots at once, and corrects each slot's logits by the token before the slot.

    The first slot's input is the embedding of the text's last token. Every other slot's input is a learned vector. The
    last token has no features yet, so the features of the token before it are added to all inputs.
    """

    def __init__(
        self,
        config: Config,
        weights: Mapping[str, Tensor],
        target: Target,
        taps: Sequence[int],
        stored: torch.dtype | None = None,
    ) -> None:
        """Round matrices to `stored`, except lookup tables. Raises ValueError if `weights` do not fit `target`."""
        check_tensors(weights, head_tensors(config, weights, target, len(taps)))
        self.slots, self.taps = 1 + len(weights["slots.weight"]), tuple(taps)
        # Slots can lie beyond the target's context.
        positions = target.context + self.slots
        config = replace(config, tie_word_embeddings=False, max_position_embeddings=positions)
        tensors = {name if name == "lm_head.weight" else f"model.{name}": weight for name, weight in weights.items()}
        tensors["model.embed_tokens.weight"] = target.embedding
        self.decoder = Transformer(config, tensors, target.dtype, target.device, stored)
        folding = self.decoder.folding
        self.fc = folding.matrix(weights["fc.weight"].float())
        self.embed_norm, self.hidden_norm = (
            folding.norm(weights[f"{name}.weight"]) for name in ("embed_norm", "hidden_norm")
        )
        self.masked = weights["slots.weight"].to(target.device, target.dtype)  # [slots - 1, hidden]
        self.table_left = weights[W1].to(target.device, target.dtype)  # [V, rank]
        self.table_right = folding.matrix(weights[W2].float())
        self.parameters = sum(tensor.numel() for tensor in weights.values())

    def new_cache(self, capacity: int) -> StaticCache:
        return self.decoder.new_cache(capacity + self.slots)

    def fuse(self, states: Mapping[int, Tensor], places: slice) -> Tensor:
        """Compute the features of the tokens at `places` from the target's states.  # -> [n, hidden]"""
        return linear(torch.cat([states[tap][places] for tap in self.taps], -1), self.fc)

    def forward(self, features: Tensor, tokens: Sequence[int], cache: StaticCache) -> Tensor:
        """Append features of the text to the cache; return the block's states.  # [n, hidden] -> [slots, hidden]

        The block begins at the last of `tokens`, which has no features yet.
        """
        normed = self.decoder.rms_normalise
        self.decoder.remember(features, cache)
        first = normed(self.decoder.embedding[tokens[-1]][None]) * self.embed_norm
        stream = normed(features[-1:]) * self.hidden_norm + torch.cat((first, self.masked))
        return self.decoder.run_layers(stream, cache, cache.length, causal=False)

    def correct(self, logits: Tensor, token: int) -> Tensor:
        """Correct a slot's logits by the `token` before the slot.  # [1, V] -> [1, V]"""
        return linear(self.table_left[token][None], self.table_right, logits)


def head_tensors(
    config: Config, weights: Mapping[str, Tensor], target: Target, taps: int
) -> dict[str, tuple[int, ...]]:
    """Return the names and shapes that a head's tensors must have. `weights` set the number of slots and the rank."""
    width, vocabulary = target.width, target.vocabulary
    slots, table = weights.get("slots.weight", torch.empty(0)), weights.get(W1, torch.empty(0))
    layers = range(config.num_hidden_layers)
    return {
        "fc.weight": (width, taps * width),
        "lm_head.weight": (vocabulary, width),
        "slots.weight": (len(slots), width),
        W1: (vocabulary, table.shape[-1]),
        W2: (vocabulary, table.shape[-1]),
        **{f"{name}.weight": (width,) for name in ("embed_norm", "hidden_norm", "norm")},
        **{f"layers.{i}.{name}": shape for i in layers for name, shape in config.layer_tensors(width).items()},
    }


class BlockDrafter(HeadDrafter[BlockHead], ChainDrafter):
    """Drafts at most one token for each slot. One pass serves all slots."""

    name = "block"

    def __init__(self, view: TargetView, head: BlockHead, capacity: int) -> None:
        super().__init__(view, head, capacity)
        self.deepest = head.slots
        self._slots: Iterator[Tensor] = iter(())

    def propose(self, tokens: Sequence[int], k: int, params: SamplingParams, sampler: Sampler) -> Proposal:
        if k == 0 or self.view.cache.length == 0:  # at the prefill there are no features yet
            return Proposal()
        k, pending = min(k, self.head.slots), self.catch_up(tokens)
        self._slots = self._logits_of_slots(pending, k)
        return self.chain(pending[-1:], k, params, sampler)

    def step(self, pending: list[int]) -> Tensor:
        return self.head.correct(next(self._slots), pending[-1])

    def _logits_of_slots(self, pending: list[int], k: int) -> Iterator[Tensor]:
        yield from self.head.decoder.logits(self.forward(pending)[:k])[:, None]
