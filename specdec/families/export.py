"""Write a family as folders that other engines read, in the Hub's layout: its models, and the heads in `HEADS`.

transformers and vLLM read the folders directly; llama.cpp's convert_hf_to_gguf.py converts them (docs/serving.md).
Heads have the tensor names of vLLM 0.32 (`llama_eagle3.py` and `medusa.py` in `vllm/model_executor/models`).
"""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from ..models.checkpoint import read_weights, section, Weights
from ..models.files import prefix_errors, read_json
from .zoo import draft_folders, folder_of

TARGET = "target"
HEADS = ("medusa", "eagle3")


def export(family: str, out: Path) -> list[Path]:
    """Write each model of a family, and each head in `HEADS`, into a folder of its own below `out`; return the folders.

    `family` is a name ("embedded") or a folder with target/ and tokenizer/. 8-bit weights become float32 without loss.
    Raises ValueError for other families, existing folders, and Medusa heads that share the target's output matrix.
    """
    folder = folder_of(family)
    tokenizer = folder / "tokenizer"
    if not (folder / TARGET).is_dir() or not tokenizer.is_dir():
        raise ValueError(f"{family} is no family: name 'embedded', or a folder with target/ and tokenizer/")
    models = {TARGET: folder / TARGET}
    models |= {name.replace(":", "_"): path for name, path in draft_folders(folder).items()}
    heads = {name: folder / name for name in HEADS if (folder / name).is_dir()}
    if existing := [out / name for name in (*models, *heads) if (out / name).exists()]:
        raise ValueError(f"{existing[0]} is there already; name another folder with --out, or remove it")
    target = read_json(folder / TARGET / "config.json")
    for name, source in (heads | models).items():  # Medusa first: if it raises ValueError, nothing is written
        with prefix_errors(source):
            config, weights = unpacked(source)
            if name == "eagle3":
                config = eagle3_config(config)
            elif name == "medusa":
                config, weights = medusa_config(config, weights, target), medusa_names(weights)
        (out / name).mkdir(parents=True)
        for file in [*(tokenizer.iterdir() if name in models else ()), source / "generation_config.json"]:
            if file.is_file():
                shutil.copyfile(file, out / name / file.name)
        (out / name / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
        file = out / name / "model.safetensors"
        save_file({key: tensor.contiguous() for key, tensor in weights.items()}, file, {"format": "pt"})
        file.chmod(0o644)  # by default only its owner could read it
    return [out / name for name in (*models, *heads)]


def unpacked(folder: Path) -> tuple[dict[str, Any], Weights]:
    """Read config.json and the tensors. Packed tensors become float32; if dtypes then differ, all become float32."""
    weights = read_weights(folder)
    dtypes = {tensor.dtype for tensor in weights.values() if tensor.is_floating_point()}
    dtype = dtypes.pop() if len(dtypes) == 1 else torch.float32
    weights = {name: tensor.to(dtype) if tensor.is_floating_point() else tensor for name, tensor in weights.items()}
    return read_json(folder / "config.json") | {"dtype": str(dtype).removeprefix("torch.")}, weights


def eagle3_config(config: dict[str, Any]) -> dict[str, Any]:
    """Add the name of vLLM's class, and copy the list of tapped layers to the top level for old versions of vLLM."""
    key = "eagle_aux_hidden_state_layer_ids"
    layers = section(config, "eagle_config").get(key)
    return config | {"architectures": ["LlamaForCausalLMEagle3"]} | ({key: layers} if layers else {})


def medusa_config(config: dict[str, Any], weights: Weights, target: dict[str, Any]) -> dict[str, Any]:
    heads = sum(re.fullmatch(r"\d+\.0\.linear\.weight", name) is not None for name in weights)
    blocks = sum(re.fullmatch(r"0\.\d+\.linear\.weight", name) is not None for name in weights)
    if f"0.{blocks}.weight" not in weights:
        raise ValueError("these Medusa heads share the target's output matrix, which vLLM does not support")
    shape = {name: target[name] for name in ("hidden_size", "vocab_size")}
    counts = {"num_heads": heads, "num_hidden_layers": blocks, "medusa_fc_bias": True}
    return {"model_type": "medusa", "architectures": ["MedusaModel"], "dtype": config["dtype"]} | shape | counts


def medusa_names(weights: Weights) -> Weights:
    """Rename the tensors for vLLM: block b of head h becomes blocks.h.layers.b, its output matrix lm_heads.h."""
    blocks, outputs = re.compile(r"(\d+)\.(\d+)\.linear\.(\w+)"), re.compile(r"(\d+)\.\d+\.weight")
    return {
        outputs.sub(r"lm_heads.\1.weight", blocks.sub(r"blocks.\1.layers.\2.\3", name)): tensor
        for name, tensor in weights.items()
    }
