"""The files of a model's folder: JSON and safetensors, in the Hub's layout. They are untrusted input.

Whatever is wrong with them is a ValueError of one sentence that names the file or the tensor: nothing is guessed, and
nothing from a folder is ever run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from . import gguf, packed

Weights = dict[str, Tensor]
SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
LFS = b"version https://git-lfs"
MOST_JSON = 2**26  # bytes; lists of tensors and settings of tokenizers have a few millions
# What quantised checkpoints keep beside or in place of a weight: GPTQ, AWQ, bitsandbytes, compressed-tensors, FP8.
QUANTISED = re.compile(
    r"\.(qweight|qzeros|scales|g_idx|SCB|weight_(packed|shape|format)|\w*(_scale(_inv|_\d)?|zero_point|absmax)|quant_\w+)(\.|$)"
)
PLAIN = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
TABLES = (torch.int64, torch.int32, torch.bool)  # maps between vocabularies
UNREAD = re.compile(r"rotary_emb\.inv_freq$")  # old checkpoints keep these; they are computed again
MASKS = re.compile(r"(^|\.)(attn|attention)\.(masked_)?bias$")  # as old GPT-2s and GPT-NeoXs keep, in whole numbers


@contextmanager
def naming(folder: Path) -> Iterator[None]:
    """Puts `folder` before the reason of a ValueError, once."""
    try:
        yield
    except ValueError as error:
        if str(error).startswith(f"{folder}: "):
            raise
        raise ValueError(f"{folder}: {error}") from error


def brief(said: object) -> str:
    """What a file or a library said, on one line of at most 200 characters."""
    line = " ".join(str(said).split()) or type(said).__name__
    return line if len(line) <= 200 else f"{line[:199]}…"


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file. ValueError for everything else."""
    if not path.is_file():
        raise ValueError(f"there is no {path.name}")
    try:
        with path.open("rb") as file:
            text = file.read(MOST_JSON + 1)
        if len(text) > MOST_JSON:
            raise ValueError(f"it is larger than {MOST_JSON:,} bytes")
        content = json.loads(text.decode())
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path.name} is no JSON that can be read: {brief(error)}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path.name} holds no JSON object, but a {type(content).__name__}")
    return content


def read_config(place: Path) -> dict[str, Any]:
    """The config.json of a folder, or what a GGUF file says in its place."""
    return gguf.config(gguf.read(place)) if gguf.is_file(place) else read_json(place / "config.json")


def section(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The object at that place in a config.json, {} if there is none."""
    content = data.get(name) or {}
    if not isinstance(content, dict):
        raise ValueError(f"{name} in config.json is {brief(repr(content))}; it would be an object")
    return content


def read_weights(folder: Path) -> Weights:
    """All tensors of a folder by name, packed or not. ValueError where one is missing, quantised or not finite."""
    if packed.is_packed(folder):
        weights = read_packed(folder)
    else:
        weights = {}
        for file, names in weight_files(folder).items():
            tensors = read_file(folder / file)
            if lacking := [name for name in names or () if name not in tensors]:
                raise ValueError(f"{INDEX} says that {lacking[0]} is in {file}, and it is not")
            weights |= {name: tensors[name] for name in names or tensors}
    check_plain(weights)
    return weights


def open_weights(place: Path) -> Mapping[str, Tensor]:
    """All tensors of a folder, or those of a GGUF file, each read where it is asked for."""
    return gguf.Stored(gguf.read(place)) if gguf.is_file(place) else read_weights(place)


def described(weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """The same tensors for their names and shapes alone: those of a GGUF file are not read."""
    return weights.described if isinstance(weights, gguf.Stored) else weights


def read_packed(folder: Path) -> Weights:
    """The tensors of our own light format."""
    from safetensors import safe_open

    stored, base = read_file(folder / packed.FILE), None
    with safe_open(folder / packed.FILE, "pt") as file:
        is_difference = (file.metadata() or {}).get("packed") == packed.DIFFERENCE
    if is_difference:
        if packed.is_packed(packed.base_of(folder)):
            raise ValueError(f"{packed.FILE} is a difference from a checkpoint that is packed, too")
        base = read_weights(packed.base_of(folder))
    try:
        return packed.unpack(stored, base)
    except (KeyError, IndexError, RuntimeError) as error:  # scales or a base of another shape
        raise ValueError(f"{packed.FILE} does not fit together ({brief(error)}); fetch it again") from error


def weight_files(folder: Path) -> dict[str, list[str]]:
    """The files that hold a folder's tensors, and which of them to take from each; an empty list is all.

    As transformers chooses: `model.safetensors`, else the shards of the index. A head may be one file of another name.
    What else lies there (consolidated, EMA, older shards) is not read.
    """
    if (folder / SINGLE).is_file():
        return {SINGLE: []}
    if (folder / INDEX).is_file():
        return shards(folder)
    files = sorted(path.name for path in folder.glob("*.safetensors"))
    if not files:
        raise ValueError("there is no .safetensors file")
    if len(files) > 1:
        raise ValueError(f"there are {len(files)} .safetensors files, and no {INDEX} that says what to read from each")
    return {files[0]: []}


def shards(folder: Path) -> dict[str, list[str]]:
    """file -> names of its tensors, from the index."""
    table = read_json(folder / INDEX).get("weight_map")
    if not isinstance(table, dict) or not table:
        raise ValueError(f"{INDEX} holds no weight_map")
    files: dict[str, list[str]] = {}
    for name, file in table.items():
        if not isinstance(file, str) or Path(file).name != file or "\0" in file:
            raise ValueError(f"{INDEX} says that {name} is in {file!r}, which names no file in its folder")
        files.setdefault(file, []).append(name)
    return files


def read_file(path: Path) -> Weights:
    """The tensors of one safetensors file."""
    from safetensors.torch import load_file

    check_fetched(path)
    try:
        return load_file(path)
    except Exception as error:  # its header is a stranger's: the library has a class for each way it can be wrong
        raise ValueError(f"{path.name} is damaged ({brief(error)}); download it again") from error


def check_fetched(path: Path) -> None:
    """ValueError where a file of weights is not there, or only its place-holder is."""
    if not path.is_file():
        raise ValueError(f"there is no {path.name}; download it")
    with path.open("rb") as file:
        first = file.read(len(LFS))
    if not first:
        raise ValueError(f"{path.name} is empty; download it again")
    if first == LFS:
        raise ValueError(f"{path.name} is a Git LFS pointer, not the weights; fetch them with `git lfs pull`")


def check_quantisation(config: Mapping[str, Any]) -> None:
    """ValueError if config.json says that the weights are quantised."""
    said = config.get("quantization_config") or config.get("compression_config")
    if said:
        method = said.get("quant_method") if isinstance(said, dict) else None
        refuse_quantised(f"config.json names {method if isinstance(method, str) else 'a quantization_config'}")


def check_plain(weights: Mapping[str, Tensor]) -> None:
    """ValueError for a tensor that is part of a quantised matrix, or that holds NaN or infinity."""
    for name, tensor in weights.items():
        if is_mask(name, tensor):
            continue
        if QUANTISED.search(name):
            refuse_quantised(f"it holds {name}")
        if not tensor.dim():
            raise ValueError(f"{name} is a single number, which is no weight")
        if tensor.dtype not in (*PLAIN, *TABLES):
            refuse_quantised(f"{name} is stored as {str(tensor.dtype).removeprefix('torch.')}")
        if tensor.dtype in PLAIN and tensor.numel():
            least, most = torch.aminmax(tensor)  # either is NaN if any entry is
            if not bool(least.isfinite() & most.isfinite()):
                raise ValueError(f"{name} holds NaN or infinity; download it again, or use another checkpoint")


def is_mask(name: str, tensor: Tensor) -> bool:
    return MASKS.search(name) is not None and (tensor.dtype not in PLAIN or not tensor.dim())


def refuse_quantised(sign: str) -> None:
    raise ValueError(f"this checkpoint is quantised ({sign}), which is not supported; use the one that is not")


def check_tensors(weights: Mapping[str, Tensor], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """ValueError unless `weights` are the tensors of `shapes`, no more and no less."""
    weights = described(weights)
    if lacking := [name for name in shapes if name not in weights]:
        more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
        raise ValueError(f"the checkpoint lacks {lacking[0]}{more}")
    for name, shape in shapes.items():
        tensor = weights[name]
        if tuple(tensor.shape) != shape:
            raise ValueError(f"{name} has the shape {list(tensor.shape)}; config.json makes it {list(shape)}")
        if tensor.dtype not in PLAIN:
            raise ValueError(f"{name} is stored as {str(tensor.dtype).removeprefix('torch.')}, not as weights are")
    if unread := [name for name in weights if name not in shapes and not UNREAD.search(name)]:
        raise ValueError(
            f"the checkpoint holds {unread[0]}, which by its config.json it would not; one of them is wrong"
        )
