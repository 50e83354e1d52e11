"""Use transformers for models that our own decoder does not support: Gemma, GPT-2, Phi, OLMo, mixtures of experts …

A causal language model of transformers can run if its cache can be cut to any length, to remove rejected tokens.
Drafts must be chains, not trees. Code that comes with a checkpoint is never run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..types import is_chain
from .checkpoint import read_config, read_weights, Weights
from .config import library_config, quiet
from .device import configure_cuda
from .files import brief

TRIAL = 6  # tokens that `_check_rollback` reads
# The largest error that `_check_rollback` accepts, as a share of the logits' range.
EXACT = 1e-3  # in float32
ROUNDED = 0.1  # in lower precision, where rounding depends on how many tokens a pass has


class FullCache:
    """Wraps a cache of transformers in which every layer keeps all tokens, even layers with a sliding window."""

    def __init__(self, capacity: int) -> None:
        from transformers import DynamicCache

        self.capacity, self.length = capacity, 0
        # No config is passed: with one, layers with a sliding window would drop older tokens.
        self.inner = DynamicCache()

    def keep(self, length: int, path: Sequence[int] = ()) -> None:
        """Keep the first `length + len(path)` positions. `path` must be a chain: 0, 1, 2, …"""
        self.length = length + len(path)
        for layer in self.inner.layers:
            layer.keys, layer.values = (tensor[:, :, : self.length] for tensor in (layer.keys, layer.values))


class HuggingFaceModel:
    """A causal language model of transformers. It verifies only chains, and drafters cannot read its hidden states."""

    chains_only = True

    def __init__(self, model: Any) -> None:
        """Take a causal language model of transformers. Raises ValueError if its cache cannot be rolled back."""
        config = model.config
        self.model, self.dtype, self.device = model, model.dtype, str(model.device)
        configure_cuda(self.device)
        self.stored = self.dtype
        self.kind: str = config.model_type
        self.source: Path | None = None
        self.vocabulary: int = len(self.model.get_output_embeddings().weight)
        self.context = context_of(config)
        self.width: int = config.hidden_size
        self.depth: int = config.num_hidden_layers
        self.parameters: int = self.model.num_parameters()
        self._arguments = signature(type(self.model).forward).parameters
        self._cache_name = "cache" if "cache" in self._arguments else "past_key_values"  # the latter before 5.24
        self._check_rollback()

    @classmethod
    def load(cls, folder: str | Path, dtype: torch.dtype | None = None, device: str = "cpu") -> HuggingFaceModel:
        """Load a folder in the Hub's layout (config.json, safetensors). Raises ValueError if it cannot be loaded."""
        folder = Path(folder)
        config = config_of(read_config(folder))
        model = cls(build(config, read_weights(folder), dtype or torch.float32, device))
        model.source = folder
        return model

    def new_cache(self, capacity: int, taps: Sequence[int] = (), exit_layer: int = 0) -> FullCache:
        """Make a cache. `taps` and `exit_layer` are ignored: only our own decoder has them."""
        return FullCache(capacity)

    def forward(self, tokens: Sequence[int], cache: FullCache, parents: Sequence[int] = (), rows: int = 1) -> Tensor:
        """Append `tokens` to the cache; return the logits of the last `rows` tokens.  # [rows, vocabulary]"""
        count, start = len(tokens), cache.length
        if start + count > cache.capacity:
            raise ValueError(f"{start + count} tokens do not fit a cache of {cache.capacity}")
        if not is_chain(parents):
            raise ValueError(f"{self.kind} models cannot verify trees; choose a drafter that drafts chains")
        ids, places = torch.tensor([tokens, range(start, start + count)], device=self.device)[:, None]
        options = {"position_ids": places, "logits_to_keep": max(rows, 1), self._cache_name: cache.inner}
        options = {name: value for name, value in options.items() if name in self._arguments}
        output = self.model(ids, use_cache=True, **options)
        cache.length = start + count
        logits: Tensor = output.logits[0, :, : self.vocabulary]
        return logits[len(logits) - rows :]

    def cut_vocabulary(self, count: int) -> None:
        """Make later passes return logits for only the first `count` tokens of the vocabulary."""
        self.vocabulary = count

    @torch.inference_mode()
    def _check_rollback(self) -> None:
        """Check that the cache can be rolled back, because a config does not always show this.

        Raises ValueError unless short passes with a roll-back between them give the logits of one long pass.
        """
        tokens = [i % self.vocabulary for i in range(1, 1 + TRIAL)]
        expected = self.forward(tokens, self.new_cache(TRIAL), rows=TRIAL).float()
        cache, (a, b, c, d, e, f) = self.new_cache(TRIAL), tokens
        rows = [self.forward([a, b], cache, rows=2), self.forward([c, f], cache, rows=2)[:1]]
        cache.keep(3)
        rows += [self.forward([d, e], cache, rows=2), self.forward([f], cache)]
        allowed_error = float(expected.max() - expected.min()) * (EXACT if self.dtype == torch.float32 else ROUNDED)
        if not float((torch.cat(rows).float() - expected).abs().max()) <= allowed_error:
            raise ValueError(f"{self.kind} models compute different logits after a roll-back, so they cannot run here")


def config_of(data: Mapping[str, Any]) -> Any:
    """Return a model's config from transformers. Raises ValueError, before weights are read, if it cannot run here."""
    return checked(library_config(data))


def checked(config: Any) -> Any:
    """Return a config of transformers. Raises ValueError if models of its type cannot run here."""
    from transformers import DynamicCache, MODEL_FOR_CAUSAL_LM_MAPPING
    from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

    kind = config.model_type
    reads_text = type(config) in MODEL_FOR_CAUSAL_LM_MAPPING and not config.sub_configs
    if not reads_text or getattr(config, "max_position_embeddings", None) is None:
        raise ValueError(
            f"{kind} models write no text, read more than text, or do not state how many positions they support"
        )
    layers = DynamicCache(config=config).layers
    rolls_back = all(type(layer) in (DynamicLayer, DynamicSlidingWindowLayer) for layer in layers)
    if MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]._is_stateful or not rolls_back:
        raise ValueError(
            f"{kind} models keep a state that cannot be rolled back by length, so rejected drafts could not be undone"
        )
    return config


def context_of(config: Any) -> int:
    """Return a model's context, cut where its rotary frequencies begin to change with the text's length."""
    limit: int = config.max_position_embeddings
    rope = getattr(config, "rope_parameters", None) or {}
    ropes = [rope, *(value for value in rope.values() if isinstance(value, dict))]
    changing = (each for each in ropes if each.get("rope_type") in ("longrope", "dynamic"))
    return min([limit, *(each.get("original_max_position_embeddings") or limit for each in changing)])


def build(config: Any, weights: Weights, dtype: torch.dtype, device: str) -> Any:
    """Build transformers' model with exactly these weights. Raises ValueError if that fails."""
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
            raise ValueError(f"transformers cannot build this {config.model_type} model: {brief(error)}") from error
    for verb, names in (("lacks", report["missing_keys"]), ("holds", report["unexpected_keys"])):
        if names:
            raise ValueError(f"the checkpoint {verb} {min(names)}, contrary to its config.json")
    model.config.pad_token_id = None  # avoids a warning about prompts that contain this token
    return model.to(device).eval().requires_grad_(False)
