"""Write a target and its drafters as other engines read them: folders in the Hub's layout, or the browser's files.

transformers and vLLM read the folders directly; llama.cpp's convert_hf_to_gguf.py converts them (docs/serving.md).
Heads have the tensor names of vLLM 0.32 (`llama_eagle3.py` and `medusa.py` in `vllm/model_executor/models`).
"""

import json
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor
from torch.nn.functional import pad

from ..messages import Refused
from ..methods import EMBEDDED
from ..models.browser import weights as browser_weights
from ..models.checkpoint import open_weights, read_config, Weights
from ..models.files import SINGLE
from ..models.reduced import MAP, READS, WRITES
from ..paths import FAMILY, write_whole
from . import chat, hub, presets
from .published import eagle3_taps, end_tokens, head_format, load_tokenizer
from .zoo import draft_folders, folders_of

TARGET = "target"
HEADS = ("medusa", "eagle3")  # folders of a family that are written
TAPS = "eagle_aux_hidden_state_layer_ids"
SPARE = 8  # further numbers in the states of a draft that is made whole; one of them is used
NEVER = -50_000.0  # its row of a token that is never drafted; float16 has no number far below


def export(target: str, out: Path, drafts: Sequence[str] = ()) -> list[Path]:
    """Write each model, and each head in `HEADS`, into a folder of its own below `out`; return the folders.

    `target` is "embedded", a family's folder, or what `zoo.load_pair` takes. 8-bit weights and those of a GGUF file
    become float32 without loss. Raises Refused for existing folders, and drafters in other formats.
    """
    folder = hub.find(target)
    place, tokenizer = folders_of(folder)
    places = {name: folder / name for name in HEADS if (folder / name).is_dir()}
    places |= {Path(draft).name: hub.find(draft) for draft in drafts or presets.drafters_of(target)}
    places |= {name.replace(":", "_"): path for name, path in draft_folders(folder).items()} | {TARGET: place}
    if existing := [out / name for name in places if (out / name).exists()]:
        raise Refused(f"{existing[0]} is there already; name another folder with --out, or remove it")
    with hub.reading(place):
        of_target, stored = read_config(place), open_weights(place)
    for name, source in places.items():  # heads first: if one raises Refused, no model is written
        with hub.reading(source):
            config, weights = unpacked(source)
            form = "" if source == place else head_format(config, weights)
            if form == "eagle3":
                config, weights = eagle3(config, weights, of_target["num_hidden_layers"], stored)
            elif form == "medusa":
                config, weights = medusa_config(config, weights, of_target), medusa_names(weights)
            elif form == "reduced":
                config, weights = whole(config, weights, stored)
            elif form:
                raise Refused(f"there is no other layout for this format, {form}; use the folder as it is")
            else:
                config.setdefault("architectures", [f"{config['model_type'].title()}ForCausalLM"])  # GGUF files lack it
        write(out / name, config, weights)
        if form in ("", "reduced"):
            copy_tokenizer(tokenizer, out / name)
        if (source / "generation_config.json").is_file():
            shutil.copyfile(source / "generation_config.json", out / name / "generation_config.json")
    return [out / name for name in places]


def write(folder: Path, config: Mapping[str, Any], weights: Weights, name: str = SINGLE, **about: str) -> None:
    """Write config.json and the weights, each completely or not at all. `about` is metadata of the weights."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {key: tensor.contiguous() for key, tensor in weights.items()}
    write_whole(folder / name, lambda file: save_file(tensors, file, {"format": "pt"} | about))
    (folder / name).chmod(0o644)  # by default only its owner could read it
    write_whole(folder / "config.json", json.dumps(config, indent=2) + "\n")


def copy_tokenizer(place: Path, folder: Path) -> None:
    """Write the tokenizer of a folder or a GGUF file, with its chat template."""
    load_tokenizer(place).save(str(folder / "tokenizer.json"))
    template, controls = chat.template_of(place)
    facts = {"tokenizer_class": "PreTrainedTokenizerFast", **controls, "chat_template": template or None}
    write_whole(folder / chat.TOKENIZER_CONFIG, json.dumps(facts, indent=2) + "\n")


def unpacked(place: Path) -> tuple[dict[str, Any], Weights]:
    """Read config.json and the tensors. Packed ones become float32, and all do if dtypes then differ."""
    weights = dict(open_weights(place))
    dtypes = {tensor.dtype for tensor in weights.values() if tensor.is_floating_point()}
    dtype = dtypes.pop() if len(dtypes) == 1 else torch.float32
    weights = {name: tensor.to(dtype) if tensor.is_floating_point() else tensor for name, tensor in weights.items()}
    return read_config(place) | {"dtype": str(dtype).removeprefix("torch.")}, weights


def eagle3(
    config: Mapping[str, Any], weights: Weights, depth: int, target: Mapping[str, Tensor]
) -> tuple[dict[str, Any], Weights]:
    """Return a head as vLLM and SGLang read it, with an output matrix of its own."""
    if WRITES in weights:
        ids = weights[MAP].long() + torch.arange(len(weights[MAP]))
        weights["lm_head.weight"] = output_matrix(target)[ids] @ weights.pop(WRITES).T
    return eagle3_config(config, eagle3_taps(config, depth)), weights


def eagle3_config(config: Mapping[str, Any], taps: Sequence[int]) -> dict[str, Any]:
    """Name the tapped layers for vLLM, which counts their inputs, and for SGLang, which counts outputs."""
    nested = {"use_aux_hidden_state": True, TAPS: [tap - 1 for tap in taps]}
    return {**config, "architectures": ["LlamaForCausalLMEagle3"], TAPS: list(taps), "eagle_config": nested}


def whole(config: Mapping[str, Any], weights: Weights, target: Mapping[str, Tensor]) -> tuple[dict[str, Any], Weights]:
    """Make a Llama of a draft that reads and writes through the target's matrices (`models/reduced.py`)."""
    # A further number of its states has one value for all tokens, through which those that are never drafted get the
    # probability 0. The norms' epsilon becomes less by what this number adds to the mean square.
    width, eps, ids = config["hidden_size"], config["rms_norm_eps"], weights[MAP] + torch.arange(len(weights[MAP]))
    wide, tensors = width + SPARE, {}
    for name in weights.keys() - {READS, WRITES, MAP}:
        by_row, is_norm = name.endswith(("o_proj.weight", "down_proj.weight")), name.endswith("norm.weight")
        padded = pad(weights[name], (0, 0, 0, SPARE) if by_row else (0, SPARE), value=float(is_norm))
        tensors[name] = padded * (width / wide) ** 0.5 if is_norm else padded
    rows, embedding = output_matrix(target), target["model.embed_tokens.weight"].float()
    outputs = torch.zeros(len(rows), wide)
    outputs[:, width] = NEVER
    outputs[ids] = pad(rows[ids] @ weights[WRITES].T, (0, SPARE))
    tensors["lm_head.weight"] = outputs
    tensors["model.embed_tokens.weight"] = pad(embedding @ weights[READS].T, (0, SPARE))
    tensors["model.embed_tokens.weight"][:, width] = (eps * width / 2) ** 0.5
    names = {"architectures": ["LlamaForCausalLM"], "vocab_size": len(rows), "hidden_size": wide}
    return {**config, **names, "rms_norm_eps": eps / 2 * width / wide}, tensors


def output_matrix(target: Mapping[str, Tensor]) -> Tensor:
    return target["lm_head.weight" if "lm_head.weight" in target else "model.embed_tokens.weight"].float()


def medusa_config(config: dict[str, Any], weights: Weights, target: dict[str, Any]) -> dict[str, Any]:
    heads = sum(re.fullmatch(r"\d+\.0\.linear\.weight", name) is not None for name in weights)
    blocks = sum(re.fullmatch(r"0\.\d+\.linear\.weight", name) is not None for name in weights)
    if f"0.{blocks}.weight" not in weights:
        raise Refused("these Medusa heads share the target's output matrix, which vLLM does not support")
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


def browser_files(family: str) -> dict[str, bytes]:
    """Return the files that the browser's engine fetches. Raises Refused if the family cannot be loaded."""
    if family == EMBEDDED:
        return {
            "target": browser_weights(FAMILY / "target"),
            "draft": browser_weights(FAMILY / "draft_model"),
            "tokenizer": (FAMILY / "tokenizer/tokenizer.json").read_bytes(),
        }
    place = hub.find(family)
    with hub.reading(family):
        template = chat.load_chat(place)
        header = {
            "chat": {name: getattr(template, name) for name in ("before", "after", "trims")} if template else None,
            "ends": sorted(end_tokens(place)),
        }
        return {"target": browser_weights(place, header), "tokenizer": load_tokenizer(place).to_str().encode()}


if __name__ == "__main__":  # the app, which imports no torch, runs this as a child process
    for name, content in browser_files(sys.argv[1]).items():
        (Path(sys.argv[2]) / name).write_bytes(content)
