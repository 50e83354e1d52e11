"""A Hub model's config.json, refused where we would compute it wrongly.

What a file leaves out has the default of transformers' class for its model type, here too: such a file is read
by that class first. Ours are complete, and load without importing transformers.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .checkpoint import brief, check_quantisation, read_config

FAMILIES = ("llama", "mistral", "qwen2", "qwen3", "seed_oss", "smollm3")
NEEDED = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads")  # no default would be right
COUNTS = (*NEEDED, "intermediate_size", "num_key_value_heads", "head_dim", "max_position_embeddings")
MOST = {"num_hidden_layers": 2**12, "max_position_embeddings": 2**21}  # larger values are mistakes
COMPLETE = (*COUNTS, "hidden_act", "rms_norm_eps", "tie_word_embeddings", "attention_bias", "mlp_bias")
SCALINGS = {  # kinds of rotary positions, and the numbers that a file must give with each
    "default": (),
    "linear": ("factor",),
    "yarn": ("factor",),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor"),
}
SLIDING, FULL = "sliding_attention", "full_attention"


@dataclass(frozen=True)
class Config:
    """The fields that shape the computation, under the Hub's names; older files are brought to the newer form."""

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
    biases: tuple[str, ...] = ()  # projections of attention that have one
    qk_norm: bool = False
    layers_without_rotary: frozenset[int] = frozenset()
    windows: Mapping[int, int] = field(default_factory=dict)  # layer -> positions it sees
    exit_layers: tuple[int, ...] = ()  # below which the output matrix was trained too, the best to draft from first

    @classmethod
    def load(cls, folder: Path) -> Config:
        return cls.read(read_config(folder))

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Config:
        """ValueError, with the reason, for a model that is not of the Llama family."""
        kind = data.get("model_type")
        if kind not in FAMILIES:
            raise ValueError(f"{brief(kind)} models are not among {', '.join(FAMILIES)}")
        check_quantisation(data)
        if lacking := [name for name in NEEDED if data.get(name) is None]:
            raise ValueError(f"config.json lacks {', '.join(lacking)}")
        for name in COUNTS:
            if data.get(name) is not None:
                whole(data, name)
        check_rotary(data.get("rope_scaling") or data.get("rope_parameters") or {})
        exits = data.get("exit_layers") or ()
        if not is_complete(data):
            data = completed(kind, data)
        if data["hidden_act"] != "silu":
            raise ValueError(f"the activation {brief(data['hidden_act'])} is not supported")
        if flag(data, "mlp_bias"):
            raise ValueError("biases in the MLP are not supported")
        layers, heads = whole(data, "num_hidden_layers"), whole(data, "num_attention_heads")
        kv_heads = whole(data, "num_key_value_heads")
        head_dim = whole(data, "head_dim") if data.get("head_dim") else whole(data, "hidden_size") // heads
        if heads % kv_heads:
            raise ValueError(f"{heads} heads cannot share {kv_heads} heads of keys and values")
        if head_dim % 2:
            raise ValueError(f"head_dim is {head_dim}; rotary positions turn pairs, so it would be even")
        return cls(
            model_type=kind,
            vocab_size=whole(data, "vocab_size"),
            hidden_size=whole(data, "hidden_size"),
            intermediate_size=whole(data, "intermediate_size"),
            num_hidden_layers=layers,
            num_attention_heads=heads,
            num_key_value_heads=kv_heads,
            head_dim=head_dim,
            rms_norm_eps=positive(data, "rms_norm_eps"),
            max_position_embeddings=whole(data, "max_position_embeddings"),
            tie_word_embeddings=flag(data, "tie_word_embeddings"),
            rope=rotary(data),
            biases=biases(kind, data),
            qk_norm=kind == "qwen3",
            layers_without_rotary=without_rotary(kind, data),
            windows=sliding_windows(kind, data, layers),
            exit_layers=exit_layers(exits, layers),
        )

    def rotary_frequencies(self) -> tuple[Tensor, float]:
        """Inverse frequencies [head_dim / 2], and the factor on cos and sin."""
        kind = self.rope["rope_type"]
        if kind == "default":
            steps = torch.arange(0, self.head_dim, 2, dtype=torch.float32)
            return 1.0 / self.rope["rope_theta"] ** (steps / self.head_dim), 1.0
        from transformers import LlamaConfig
        from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

        try:
            config = LlamaConfig(
                hidden_size=self.hidden_size, num_attention_heads=self.num_attention_heads, head_dim=self.head_dim,
                max_position_embeddings=self.max_position_embeddings, rope_parameters=dict(self.rope),
            )  # fmt: skip
            inverse, factor = ROPE_INIT_FUNCTIONS[kind](config, "cpu")
        except Exception as error:  # a number that is a string, a list: each fails in its own way
            raise ValueError(f"rotary scaling {kind} in config.json makes no sense: {brief(error)}") from error
        if not (bool(inverse.isfinite().all()) and math.isfinite(factor)):
            raise ValueError(f"rotary scaling {kind} in config.json gives frequencies that are not finite")
        return inverse, factor


def is_complete(data: Mapping[str, Any]) -> bool:
    """Whether a config.json leaves nothing to defaults, as every plain Llama's that transformers 5 wrote."""
    rope = data.get("rope_parameters")
    return (
        data.get("model_type") == "llama"
        and all(data.get(name) is not None for name in COMPLETE)
        and isinstance(rope, dict)
        and rope.keys() == {"rope_type", "rope_theta"}
        and not (data.get("rope_scaling") or data.get("partial_rotary_factor"))
    )


def completed(kind: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """`data` with the defaults of transformers' class for that type. No code of a repository is run."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    try:
        config = CONFIG_MAPPING[kind].from_dict(copy.deepcopy(dict(data)))
        config.standardize_rope_params()  # as its models do again: by then it has read what stands outside
        full: dict[str, Any] = config.to_dict()
    except Exception as error:  # its checks raise what they like
        raise ValueError(f"config.json is none that transformers reads: {brief(error)}") from error
    return full


def whole(data: Mapping[str, Any], name: str) -> int:
    """A count, from 1 on."""
    value, most = data.get(name), MOST.get(name, 2**24)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise ValueError(f"{name} in config.json is {brief(repr(value))}; it would be a whole number from 1 to {most}")
    return value


def positive(data: Mapping[str, Any], name: str) -> float:
    value = data.get(name)
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 < value < math.inf:
        raise ValueError(f"{name} in config.json is {brief(repr(value))}; it would be a number above 0")
    return value


def flag(data: Mapping[str, Any], name: str) -> bool:
    value = data.get(name, False)
    if not isinstance(value, bool):
        raise ValueError(f"{name} in config.json is {brief(repr(value))}; it would be true or false")
    return value


def check_rotary(said: Any) -> None:
    """ValueError for rotary positions that we would turn otherwise than they were trained."""
    if not isinstance(said, dict):
        raise ValueError(f"rope_parameters in config.json is {brief(repr(said))}; it would be an object")
    kind = said.get("rope_type", said.get("type", "default"))
    if kind in ("dynamic", "longrope"):
        raise ValueError(f"rotary scaling {kind} depends on the length of the text")
    if kind not in tuple(SCALINGS):
        raise ValueError(f"rotary scaling {brief(repr(kind))} is not among {', '.join(SCALINGS)}")
    for name in SCALINGS[kind]:
        if said.get(name) is None:
            raise ValueError(f"rotary scaling {kind} in config.json lacks {name}")
        positive(said, name)
    for name, value in said.items():
        if isinstance(value, (str, list, dict)) and name not in ("rope_type", "type"):
            raise ValueError(
                f"{brief(name)} of rotary scaling {kind} in config.json is {brief(repr(value))}; it would be a number"
            )


def rotary(data: Mapping[str, Any]) -> dict[str, Any]:
    """How positions turn queries and keys: `rope_type` and its numbers, of a complete config."""
    said = data["rope_parameters"]
    check_rotary(said)
    rope = {name: value for name, value in said.items() if name != "type" and value is not None}
    if rope.pop("partial_rotary_factor", 1.0) != 1.0:
        raise ValueError("partial_rotary_factor is not 1: turning only a part of each head is not supported")
    for name in {"rope_theta", "original_max_position_embeddings"} & {"rope_theta", *rope}:
        positive(rope, name)
    return rope


def biases(kind: str, data: Mapping[str, Any]) -> tuple[str, ...]:
    inner: tuple[str, ...] = ("q_proj", "k_proj", "v_proj")
    if kind in ("qwen2", "mistral"):  # by their architecture
        return inner if kind == "qwen2" else ()
    outer = flag(data, "attention_out_bias" if kind == "seed_oss" else "attention_bias")
    return (*(inner if flag(data, "attention_bias") else ()), *(("o_proj",) if outer else ()))


def without_rotary(kind: str, data: Mapping[str, Any]) -> frozenset[int]:
    if kind != "smollm3":
        return frozenset()
    turned = data["no_rope_layers"]  # 1 where positions turn
    if not isinstance(turned, list) or len(turned) < data["num_hidden_layers"]:
        raise ValueError(f"no_rope_layers in config.json is {brief(repr(turned))}; it would have one entry a layer")
    return frozenset(i for i, turns in enumerate(turned) if not turns)


def sliding_windows(kind: str, data: Mapping[str, Any], layers: int) -> dict[int, int]:
    """layer -> how many positions it sees, its own included."""
    kinds = data.get("layer_types")
    if kind == "llama":
        return {}
    if kind == "mistral":
        if data.get("sliding_window") is None:
            return {}
        if kinds and set(kinds) != {SLIDING}:
            raise ValueError(
                "layer_types has no effect on a mistral model; remove it or sliding_window from config.json"
            )
        return dict.fromkeys(range(layers), whole(data, "sliding_window"))
    if others := set(kinds or ()) - {SLIDING, FULL}:
        raise ValueError(f"layer_types in config.json names {brief(min(others))}, which is not supported")
    return {i: whole(data, "sliding_window") for i, name in enumerate(kinds or ()) if name == SLIDING}


def exit_layers(said: object, layers: int) -> tuple[int, ...]:
    if not isinstance(said, Sequence) or not all(isinstance(layer, int) for layer in said):
        raise ValueError(f"exit_layers in config.json is {brief(repr(said))}; it would be a list of layers")
    return tuple(layer for layer in said if 0 < layer < layers)
