"""A Hub model's config.json, read without the library that wrote it, and refused where we would compute it wrongly."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

FAMILIES = ("llama", "mistral", "qwen2", "qwen3", "smollm3")


@dataclass(frozen=True)
class Config:
    """The fields that shape the computation, under the Hub's names; older files are brought to the newer form."""

    model_type: str
    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    rms_norm_eps: float
    max_position_embeddings: int
    tie_word_embeddings: bool
    rope: Mapping[str, Any]
    layers_without_rotary: frozenset[int] = frozenset()
    windows: Mapping[int, int] = field(default_factory=dict)  # layer -> positions it sees
    exit_layers: tuple[int, ...] = ()  # below which the output matrix was trained too, the best to draft from first

    @classmethod
    def load(cls, folder: Path) -> Config:
        path = folder / "config.json"
        if not path.exists():
            raise ValueError(f"{folder} holds no config.json")
        return cls.read(json.loads(path.read_text(encoding="utf-8")))

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Config:
        """ValueError, with the reason, for a model that is not of the Llama family."""
        kind = data.get("model_type")
        if kind not in FAMILIES:
            raise ValueError(f"{kind} models are not among {', '.join(FAMILIES)}")
        if data.get("hidden_act", "silu") != "silu":
            raise ValueError(f"the activation {data['hidden_act']} is not supported")
        if data.get("mlp_bias"):
            raise ValueError("biases in the MLP are not supported")
        layers, heads = data["num_hidden_layers"], data["num_attention_heads"]
        rope = dict(data.get("rope_parameters") or data.get("rope_scaling") or {})
        rope.setdefault("rope_type", rope.pop("type", "default"))
        rope.setdefault("rope_theta", data.get("rope_theta", 10000.0))
        if rope["rope_type"] in ("dynamic", "longrope"):
            raise ValueError(f"rotary scaling {rope['rope_type']} depends on the length of the text")
        keeps_rotary = data.get("no_rope_layers") or [1] * layers
        return cls(
            model_type=kind,
            vocab_size=data["vocab_size"],
            hidden_size=data["hidden_size"],
            num_hidden_layers=layers,
            num_attention_heads=heads,
            num_key_value_heads=data.get("num_key_value_heads") or heads,
            head_dim=data.get("head_dim") or data["hidden_size"] // heads,
            rms_norm_eps=data.get("rms_norm_eps", 1e-6),
            max_position_embeddings=data.get("max_position_embeddings", 2048),
            tie_word_embeddings=bool(data.get("tie_word_embeddings", False)),
            rope=rope,
            layers_without_rotary=frozenset(i for i, keeps in enumerate(keeps_rotary) if not keeps),
            windows=sliding_windows(data, layers),
            exit_layers=tuple(i for i in data.get("exit_layers") or () if 0 < i < layers),
        )

    def rotary_frequencies(self) -> tuple[Tensor, float]:
        """Inverse frequencies [head_dim / 2], and the factor on cos and sin."""
        kind = self.rope["rope_type"]
        if kind == "default":
            steps = torch.arange(0, self.head_dim, 2, dtype=torch.float32)
            return 1.0 / self.rope["rope_theta"] ** (steps / self.head_dim), 1.0
        from transformers import LlamaConfig
        from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

        config = LlamaConfig(
            hidden_size=self.hidden_size, num_attention_heads=self.num_attention_heads, head_dim=self.head_dim,
            max_position_embeddings=self.max_position_embeddings, rope_parameters=dict(self.rope),
        )  # fmt: skip
        return ROPE_INIT_FUNCTIONS[kind](config, "cpu")


def sliding_windows(data: Mapping[str, Any], layers: int) -> dict[int, int]:
    window = data.get("sliding_window")
    if not window or data.get("use_sliding_window") is False:
        return {}
    kinds = data.get("layer_types")
    if kinds:
        return {i: window for i, kind in enumerate(kinds) if kind == "sliding_attention"}
    if data["model_type"] == "mistral":
        return dict.fromkeys(range(layers), window)
    first = data.get("max_window_layers", layers)  # Qwen: the lower layers see everything
    return {i: window for i in range(layers) if i >= first}
