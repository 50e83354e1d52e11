"""A family as vLLM reads it: a folder a model in the Hub's layout, the tokenizer beside the weights.

Heads take the names of vLLM's own classes (`vllm/model_executor/models/llama_eagle3.py` and `medusa.py`, read in
0.32, November 2026). transformers reads the target and the draft models, too.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from ..models.checkpoint import naming, section, SINGLE, Weights
from .source import filling, read, Source, TARGET


def export(family: str, out: Path) -> list[Path]:
    """Write a family of that name or folder below `out`; the folders written. ValueError for one that cannot be."""
    source = Source.of(family)
    width, vocabulary = shape_of_target(source)
    written = []
    for name, folder in (source.models | source.heads).items():
        config, weights = read(folder)
        with naming(folder):
            if name == "eagle3":
                config = eagle3_config(config)
            elif name == "medusa":
                config, weights = medusa_config(config, weights, width, vocabulary), medusa_names(weights)
        with filling(out / name) as place:
            save_file({key: tensor.contiguous() for key, tensor in weights.items()}, place / SINGLE, {"format": "pt"})
            (place / SINGLE).chmod(0o644)  # the library leaves it to its owner alone
            (place / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
            beside = [*source.tokenizer.iterdir()] if name in source.models else []
            for file in [*beside, folder / "generation_config.json"]:
                if file.is_file():
                    shutil.copyfile(file, place / file.name)
        written.append(out / name)
    return written


def shape_of_target(source: Source) -> tuple[int, int]:
    """Its width and vocabulary, which Medusa's config must say anew."""
    config, _ = read(source.models[TARGET])
    return config["hidden_size"], config["vocab_size"]


def eagle3_config(config: dict[str, Any]) -> dict[str, Any]:
    """With the name of vLLM's class; the layers to read stand where older releases look for them, too."""
    taps = section(config, "eagle_config").get("eagle_aux_hidden_state_layer_ids")
    said = {"eagle_aux_hidden_state_layer_ids": taps} if taps else {}
    return config | {"architectures": ["LlamaForCausalLMEagle3"]} | said


def medusa_config(config: dict[str, Any], weights: Weights, width: int, vocabulary: int) -> dict[str, Any]:
    """`weights` under the authors' names tell how many heads there are, and how many blocks each has."""
    heads = sum(re.fullmatch(r"\d+\.0\.linear\.weight", name) is not None for name in weights)
    blocks = sum(re.fullmatch(r"0\.\d+\.linear\.weight", name) is not None for name in weights)
    if f"0.{blocks}.weight" not in weights:
        raise ValueError("these Medusa heads share the target's output matrix, which vLLM does not read")
    return {
        "model_type": "medusa", "architectures": ["MedusaModel"], "hidden_size": width, "vocab_size": vocabulary,
        "num_heads": heads, "num_hidden_layers": blocks, "medusa_fc_bias": True, "dtype": config["dtype"],
    }  # fmt: skip


def medusa_names(weights: Weights) -> Weights:
    """The authors' names as vLLM's: 1.0.linear.bias -> blocks.1.layers.0.bias, 1.2.weight -> lm_heads.1.weight."""
    blocks = re.compile(r"(\d+)\.(\d+)\.linear\.(\w+)")
    outputs = re.compile(r"(\d+)\.\d+\.weight")
    return {
        outputs.sub(r"lm_heads.\1.weight", blocks.sub(r"blocks.\1.layers.\2.\3", name)): tensor
        for name, tensor in weights.items()
    }
