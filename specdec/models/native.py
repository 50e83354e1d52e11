"""The layers of a small model on a CPU, in C++: one call, where torch makes twenty a layer.

`native.cpp` is compiled by g++ at the first use on a machine, in some seconds, and kept in the user's cache. Where that
cannot be, models run in torch. A row's result does not depend on how many rows are computed with it, to the bit.
"""

from __future__ import annotations

import contextlib
import ctypes as C
import errno
import hashlib
import logging
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor

from .cache import StaticCache
from .grouped import Grouped

SOURCE = Path(__file__).with_suffix(".cpp")
COMPILE = "-std=c++17 -O3 -march=native -ffp-contract=off -fopenmp -shared -fPIC -w".split()
BLOCK = 32  # outputs whose weights lie side by side, as the source reads them
LANES = 16  # the most numbers in a register
OFF = "SPECDEC_NATIVE"  # 0: torch alone

log = logging.getLogger(__name__)
missing = ""  # why `library` could not be compiled; it is shown to others, so it names no folder


class MatrixStruct(C.Structure):
    _fields_ = (
        *((name, C.c_void_p) for name in ("weights", "before", "after", "scales", "minima")),
        *((name, C.c_int64) for name in ("outputs", "inputs")),
        *((name, C.c_int32) for name in ("bits", "scale_bits", "zero")),
    )


class LayerStruct(C.Structure):
    _fields_ = (
        *((name, MatrixStruct) for name in ("qkv", "out", "gate_up", "down")),
        ("qkv_bias", C.c_void_p),
    )


@cache
def library() -> C.CDLL | None:
    """The compiled source, or None: another processor, no compiler, no place to keep it, or switched off."""
    global missing
    if os.environ.get(OFF) == "0" or torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"):
        return None
    try:
        compiled = load_library()
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        log.info("small models run in torch: %s", error)
        missing = getattr(error, "strerror", None) or "g++ failed"
        return None
    number, pointer = C.c_int64, C.c_void_p
    compiled.specdec_product.argtypes = [pointer, pointer, number, pointer, C.c_int]
    compiled.specdec_normalise.argtypes = [pointer, number, number, C.c_float, pointer]
    compiled.specdec_layers.argtypes = [
        *(pointer, number),  # layers
        *(pointer, number, number, pointer),  # states, and what the first layer reads
        *(pointer, number, number, number),  # keys and values, and where they go
        *(number, number, number),  # heads
        *(pointer, pointer, C.c_int, C.c_float, C.c_int),
    ]
    return compiled


def runs_on(device: str) -> bool:
    """Whether matrices there are multiplied by the compiled source. It is not compiled for a GPU's sake."""
    return torch.device(device).type == "cpu" and library() is not None


def load_library() -> C.CDLL:
    """Compile, unless that was done on this machine before, and load. OSError or SubprocessError where it cannot."""
    compiler = shutil.which("g++")
    if compiler is None:
        raise FileNotFoundError(errno.ENOENT, "no g++")
    version = subprocess.run([compiler, "--version"], capture_output=True, check=True, timeout=30).stdout
    processor = "".join(re.findall(r"^(?:model name|flags)\b.*", Path("/proc/cpuinfo").read_text(), re.M)[:2])
    made_of = [SOURCE.read_bytes(), " ".join(COMPILE).encode(), version, processor.encode()]
    file = folder() / f"native-{hashlib.sha256(b'|'.join(made_of)).hexdigest()[:16]}.so"
    if file.exists():
        with contextlib.suppress(OSError):  # a full disk or a crash has left a part of it
            return C.CDLL(str(file))
    log.warning("compiling the layers of small models for this processor, once: some ten seconds")
    new = file.with_suffix(f".{os.getpid()}")
    try:
        subprocess.run([compiler, *COMPILE, str(SOURCE), "-o", str(new)], capture_output=True, check=True, timeout=300)
        os.replace(new, file)  # at once or not at all: several processes may compile together
    finally:
        new.unlink(missing_ok=True)
    return C.CDLL(str(file))


def folder() -> Path:
    """Where compiled libraries are kept: in the user's cache, readable by its owner alone."""
    place = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "specdec"
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    return place


@dataclass(slots=True)
class Blocked:
    """A matrix as the compiled source reads it: 32 outputs side by side for every input, or every four of codes."""

    weights: Tensor  # float32 or bfloat16 [outputs / 32, inputs, 32]; codes [outputs / 32, bytes, 32, 4]
    others: tuple[Tensor | None, ...]  # that the struct points at as well
    struct: MatrixStruct

    @classmethod
    def pack(cls, matrix: Tensor | Grouped, before: Tensor | None = None, after: Tensor | None = None) -> Blocked:
        """[out, in]; inputs are multiplied by `before`, outputs by `after`."""
        scales = minima = None
        zero = 0
        if isinstance(matrix, Tensor):
            outputs, inputs = matrix.shape
            weights, bits = side_by_side(matrix), 8 * matrix.itemsize
        else:
            (outputs, inputs), bits, zero = matrix.codes.shape, matrix.bits, matrix.zero
            weights = side_by_side(matrix.codes.unflatten(1, (-1, 4)))
            if bits == 4:  # the next four inputs of an output are in the upper halves
                low, high = weights.unflatten(1, (-1, 2)).unbind(2)
                weights = low | high << 4
            scales, minima = (None if part is None else side_by_side(part) for part in (matrix.scales, matrix.minima))
        vectors = (None if part is None else part.float().contiguous() for part in (before, after))
        others = (*vectors, scales, minima)
        scale_bits = 0 if scales is None else 8 * scales.itemsize
        pointers = (None if part is None else part.data_ptr() for part in (weights, *others))
        return cls(weights, others, MatrixStruct(*pointers, outputs, inputs, bits, scale_bits, zero))

    @staticmethod
    def pays(matrix: Tensor | Grouped, dtype: torch.dtype, device: str) -> bool:
        """For this [out, in], where states are of that `dtype`."""
        return dtype == torch.float32 and len(matrix) % BLOCK == 0 and runs_on(device)

    def times(self, x: Tensor) -> Tensor:
        """float32 [n, in] -> [n, out]"""
        compiled, x = library(), contiguous(x, self.struct.inputs)
        assert compiled is not None
        product = x.new_empty(len(x), self.struct.outputs)
        compiled.specdec_product(
            C.byref(self.struct), x.data_ptr(), len(x), product.data_ptr(), torch.get_num_threads()
        )
        return product


def side_by_side(matrix: Tensor) -> Tensor:
    """[out, in, ...] -> [out / 32, in, 32, ...]"""
    blocks: Tensor = matrix.unflatten(0, (-1, BLOCK))
    return blocks.transpose(1, 2).contiguous()


def contiguous(x: Tensor, width: int) -> Tensor:
    """float32 [n, width] as the source walks through it. ValueError for others: it would read past their end."""
    if x.dim() != 2 or x.shape[1] != width or x.dtype != torch.float32 or x.device.type != "cpu":
        raise ValueError(f"{x.dtype} {list(x.shape)} on {x.device} is no float32 [n, {width}] on the CPU")
    return x.contiguous()


@dataclass(slots=True)
class NativeLayers:
    """All layers of a model whose matrices are `Blocked`."""

    structs: C.Array[LayerStruct]
    tensors: tuple[object, ...]  # what those point at
    heads: int
    kv_heads: int
    floor: float

    @classmethod
    def build(
        cls,
        matrices: Sequence[Sequence[object]],
        biases: Sequence[Tensor | None],
        heads: int,
        kv_heads: int,
        head_dim: int,
        floor: float,
    ) -> NativeLayers | None:
        """`matrices` are those of query, key and value, of the output, of gate and up, and the last; None if they are
        not all `Blocked`, or do not fit the registers."""
        rows = [[matrix.struct for matrix in layer if isinstance(matrix, Blocked)] for layer in matrices]
        if not rows or head_dim % LANES or any(len(row) < 4 or row[3].inputs % BLOCK for row in rows):
            return None
        structs = [
            LayerStruct(*row, None if bias is None else bias.data_ptr()) for row, bias in zip(rows, biases, strict=True)
        ]
        return cls((LayerStruct * len(structs))(*structs), (*matrices, *biases), heads, kv_heads, floor)

    def normalised(self, x: Tensor) -> Tensor:
        """States divided by their length, as the layers do it.  # float32 [n, hidden] -> [n, hidden]"""
        compiled, x = library(), contiguous(x, x.shape[-1])
        assert compiled is not None
        normed = torch.empty_like(x)
        compiled.specdec_normalise(x.data_ptr(), *x.shape, self.floor, normed.data_ptr())
        return normed

    def run(
        self,
        x: Tensor,
        cache: StaticCache,
        start: int,
        first: int,
        last: int,
        angles: Tensor,
        hidden: Tensor | None,
        read: Tensor | None,
        causal: bool,
    ) -> None:
        """States [n, hidden] at `start` through the layers from `first` to below `last`, in place.

        `angles` are complex [n, head_dim / 2], `hidden` [1, n, start + n] is -inf at what a row may not see. The inputs
        of layers that the cache has `states` for are kept there. ValueError for what fits no place or no matrix.
        """
        compiled, data = library(), cache.data
        assert compiled is not None and x.is_contiguous() and data.is_contiguous() and data.dtype == torch.float32
        if len(angles) != len(x) or start + len(x) > data.shape[2]:
            raise ValueError(f"{len(x)} tokens at {start} are more than there are positions")
        if first == last:
            return
        first_read = contiguous(x if read is None else read, self.structs[first].qkv.inputs)
        marks = [first, *(layer for layer in cache.states if first < layer < last), last]
        for layer, following in pairwise(marks):
            if layer in cache.states:
                cache.states[layer][start : start + len(x)] = x
            states = (x.data_ptr(), *x.shape, None if read is None else first_read.data_ptr())
            stored = (data[layer].data_ptr(), data.stride(0), data.shape[2], start)
            heads = (self.heads, self.kv_heads, data.shape[3])
            mask = None if hidden is None else hidden.data_ptr()
            compiled.specdec_layers(
                *(C.byref(self.structs, layer * C.sizeof(LayerStruct)), following - layer),
                *states,
                *stored,
                *heads,
                *(angles.data_ptr(), mask, causal, self.floor, torch.get_num_threads()),
            )
            read = None
