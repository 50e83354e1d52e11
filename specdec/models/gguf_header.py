"""The header of a GGUF file, read within bounds: untrusted input.

The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Whatever is wrong is a ValueError of one sentence
before memory is taken for it. It imports no torch.
"""

from __future__ import annotations

import math
import os
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

SUFFIX, MAGIC = ".gguf", b"GGUF"
INSTALL = "GGUF files are read with the package gguf, which is not installed: pip install 'gguf>=0.17,<1'"
ARCHITECTURES = ("llama", "qwen2", "qwen3", "gemma3")
# Far above any model here; a header that says more is damaged, or was made to cost memory.
HEADER, FIELDS, TENSORS, ENTRIES, STRING, NAME = 2**25, 4_096, 2**15, 3 * 2**19, 2**20, 256
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRINGS, ARRAYS = 8, 9
KEPT = ("tokenizer.ggml.tokens", "tokenizer.ggml.merges", "tokenizer.ggml.scores", "tokenizer.ggml.token_type")


def is_named(place: str | Path) -> bool:
    """Whether it is called like a GGUF file, there or not."""
    return str(place).lower().endswith(SUFFIX)


def is_file(place: str | Path) -> bool:
    return is_named(place) and os.path.isfile(place)


@dataclass(frozen=True)
class Entry:
    """One tensor of the file: its place in bytes, and its kind of numbers by ggml's."""

    kind: int
    shape: tuple[int, ...]  # as the Hub's files have it, rows first
    start: int
    size: int


@dataclass
class Header:
    """Everything but the tensors' numbers. `fields` holds strings, numbers, and the arrays of KEPT."""

    path: Path
    fields: dict[str, Any] = field(default_factory=dict)
    entries: dict[str, Entry] = field(default_factory=dict)

    @property
    def numbers(self) -> int:
        """How many all tensors hold."""
        return sum(math.prod(entry.shape) for entry in self.entries.values())

    def value(self, name: str, kind: type, default: Any = None) -> Any:
        """A field of that type. ValueError for another, or for none without a default."""
        found = self.fields.get(name, default)
        if type(found) is not kind:
            said = "lacks" if found is None else f"holds a {type(found).__name__} as"
            raise ValueError(f"its header {said} {name}; download it again, or use another file")
        return found

    def of_model(self, name: str, kind: type, default: Any = None) -> Any:
        return self.value(f"{self.fields['general.architecture']}.{name}", kind, default)


def read(path: Path) -> Header:
    """The header of a file. ValueError with the reason for one that is damaged or that cannot run here."""
    try:
        state = os.stat(path)
    except OSError as error:
        raise ValueError(f"it cannot be read: {error.strerror}") from error
    return _read(path, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=4)
def _read(path: Path, size: int, changed: int) -> Header:
    sizes = block_sizes()
    with path.open("rb") as file:
        cursor = Cursor(file.read(HEADER), size)
    if cursor.take(4) != MAGIC:
        raise ValueError("this is no GGUF file; download it again")
    version = cursor.scalar("I")
    if version & 0xFFFF == 0:
        raise ValueError("this GGUF file is big-endian, which is not supported; use one for little-endian machines")
    if version not in (2, 3):
        raise ValueError(f"this is version {version} of GGUF; versions 2 and 3 are read here")
    tensors, fields = cursor.count(TENSORS, "tensors"), cursor.count(FIELDS, "fields")
    header = Header(path)
    for _ in range(fields):
        name = cursor.name()
        if name in header.fields:
            raise ValueError(f"its header holds {name} twice; download it again")
        header.fields[name] = cursor.value(cursor.scalar("I"), name in KEPT)
    if header.fields.get("split.count", 1) not in (0, 1) or re.search(r"-\d{5}-of-\d{5}\.gguf$", path.name, re.I):
        raise ValueError("this GGUF file is one part of several; join them first: llama-gguf-split --merge")
    architecture = header.value("general.architecture", str)
    if architecture not in ARCHITECTURES:
        raise ValueError(f"GGUF files of {architecture[:40]!r} models are not among {', '.join(ARCHITECTURES)}")
    alignment = header.fields.get("general.alignment", 32)
    if type(alignment) is not int or not 0 < alignment <= 2**16 or alignment & (alignment - 1):
        raise ValueError("its header holds an alignment that is none; download it again")
    found = [tensor(cursor, sizes) for _ in range(tensors)]
    start = -(-cursor.at // alignment) * alignment
    for name, entry, offset in found:
        if name in header.entries:
            raise ValueError(f"it holds {name} twice; download it again")
        if offset % alignment or start + offset + entry.size > size:
            raise ValueError(f"{name} lies outside of the file; download it again")
        header.entries[name] = Entry(entry.kind, entry.shape, start + offset, entry.size)
    end = start
    for name, entry in sorted(header.entries.items(), key=lambda item: item[1].start):
        if entry.start < end:
            raise ValueError(f"{name} overlaps another tensor; download it again")
        end = entry.start + entry.size
    return header


def block_sizes() -> dict[int, tuple[int, int]]:
    """kind -> (numbers, bytes) of one block, of the kinds that can be dequantised."""
    try:
        from gguf import GGML_QUANT_SIZES, quants
    except ModuleNotFoundError as error:
        raise ValueError(INSTALL) from error
    plain = ("F32", "F16")
    return {int(k): size for k, size in GGML_QUANT_SIZES.items() if k.name in plain or k in quants._type_traits}


def tensor(cursor: Cursor, sizes: Mapping[int, tuple[int, int]]) -> tuple[str, Entry, int]:
    """Name, kind and shape of one tensor, and where its bytes begin after the header."""
    name = cursor.name()
    shape = tuple(cursor.scalar("Q") for _ in range(cursor.count(4, f"dimensions of {name}", 4)))[::-1]
    kind, offset = cursor.scalar("I"), cursor.scalar("Q")
    if not 0 < len(shape) <= 2 or not all(0 < count <= 2**24 for count in shape):
        raise ValueError(f"{name} has the shape {[*shape]}, which is no vector and no matrix of a model here")
    if kind not in sizes:
        raise ValueError(f"{name} is stored in a way that is not known here (kind {kind})")
    numbers, width = sizes[kind]
    if shape[-1] % numbers:
        raise ValueError(f"the rows of {name} hold {shape[-1]} numbers, and their blocks {numbers}; download it again")
    return name, Entry(kind, shape, 0, math.prod(shape) // numbers * width), offset


class Cursor:
    """Reads a header from its bytes, and never past them. `size` is the whole file's."""

    def __init__(self, data: bytes, size: int) -> None:
        self.data, self.at, self.size, self.entries = data, 0, size, ENTRIES

    def take(self, count: int) -> bytes:
        end = self.at + count
        if end > len(self.data):
            if len(self.data) < self.size:
                raise ValueError(f"its header is longer than {HEADER // 2**20} MB, which no model's is")
            raise ValueError("its header ends too early; download it again")
        taken, self.at = self.data[self.at : end], end
        return taken

    def scalar(self, code: str) -> Any:
        (value,) = struct.unpack(f"<{code}", self.take(struct.calcsize(f"<{code}")))
        return value

    def count(self, most: int, what: str, width: int = 8) -> int:
        """ValueError above `most`, before anything is made of that size."""
        count = int.from_bytes(self.take(width), "little")
        if count > most:
            raise ValueError(f"its header claims {count:,} {what}; {most:,} are the most that is read")
        return count

    def text(self, most: int = STRING) -> str:
        try:
            return self.take(self.count(most, "bytes of one string")).decode()
        except UnicodeDecodeError as error:
            raise ValueError("its header holds a text that is no UTF-8; download it again") from error

    def name(self) -> str:
        """Of a field or a tensor; sentences repeat it."""
        text = self.text(NAME)
        if not text.isprintable():
            raise ValueError("its header holds a name that cannot be printed; download it again")
        return text

    def value(self, kind: int, kept: bool) -> Any:
        if kind == STRINGS:
            return self.text()
        if kind != ARRAYS:
            return self.scalar(self.code(kind))
        inner, count = self.scalar("I"), self.count(self.entries, "entries of lists")
        self.entries -= count
        if inner == STRINGS:
            if kept:
                return [self.text() for _ in range(count)]
            for _ in range(count):
                self.take(self.count(STRING, "bytes of one string"))
            return None
        code = self.code(inner)
        taken = self.take(count * struct.calcsize(f"<{code}"))
        return list(struct.unpack(f"<{count}{code}", taken)) if kept else None

    def code(self, kind: int) -> str:
        if kind not in SCALARS:
            raise ValueError(f"its header holds a value of kind {kind}, which is none; download it again")
        return SCALARS[kind]
