"""Run models that our own decoder does not cover with transformers: Gemma, GPT-2, Phi, OLMo, mixtures of experts …

It takes every causal language model that transformers has, if its cache keeps all tokens, so that a text can be rolled
back. Drafts are chains. No code of a checkpoint is run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..types import is_chain
from .checkpoint import brief, read_config, read_weights, Weights
from .config import library_config, quiet
from .device import configure_cuda

TRIAL = 6  # tokens of `_check_rollback`
# The largest error of its logits, as a share of their range. In low precision, rounding depends on the number of rows.
EXACT = 1e-3
ROUNDED = 0.1


class FullCache:
    """transformers' cache in the form in which every layer keeps all tokens."""

    def __init__(self, capacity: int) -> None:
        from transformers import DynamicCache

        self.capacity, self.length = capacity, 0
        # Without a config: otherwise layers with a window would drop older tokens.
        self.inner = DynamicCache()

    def keep(self, length: int, path: Sequence[int] = ()) -> None:
        """Keep the first `length` positions and those of `path` after them; `path` is a chain."""
        self.length = length + len(path)
        for layer in self.inner.layers:
            layer.keys, layer.values = (stored[:, :, : self.length] for stored in (layer.keys, layer.values))


class HuggingFaceModel:
    """A causal language model of transformers. It verifies chains only, and drafters cannot read its states."""

    def __init__(self, config: Any, weights: Weights, dtype: torch.dtype, device: str = "cpu") -> None:
        """Take a `config` from `config_of`, and `weights` under the Hub's names."""
        configure_cuda(device)
        self.model, self.dtype, self.device = build(config, weights, dtype, device), dtype, device
        self.stored = dtype
        self.kind: str = config.model_type
        self.source: Path | None = None
        self.vocabulary: int = len(self.model.get_output_embeddings().weight)
        self.context = context_of(config)
        self.width: int = config.hidden_size
        self.depth: int = config.num_hidden_layers
        self.parameters: int = self.model.num_parameters()
        self._takes = signature(type(self.model).forward).parameters
        self._cache = "cache" if "cache" in self._takes else "past_key_values"  # the name until transformers 5.24
        self._check_rollback()

    @classmethod
    def load(cls, folder: str | Path, dtype: torch.dtype | None = None, device: str = "cpu") -> HuggingFaceModel:
        """Read a folder in the Hub's layout (config.json, safetensors). ValueError with the reason."""
        folder = Path(folder)
        model = cls(config_of(read_config(folder)), read_weights(folder), dtype or torch.float32, device)
        model.source = folder
        return model

    def new_cache(self, capacity: int, taps: Sequence[int] = (), exit_layer: int = 0) -> FullCache:
        """Make a cache. `taps` and `exit_layer` are ignored: only our own decoder has them."""
        return FullCache(capacity)

    def forward(self, tokens: Sequence[int], cache: FullCache, parents: Sequence[int] = (), rows: int = 1) -> Tensor:
        """Append `tokens` to the cache; return logits of the last `rows` of them.  # [rows, V]"""
        count, start = len(tokens), cache.length
        if start + count > cache.capacity:
            raise ValueError(f"{start + count} tokens do not fit a cache of {cache.capacity}")
        if not is_chain(parents):
            raise ValueError(f"{self.kind} models check no trees; choose a drafter of chains")
        ids, places = torch.tensor([tokens, range(start, start + count)], device=self.device)[:, None]
        options = {"position_ids": places, "logits_to_keep": max(rows, 1), self._cache: cache.inner}
        options = {name: value for name, value in options.items() if name in self._takes}
        output = self.model(ids, use_cache=True, **options)
        cache.length = start + count
        logits: Tensor = output.logits[0, :, : self.vocabulary]
        return logits[len(logits) - rows :]

    def cut_vocabulary(self, count: int) -> None:
        """Return logits of the first `count` tokens only, from now on."""
        self.vocabulary = count

    @torch.inference_mode()
    def _check_rollback(self) -> None:
        """Compare a few tokens in one pass with the same tokens in pieces, after a roll-back of the cache.

        Raises ValueError if the logits differ: a config does not say whether a cache can be rolled back.
        """
        tokens = [i % self.vocabulary for i in range(1, 1 + TRIAL)]
        expected = self.forward(tokens, self.new_cache(TRIAL), rows=TRIAL).float()
        cache, (a, b, c, d, e, f) = self.new_cache(TRIAL), tokens
        rows = [self.forward([a, b], cache, rows=2), self.forward([c, f], cache, rows=2)[:1]]
        cache.keep(3)
        rows += [self.forward([d, e], cache, rows=2), self.forward([f], cache)]
        bound = float(expected.max() - expected.min()) * (EXACT if self.dtype == torch.float32 else ROUNDED)
        if not float((torch.cat(rows).float() - expected).abs().max()) <= bound:
            raise ValueError(f"{self.kind} models give other logits after a roll-back, so they cannot run here")


def config_of(data: Mapping[str, Any]) -> Any:
    """Return transformers' config of a model. Raises ValueError if it cannot run here, before its weights are read."""
    from transformers import DynamicCache, MODEL_FOR_CAUSAL_LM_MAPPING
    from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

    kind, config = data.get("model_type"), library_config(data)
    reads_text = type(config) in MODEL_FOR_CAUSAL_LM_MAPPING and not config.sub_configs
    if not reads_text or getattr(config, "max_position_embeddings", None) is None:
        raise ValueError(
            f"{kind} models write no text, read more than text, or do not say how many positions they read"
        )
    layers = DynamicCache(config=config).layers
    rolls_back = all(type(layer) in (DynamicLayer, DynamicSlidingWindowLayer) for layer in layers)
    if MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]._is_stateful or not rolls_back:
        raise ValueError(
            f"{kind} models keep a state that cannot be rolled back by length, so no rejected draft could be taken back"
        )
    return config


def context_of(config: Any) -> int:
    """Return how many positions a model reads, at most up to where its rotary frequencies begin to change."""
    most: int = config.max_position_embeddings
    rope = getattr(config, "rope_parameters", None) or {}
    kinds = [rope, *(value for value in rope.values() if isinstance(value, dict))]
    changing = (kind for kind in kinds if kind.get("rope_type") in ("longrope", "dynamic"))
    return min([most, *(kind.get("original_max_position_embeddings") or most for kind in changing)])


def build(config: Any, weights: Weights, dtype: torch.dtype, device: str) -> Any:
    """Make transformers' model with these weights. Raises ValueError if weights are missing or left over."""
    from transformers import MODEL_FOR_CAUSAL_LM_MAPPING

    with quiet():
        try:
            model, report = MODEL_FOR_CAUSAL_LM_MAPPING[type(config)].from_pretrained(
                None,
                config=config,
                state_dict=weights,
                dtype=dtype,
                output_loading_info=True,
                local_files_only=True,
            )
        except Exception as error:
            raise ValueError(f"transformers cannot make this {config.model_type} model: {brief(error)}") from error
    for what, names in (("lacks", report["missing_keys"]), ("holds", report["unexpected_keys"])):
        if names:
            raise ValueError(f"the checkpoint {what} {min(names)}, which its config.json contradicts")
    model.config.pad_token_id = None  # avoids a warning about texts with that token
    return model.to(device).eval().requires_grad_(False)
