"""Read the header of a GGUF file: its fields, and the offsets of its tensors. This module does not import torch.

The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
The package `gguf` has a reader, too, but that takes five seconds to read SmolLM2's vocabulary.
"""

import math
import os
import struct
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

ARCHITECTURES = ("llama", "qwen2", "qwen3")
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}  # `struct` codes
STRING = 8
ARRAY = 9


def has_gguf_name(place: str | Path) -> bool:
    """Return whether the name ends in .gguf. The file need not exist."""
    return str(place).lower().endswith(".gguf")


def is_file(place: str | Path) -> bool:
    return has_gguf_name(place) and os.path.isfile(place)


class Entry(NamedTuple):
    kind: int  # ggml's number for the quantisation
    shape: tuple[int, ...]  # outputs first
    start: int  # offset in the file, in bytes
    size: int  # in bytes


@dataclass
class Header:
    """Holds the fields of a GGUF file and the entries of its tensors, but not the tensors' data."""

    path: Path
    fields: dict[str, Any] = field(default_factory=dict)
    entries: dict[str, Entry] = field(default_factory=dict)

    def value(self, name: str, default: Any = None) -> Any:
        """Return a field, or `default` if the file lacks it. Raises ValueError if there is no default either."""
        if (value := self.fields.get(name, default)) is None:
            raise ValueError(f"the header lacks {name}")
        return value

    def of_model(self, name: str, default: Any = None) -> Any:
        """Return the field `name` of the model's architecture, such as `llama.block_count`."""
        return self.value(f"{self.fields['general.architecture']}.{name}", default)


@lru_cache(maxsize=4)
def read_header(path: Path) -> Header:
    """Read the header of a file. Raises ValueError if the file is damaged or its model cannot run here."""
    try:
        with path.open("rb") as file:
            header = parse(file, path)
    except Exception as error:  # numbers at random raise errors of many classes
        raise ValueError("not a GGUF file, or damaged, or newer than the package gguf; download it again") from error
    if (architecture := header.value("general.architecture")) not in ARCHITECTURES:
        raise ValueError(f"GGUF files of {architecture} models are not among {', '.join(ARCHITECTURES)}")
    if any(entry.start + entry.size > path.stat().st_size for entry in header.entries.values()):
        raise ValueError("the file ends too early; download it again")
    return header


def parse(file: BinaryIO, path: Path) -> Header:
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

    if file.read(4) != b"GGUF":
        raise ValueError
    header = Header(path)
    _version, tensor_count, field_count = (read_number(file, code) for code in "IQQ")
    for _ in range(field_count):
        name = read_string(file)
        header.fields[name] = read_value(file, read_number(file, "I"))
    tensors = []
    for _ in range(tensor_count):
        name = read_string(file)
        shape = tuple(read_number(file, "Q") for _ in range(read_number(file, "I")))[::-1]
        tensors.append((name, shape, read_number(file, "I"), read_number(file, "Q")))
    alignment = header.fields.get("general.alignment", 32)
    start = -(-file.tell() // alignment) * alignment
    for name, shape, kind, offset in tensors:
        block_weights, block_bytes = GGML_QUANT_SIZES[GGMLQuantizationType(kind)]
        header.entries[name] = Entry(kind, shape, start + offset, math.prod(shape) // block_weights * block_bytes)
    return header


def read_number(file: BinaryIO, code: str) -> Any:
    (value,) = struct.unpack(f"<{code}", file.read(struct.calcsize(f"<{code}")))
    return value


def read_string(file: BinaryIO) -> str:
    return file.read(read_number(file, "Q")).decode()


def read_value(file: BinaryIO, value_type: int) -> Any:
    if value_type == STRING:
        return read_string(file)
    if value_type != ARRAY:
        return read_number(file, SCALARS[value_type])
    inner, count = read_number(file, "I"), read_number(file, "Q")
    return [read_value(file, inner) for _ in range(count)]
