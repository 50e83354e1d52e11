"""Write a model's weights to one file for the browser, which runs `native.cpp` compiled to WebAssembly.

The file contains `SPD1`, the length of the header, the header in JSON, then the tensors at multiples of 64 bytes. The
tensors have the layout of `native.cpp`, so `assets/page/engine/model.js` needs only their offsets.
Matrices are 7-bit codes (`grouped.py`), or the codes of a GGUF file. Embeddings are bfloat16. For a GGUF file they are
left out: the browser reads them from the output matrix.
"""

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from . import gguf_header
from .folding import Folding
from .grouped import GGUF, Grouped, INT7
from .native import Blocked, NativeLayers
from .transformer import Transformer

MAGIC = b"SPD1"
ALIGNED = 64
POINTERS = ("before", "after", "scales", "minima")  # the names of the tensors in `Blocked.others`


class BrowserFolding(Folding):
    """Gives matrices the layout of `native.cpp` even if g++ is missing here."""

    def matrix(self, matrix: Tensor | Grouped, before: Tensor | None = None, after: Tensor | None = None) -> Blocked:
        return Blocked.pack(matrix if isinstance(matrix, Grouped) else Grouped.quantise(matrix, INT7), before, after)


class ForBrowser(Transformer):
    """A model that is written, not run."""

    folding_class = BrowserFolding


class File:
    """Collects the tensors of the file, each padded to a multiple of 64 bytes."""

    def __init__(self) -> None:
        self.chunks: list[bytes] = []
        self.length = 0

    def put(self, tensor: Tensor) -> int:
        """Append a tensor; return its offset in bytes."""
        data = tensor.contiguous().view(torch.uint8).numpy().tobytes()
        offset, self.length = self.length, self.length + len(data) + -len(data) % ALIGNED
        self.chunks.append(data + bytes(-len(data) % ALIGNED))
        return offset

    def matrix(self, matrix: Any) -> dict[str, Any]:
        """Append the tensors of a `Blocked` matrix; return their offsets and the numbers in its struct."""
        sizes = {name: getattr(matrix.struct, name) for name in ("outputs", "inputs", "bits", "scale_bits", "zero")}
        others = {name: self.put(data) for name, data in zip(POINTERS, matrix.others, strict=True) if data is not None}
        return {"weights": self.put(matrix.weights), **others, **sizes}


def weights(place: Path, more: Mapping[str, Any] | None = None) -> bytes:
    """Return the content of the file for a checkpoint: a folder or a GGUF file. `more` is added to the header.

    Raises ValueError if `native.cpp` does not support the model.
    """
    is_gguf = gguf_header.is_file(place)
    model = ForBrowser.load(place, stored=GGUF if is_gguf else INT7)
    if not isinstance(model.native, NativeLayers):
        raise ValueError(f"{place} has layers that the browser engine does not compute")
    output: Any = model.head
    if is_gguf and not (model.config.tie_word_embeddings and output.struct.bits == 8 and not output.struct.minima):
        raise ValueError(f"{place} lacks the 8-bit matrix for both embeddings and output that a browser needs")
    file, layers = File(), []
    for layer in model.layers:
        matrices = {name: getattr(layer, name) for name in ("qkv", "out", "gate_up", "down")}
        bias = {} if layer.qkv_bias is None else {"bias": file.put(layer.qkv_bias)}
        layers.append({name: file.matrix(matrix) for name, matrix in matrices.items()} | bias)
    facts = ("vocabulary", "context", "parameters", "width", "heads", "kv_heads")
    fields = {
        "stored": "gguf" if is_gguf else "int7",
        **{name: getattr(model, name) for name in facts},
        "size": model.head_dim,
        "floor": model.native.floor,
        "layers": layers,
        "output": file.matrix(model.head),
        "angles": file.put(torch.view_as_real(model.angles)),
        **(more or {}),
    }
    if not is_gguf:
        fields["embedding"] = file.put(model.embedding.bfloat16())
    header = json.dumps(fields, separators=(",", ":")).encode()
    begin = MAGIC + struct.pack("<I", len(header)) + header
    return b"".join([begin, bytes(-len(begin) % ALIGNED), *file.chunks])
