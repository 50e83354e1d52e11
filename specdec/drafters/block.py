"""Draft a block of tokens in one pass: block diffusion in a single step, as in DFlash (Chen et al. 2026, 2602.06036).

A block begins with the text's last token, and a mask token stands in all other slots. A few layers denoise all slots at
once. The slots attend to each other and to the text, whose keys and values come from the target's states. A draft of
any length costs one pass, but no slot depends on the tokens of other slots. DSpark (arXiv 2607.05147) corrects this by
a low-rank table [V, V]: the table's row for the token before a slot is added to the slot's logits. Tokens are drawn
slot by slot. Tensors and config.json are those of deepseek-ai/DeepSpec, z-lab/dflash and vllm-project/speculators.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ..models.base import Target
from ..models.cache import StaticCache
from ..models.checkpoint import check_tensors, section
from ..models.config import Config
from ..models.matrix import linear, Matrix
from ..models.reduced import draft_vocabulary, MAP
from ..models.transformer import apply_rope, Transformer
from ..models.view import TargetView
from ..sampling import Sampler
from ..types import Proposal, SamplingParams
from .base import checked_taps, HeadChainDrafter, Steps

W1 = "markov_head.markov_w1.weight"
W2 = "markov_head.markov_w2.weight"
COPIES = ("embed_tokens.weight", "lm_head.weight")  # without them, the target's own are used
IGNORED = ("confidence_head.", "t2d", "verifier_")  # copies of the target's, and what only decides how many to check


@dataclass(frozen=True)
class BlockLayout:
    """How a block drafter is to be computed, as its config.json says."""

    config: Config
    taps: tuple[int, ...]  # the layers of the target whose inputs are fused
    size: int  # tokens of a block, the text's last one included
    mask: int  # the token that stands for those to be drafted
    anchored: bool  # whether the first slot drafts, too. DFlash leaves it out, DSpark does not

    @classmethod
    def parse(cls, data: Mapping[str, Any], depth: int) -> BlockLayout:
        """Read the config.json of any publisher, for a target of `depth` layers. Raises ValueError if it cannot be run.

        z-lab and SpecForge nest the drafter's keys, `speculators` nests those of its layers. Listed layers are those
        whose outputs are read, but for `speculators` those whose inputs are read.
        """
        facts = {**data, **section(data, "dflash_config")}
        kind = " ".join(map(str, (facts.get("speculators_model_type"), facts.get("architectures")))).lower()
        listed = facts.get("aux_hidden_state_layer_ids"), facts.get("target_layer_ids")
        needed: dict[str, Any] = {"block_size": facts.get("block_size"), "mask_token_id": facts.get("mask_token_id")}
        needed["target_layer_ids"] = listed[0] or listed[1]
        if missing := [name for name, value in needed.items() if value is None]:
            raise ValueError(f"config.json lacks {missing[0]}, without which the drafter cannot be computed")
        if facts.get("markov_rank") and (head := facts.get("markov_head_type", "vanilla")) != "vanilla":
            raise ValueError(f"its Markov head is of the type {head}; only vanilla is supported")
        config = Config.parse({**data, **section(data, "transformer_layer_config"), "tie_word_embeddings": False})
        if config.windows:
            raise ValueError("its layers have sliding windows, which is not supported")
        return cls(
            config,
            checked_taps(needed["target_layer_ids"], depth, after=not listed[0]),
            needed["block_size"],
            needed["mask_token_id"],
            bool(facts.get("sample_from_anchor", "dspark" in kind)),
        )


class BlockHead:
    """Denoises all slots at once, and corrects each slot's logits by the token before the slot, if it has a table."""

    def __init__(
        self, layout: BlockLayout, weights: Mapping[str, Tensor], target: Target, stored: torch.dtype | None = None
    ) -> None:
        """Round matrices to `stored`, except lookup tables. Raises ValueError if `weights` do not fit `target`."""
        weights = {name: tensor for name, tensor in weights.items() if not name.startswith(IGNORED)}
        self.draft_vocabulary = draft_vocabulary(weights, target)
        outputs = self.draft_vocabulary.count
        if MAP not in weights:  # further rows are padding
            weights |= {name: weights[name][:outputs] for name in (COPIES[1], W2) if name in weights}
        config, width = replace(layout.config, qk_norm=True), target.width
        check_tensors(
            {name: weights[name] for name in weights if name not in (MAP, COPIES[0], W1)},
            head_tensors(config, weights, width, len(layout.taps), outputs),
        )
        self.taps, self.mask = layout.taps, layout.mask
        self.first = 0 if layout.anchored else 1  # the first slot that drafts
        self.slots, self.size = layout.size - self.first, layout.size
        embedding = weights.get(COPIES[0], target.embedding)
        if self.mask >= len(embedding):
            raise ValueError(f"mask_token_id is {self.mask}, but only {len(embedding)} tokens have an embedding")
        # Slots can lie beyond the target's context.
        config = replace(config, vocab_size=outputs, max_position_embeddings=target.context + self.size)
        tensors = {f"model.{name}": weight for name, weight in weights.items()}
        tensors["model.embed_tokens.weight"] = embedding
        tensors["lm_head.weight"] = weights.get(COPIES[1], torch.zeros(1, width))
        self.decoder = Transformer(config, tensors, target.dtype, target.device, stored)
        self.output = None if COPIES[1] in weights else target
        folding, norm = self.decoder.folding, weights["hidden_norm.weight"].float()
        self.fc = folding.matrix(weights["fc.weight"].float())
        self.context = [folding.keys_and_values(tensors, i, norm) for i in range(config.num_hidden_layers)]
        self.table: tuple[Tensor, Matrix] | None = None  # [V, rank], [rank, V of the draft]
        if W1 in weights:
            self.table = weights[W1].to(target.device, target.dtype), folding.matrix(weights[W2].float())
        self.parameters = sum(tensor.numel() for name, tensor in weights.items() if name != MAP)

    def new_cache(self, capacity: int) -> StaticCache:
        return self.decoder.new_cache(capacity + self.size)

    def fuse(self, states: Mapping[int, Tensor], places: slice) -> Tensor:
        """Compute the features of the tokens at `places` from the target's states.  # -> [n, hidden]"""
        return linear(torch.cat([states[tap][places] for tap in self.taps], -1), self.fc)

    def remember(self, features: Tensor, cache: StaticCache) -> None:
        """Append the text's keys and values to the cache; each layer computes them from `features`.  # [n, hidden]"""
        decoder, start, end = self.decoder, cache.length, cache.length + len(features)
        normed = decoder.rms_normalise(features)
        for i, (matrix, layer) in enumerate(zip(self.context, decoder.layers, strict=True)):
            bias = None if layer.qkv_bias is None else layer.qkv_bias[decoder.heads * decoder.head_dim :]
            entries = linear(normed, matrix, bias).view(len(features), -1, decoder.head_dim).transpose(0, 1)
            keys = entries[: decoder.kv_heads]
            if layer.head_norm is not None:
                keys.copy_(decoder.head_normalise(keys) * layer.head_norm[decoder.heads :])
            apply_rope(keys, decoder.angles[start:end])
            cache.data[i, :, start:end] = entries
        cache.keep(end)

    def forward(self, features: Tensor, tokens: Sequence[int], cache: StaticCache) -> Tensor:
        """Append features of the text to the cache; return the block's states.  # [n, hidden] -> [slots, hidden]

        The block begins at the last of `tokens`, which has no features yet.
        """
        self.remember(features, cache)
        block = [tokens[-1], *[self.mask] * (self.size - 1)]
        return self.decoder.run_layers(block, cache, cache.length, causal=False)[self.first :]

    def logits(self, states: Tensor) -> Tensor:
        """Return the logits of slots, uncorrected.  # [n, hidden] -> [n, V of the draft]"""
        return self.decoder.logits(states) if self.output is None else self.output.project(self.decoder.normed(states))

    def correct(self, logits: Tensor, token: int) -> Tensor:
        """Correct a slot's logits by the `token` before the slot.  # [1, V of the draft] -> [1, V of the draft]"""
        if self.table is None:
            return logits
        left, right = self.table
        return linear(left[token][None], right, logits)


def head_tensors(
    config: Config, weights: Mapping[str, Tensor], width: int, taps: int, outputs: int
) -> dict[str, tuple[int, ...]]:
    """Return names and shapes of a drafter's tensors, but for its lookup tables. `weights` say what is optional."""
    shapes: dict[str, tuple[int, ...]] = {"fc.weight": (width, taps * width)}
    shapes |= {f"{name}.weight": (width,) for name in ("hidden_norm", "norm")}
    layers = range(config.num_hidden_layers)
    shapes |= {f"layers.{i}.{name}": shape for i in layers for name, shape in config.layer_tensors(width).items()}
    shapes |= {COPIES[1]: (outputs, width)} if COPIES[1] in weights else {}
    return shapes | ({W2: (outputs, weights[W1].shape[-1])} if W1 in weights else {})


class BlockDrafter(HeadChainDrafter[BlockHead]):
    """Drafts at most one token for each slot. One pass serves all slots."""

    name = "block"

    def __init__(self, view: TargetView, head: BlockHead, capacity: int) -> None:
        super().__init__(view, head, capacity)
        self.deepest = head.slots

    def draft(self, features: Tensor, pending: list[int], k: int, params: SamplingParams, sampler: Sampler) -> Proposal:
        return super().draft(features, pending, min(k, self.head.slots), params, sampler)

    def fill_cache(self, features: Tensor, pending: list[int]) -> None:
        self.head.remember(features, self._cache)
        self._from_target = self._cache.length

    def steps(self, features: Tensor, pending: list[int], k: int) -> Steps:
        token = pending[-1]
        for logits in self.head.logits(self.forward(features, pending)[:k]).split(1):
            token = yield self.head.correct(logits, token)
