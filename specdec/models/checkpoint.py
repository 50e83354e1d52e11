"""Read a model's files: a folder in the Hub's layout (config.json, safetensors), or a GGUF file.

If a file is missing or damaged, a ValueError names the file or the tensor in one sentence.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from . import gguf, gguf_header, packed
from .files import brief, read_json, weight_files

Weights = dict[str, Tensor]
MAX_LAYERS = 1000
IGNORED = re.compile(r"rotary_emb\.inv_freq$")  # old checkpoints contain it; our decoder computes it instead


def read_config(place: Path) -> dict[str, Any]:
    """Return the config.json of a folder, or an equivalent from a GGUF file's header."""
    is_gguf = gguf_header.is_file(place)
    config = gguf.config(gguf_header.read_header(place)) if is_gguf else read_json(place / "config.json")
    if not 0 < (config.get("num_hidden_layers") or 1) <= MAX_LAYERS:  # a list of so many would fill the memory
        raise ValueError(f"num_hidden_layers must lie between 1 and {MAX_LAYERS}, not {config['num_hidden_layers']}")
    return config


def section(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the object under the key `name` of a config.json, or {} if it is missing or null."""
    return data.get(name) or {}


def read_weights(folder: Path) -> Weights:
    """Read all tensors of a folder, packed or not, by name. Raises ValueError if a file is missing or damaged."""
    if packed.is_packed(folder):
        return packed.unpack(read_file(folder / packed.FILE))
    weights: Weights = {}
    for file in weight_files(folder):
        weights |= read_file(folder / file)
    return weights


def open_weights(place: Path) -> Mapping[str, Tensor]:
    """Return the tensors of a folder or GGUF file. Those of a GGUF file are read only when they are accessed."""
    return gguf.Stored(gguf_header.read_header(place)) if gguf_header.is_file(place) else read_weights(place)


def for_shapes(weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """Return tensors with the shapes of `weights`, without reading the data of a GGUF file."""
    return weights.meta_tensors if isinstance(weights, gguf.Stored) else weights


def read_file(path: Path) -> Weights:
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except Exception as error:  # safetensors raises errors without a common class
        raise ValueError(f"{path.name} cannot be read ({brief(error)}); download it again") from error


def check_tensors(weights: Mapping[str, Tensor], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raise ValueError unless `weights` has exactly the names and shapes in `shapes`. `IGNORED` names do not count."""
    weights = for_shapes(weights)
    for name, shape in shapes.items():
        if name not in weights:
            raise ValueError(f"the checkpoint lacks {name}")
        if tuple(weights[name].shape) != shape:
            raise ValueError(f"{name} has the shape {list(weights[name].shape)}; config.json requires {list(shape)}")
    if unexpected := [name for name in weights if name not in shapes and not IGNORED.search(name)]:
        raise ValueError(f"the checkpoint holds {unexpected[0]}, which its config.json does not call for")
