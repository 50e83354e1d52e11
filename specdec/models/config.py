"""Read a Hub model's config.json for our own decoder, and refuse models that the decoder would compute wrongly.

transformers' config class reads most files first, and adds defaults for missing fields. Complete files of a Llama, such
as the embedded family's, are read without transformers.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .checkpoint import read_config
from .files import brief

FAMILIES = ("llama", "mistral", "qwen2", "qwen3")
COPIED = (
    "vocab_size hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads "
    "rms_norm_eps max_position_embeddings tie_word_embeddings"
).split()
COMPLETE = (*COPIED, "head_dim", "hidden_act", "attention_bias", "mlp_bias")  # fields that `is_complete` requires
SCALINGS = ("default", "linear", "yarn", "llama3")  # rotary scalings that do not depend on the length of the text
SLIDING = "sliding_attention"
FULL = "full_attention"


@dataclass(frozen=True)
class Config:
    """The fields that determine the computation. Those that the Hub also has keep its names."""

    model_type: str
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    rms_norm_eps: float
    max_position_embeddings: int
    tie_word_embeddings: bool
    rope: Mapping[str, Any]
    biases: tuple[str, ...] = ()  # attention projections that have a bias
    qk_norm: bool = False
    windows: Mapping[int, int] = field(default_factory=dict)  # layer -> size of its attention window
    exit_layers: tuple[int, ...] = ()  # layers that were trained for early exit, the best first

    @classmethod
    def load(cls, folder: Path) -> Config:
        return cls.parse(read_config(folder))

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> Config:
        """Parse a config.json. Raises ValueError for a model that our own decoder does not support."""
        kind = data.get("model_type")
        if kind not in FAMILIES:
            raise ValueError(f"{kind} models are not among {', '.join(FAMILIES)}")
        exits = tuple(data.get("exit_layers") or ())
        if not is_complete(data):
            config = library_config(data)
            config.standardize_rope_params()  # puts all rotary fields into `rope_parameters`
            data = config.to_dict()
        if data["hidden_act"] != "silu":
            raise ValueError(f"the activation {data['hidden_act']} is not supported")
        return cls(
            **{name: data[name] for name in COPIED},
            model_type=kind,
            head_dim=data.get("head_dim") or data["hidden_size"] // data["num_attention_heads"],
            rope=rotary(data),
            biases=biases(kind, data),
            qk_norm=kind == "qwen3",
            windows=sliding_windows(kind, data),
            exit_layers=exits,
        )

    def tensors(self, weights: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
        """Return the names and shapes of a checkpoint's tensors. A tied output matrix is listed if `weights` has it."""
        table = (self.vocab_size, self.hidden_size)
        shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": table, "model.norm.weight": table[1:]}
        if not self.tie_word_embeddings or "lm_head.weight" in weights:
            shapes["lm_head.weight"] = table
        layer, layers = self.layer_tensors(self.hidden_size).items(), range(self.num_hidden_layers)
        return shapes | {f"model.layers.{i}.{part}": shape for i in layers for part, shape in layer}

    def layer_tensors(self, inputs: int) -> dict[str, tuple[int, ...]]:
        """Return the names and shapes of one layer's tensors. Its attention reads `inputs` numbers for each token."""
        width, inner, head_dim = self.hidden_size, self.intermediate_size, self.head_dim
        queries, keys = head_dim * self.num_attention_heads, head_dim * self.num_key_value_heads
        outputs = {"q_proj": queries, "k_proj": keys, "v_proj": keys}
        return {
            **{f"self_attn.{part}.weight": (count, inputs) for part, count in outputs.items()},
            "self_attn.o_proj.weight": (width, queries),
            **{f"self_attn.{part}.bias": (outputs.get(part, width),) for part in self.biases},
            **{f"self_attn.{part}_norm.weight": (head_dim,) for part in "qk" if self.qk_norm},
            "input_layernorm.weight": (width,),
            "post_attention_layernorm.weight": (width,),
            "mlp.gate_proj.weight": (inner, width),
            "mlp.up_proj.weight": (inner, width),
            "mlp.down_proj.weight": (width, inner),
        }

    def rotary_frequencies(self) -> tuple[Tensor, float]:
        """Return the inverse frequencies [head_dim / 2], and the factor by which cos and sin are multiplied."""
        rope_type = self.rope["rope_type"]
        if rope_type == "default":
            steps = torch.arange(0, self.head_dim, 2, dtype=torch.float32)
            return 1.0 / self.rope["rope_theta"] ** (steps / self.head_dim), 1.0
        from transformers import LlamaConfig
        from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

        config = LlamaConfig(
            hidden_size=self.hidden_size,
            num_attention_heads=self.num_attention_heads,
            head_dim=self.head_dim,
            max_position_embeddings=self.max_position_embeddings,
            rope_parameters=dict(self.rope),
        )
        inverse, factor = ROPE_INIT_FUNCTIONS[rope_type](config, "cpu")
        return inverse, factor


def is_ours(config: Mapping[str, Any]) -> bool:
    """Return whether our own decoder, rather than transformers, reads a model with this config.json."""
    kind = config.get("model_type")
    return kind is None or kind in FAMILIES  # `Config.parse` raises the error for a missing type


def is_complete(data: Mapping[str, Any]) -> bool:
    """Return whether this is a Llama's or Qwen3's config.json with all fields, without rotary scaling and windows."""
    return (
        data.get("model_type") in ("llama", "qwen3")
        and all(data.get(name) is not None for name in COMPLETE)
        and (data.get("rope_parameters") or {}).keys() == {"rope_type", "rope_theta"}
        and not (data.get("rope_scaling") or data.get("partial_rotary_factor") or data.get("use_sliding_window"))
    )


def library_config(data: Mapping[str, Any]) -> Any:
    """Read a config.json with transformers' class for its model type. Code in model repositories is never run."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    try:
        with quiet():
            return CONFIG_MAPPING[data["model_type"]].from_dict(copy.deepcopy(dict(data)))
    except Exception as error:  # transformers' checks raise errors of many classes
        raise ValueError(f"transformers cannot read this config.json: {brief(error)}") from error


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the progress bars and warnings of transformers. Errors still arrive as exceptions."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def rotary(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of the rotary position embeddings: `rope_type` and the numbers for this type.

    Raises ValueError for a scaling that is not supported.
    """
    rope = {name: value for name, value in data["rope_parameters"].items() if name != "type" and value is not None}
    rope_type = rope.get("rope_type")
    if rope_type not in SCALINGS:
        raise ValueError(f"rotary scaling {rope_type} is not among {', '.join(SCALINGS)}")
    if rope.pop("partial_rotary_factor", 1.0) != 1.0:
        raise ValueError("partial_rotary_factor is not 1: rotating only a part of each head is not supported")
    return rope


def biases(kind: str, data: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the attention projections that have a bias."""
    qkv = ("q_proj", "k_proj", "v_proj")
    if kind in ("qwen2", "mistral"):  # fixed by the architecture, so not in config.json
        return qkv if kind == "qwen2" else ()
    return (*qkv, "o_proj") if data.get("attention_bias") else ()


def sliding_windows(kind: str, data: Mapping[str, Any]) -> dict[int, int]:
    """Return the window of each layer that has one: the number of positions that a token sees, including its own."""
    window = data.get("sliding_window")
    if kind == "llama" or not window:
        return {}
    if kind == "mistral":  # every layer has the window; `layer_types` is ignored
        return dict.fromkeys(range(data["num_hidden_layers"]), window)
    return {i: window for i, name in enumerate(data.get("layer_types") or ()) if name == SLIDING}
