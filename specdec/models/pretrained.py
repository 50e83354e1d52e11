"""Models as transformers makes them, from a config and tensors that were read here. No code of a checkpoint is run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from .checkpoint import brief, check_quantisation, Weights
from .config import as_library, FAMILIES, NEEDED, quiet


def is_ours(config: Mapping[str, Any]) -> bool:
    """Whether our own decoder is to read it, or to say what is wrong with it."""
    kind = config.get("model_type")
    return not isinstance(kind, str) or kind in FAMILIES


def config_of(data: Mapping[str, Any]) -> Any:
    """The same, of a model that can run here. ValueError for others, before any of their weights is read."""
    from transformers import DynamicCache, MODEL_FOR_CAUSAL_LM_MAPPING
    from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    kind = str(data.get("model_type"))
    check_quantisation(data)
    if "auto_map" in data:
        raise ValueError("config.json names code of its own (auto_map), and none is run here; use a checkpoint without")
    if kind not in CONFIG_MAPPING or CONFIG_MAPPING[kind] not in MODEL_FOR_CAUSAL_LM_MAPPING:
        raise ValueError(f"{brief(kind)} models are not among those that transformers writes texts with")
    kind_of_config = CONFIG_MAPPING[kind]
    if MODEL_FOR_CAUSAL_LM_MAPPING[kind_of_config]._is_stateful:
        raise ValueError(unfit(kind))
    names = kind_of_config.attribute_map
    if lacking := [n for n in NEEDED if data.get(n) is None and data.get(names.get(n, n)) is None]:
        raise ValueError(f"config.json lacks {', '.join(names.get(name, name) for name in lacking)}")
    config = as_library(data)
    if config.sub_configs:
        raise ValueError(f"{kind} models read more than text; a checkpoint of the text model alone would fit")
    plain = DynamicLayer, DynamicSlidingWindowLayer
    if any(type(layer) not in plain for layer in DynamicCache(config=config).layers):
        raise ValueError(unfit(kind))
    context_of(config)
    return config


def unfit(kind: str) -> str:
    return f"{kind} models keep a state that cannot be rolled back by length, so no rejected draft could be taken back"


def context_of(config: Any) -> int:
    """The positions that a model reads. Rotary ones that change with the length are read up to where they change."""
    most: int | None = getattr(config, "max_position_embeddings", None)
    if most is None:
        raise ValueError(f"config.json of this {config.model_type} model does not say how many positions it reads")
    rope = getattr(config, "rope_parameters", None) or {}
    kinds = [rope, *(of_layers for of_layers in rope.values() if isinstance(of_layers, dict))]
    changing = (kind for kind in kinds if kind.get("rope_type") in ("longrope", "dynamic"))
    return min([most, *(kind.get("original_max_position_embeddings") or most for kind in changing)])


def built(config: Any, weights: Weights, dtype: torch.dtype, device: str) -> Any:
    """transformers' model with exactly these weights. ValueError where they are not all, or more, than it has."""
    from transformers import MODEL_FOR_CAUSAL_LM_MAPPING

    with quiet():
        try:
            model, report = MODEL_FOR_CAUSAL_LM_MAPPING[type(config)].from_pretrained(
                None,
                config=config,
                state_dict=dict(weights),
                dtype=dtype,
                device_map=device_map(device),
                output_loading_info=True,
                local_files_only=True,
            )
        except Exception as error:
            raise ValueError(f"transformers cannot make this {config.model_type} model: {brief(error)}") from error
    for what, names in (("lacks", report["missing_keys"]), ("holds", report["unexpected_keys"])):
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            raise ValueError(f"the checkpoint {what} {min(names)}{more}; by its config.json it would be otherwise")
    model.config.pad_token_id = None  # else it warns of texts that hold that token
    model = model if device_map(device) else model.to(device)
    return model.eval().requires_grad_(False)


def device_map(device: str) -> str | None:
    """Over all GPUs where there are several, and accelerate to hand states from one to the next."""
    from transformers.utils import is_accelerate_available

    return "auto" if device == "cuda" and torch.cuda.device_count() > 1 and is_accelerate_available() else None
