"""Run all layers of a small model on a CPU by one call of C++; torch would need twenty calls for each layer.

g++ compiles `native.cpp` at the first use on a machine, and the result is kept in the user's cache. If that fails,
models run in torch. A row's result does not depend on the other rows of a pass, to the bit.
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
BLOCK = 32  # outputs whose weights are side by side in memory
LANES = 16  # numbers in the largest register
OFF = "SPECDEC_NATIVE"  # environment variable: 0 switches the C++ off

log = logging.getLogger(__name__)
missing = ""  # why `library` could not be compiled; visitors see it, so it names no folder


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
    """Return the compiled library; None if the processor does not fit, g++ failed, or it is switched off."""
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
    """Whether the compiled library multiplies matrices on `device`. For a GPU nothing is compiled."""
    return torch.device(device).type == "cpu" and library() is not None


def load_library() -> C.CDLL:
    """Load the library, and compile it at the first use on this machine. Raises OSError or SubprocessError."""
    compiler = shutil.which("g++")
    if compiler is None:
        raise FileNotFoundError(errno.ENOENT, "no g++")
    version = subprocess.run([compiler, "--version"], capture_output=True, check=True, timeout=30).stdout
    processor = "".join(re.findall(r"^(?:model name|flags)\b.*", Path("/proc/cpuinfo").read_text(), re.M)[:2])
    made_of = [SOURCE.read_bytes(), " ".join(COMPILE).encode(), version, processor.encode()]
    file = folder() / f"native-{hashlib.sha256(b'|'.join(made_of)).hexdigest()[:16]}.so"
    if file.exists():
        with contextlib.suppress(OSError):  # the file may be incomplete after a full disk or a crash
            return C.CDLL(str(file))
    log.warning("compiling the layers of small models for this processor, once: some ten seconds")
    new = file.with_suffix(f".{os.getpid()}")
    try:
        subprocess.run([compiler, *COMPILE, str(SOURCE), "-o", str(new)], capture_output=True, check=True, timeout=300)
        os.replace(new, file)  # atomic: several processes may compile at the same time
    finally:
        new.unlink(missing_ok=True)
    return C.CDLL(str(file))


def folder() -> Path:
    """Return the folder of compiled libraries, in the user's cache. Only its owner may read it."""
    place = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "specdec"
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    return place


@dataclass(slots=True)
class Blocked:
    """A matrix as `native.cpp` reads it: blocks of 32 outputs, whose weights for one input lie side by side."""

    weights: Tensor  # float32 or bfloat16 [outputs / 32, inputs, 32]; codes [outputs / 32, bytes, 32, 4]
    others: tuple[Tensor | None, ...]  # the other tensors that `struct` points at
    struct: MatrixStruct

    @classmethod
    def pack(cls, matrix: Tensor | Grouped, before: Tensor | None = None, after: Tensor | None = None) -> Blocked:
        """Convert a matrix [out, in]. Products multiply inputs by `before` and outputs by `after`."""
        scales = minima = None
        zero = 0
        if isinstance(matrix, Tensor):
            outputs, inputs = matrix.shape
            weights, bits = side_by_side(matrix), 8 * matrix.itemsize
        else:
            (outputs, inputs), bits, zero = matrix.codes.shape, matrix.bits, matrix.zero
            weights = side_by_side(matrix.codes.unflatten(1, (-1, 4)))
            if bits == 4:  # a byte holds two codes: the upper half is that of the input four places later
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
        """Whether this layout is used for a matrix [out, in], with states of that `dtype`."""
        return dtype == torch.float32 and len(matrix) % BLOCK == 0 and runs_on(device)

    def times(self, x: Tensor) -> Tensor:
        """Multiply `x` by the matrix.  # float32 [n, in] -> [n, out]"""
        compiled, x = library(), contiguous(x, self.struct.inputs)
        assert compiled is not None
        product = x.new_empty(len(x), self.struct.outputs)
        compiled.specdec_product(
            C.byref(self.struct), x.data_ptr(), len(x), product.data_ptr(), torch.get_num_threads()
        )
        return product


def side_by_side(matrix: Tensor) -> Tensor:
    """Group 32 outputs side by side.  # [out, in, ...] -> [out / 32, in, 32, ...]"""
    blocks: Tensor = matrix.unflatten(0, (-1, BLOCK))
    return blocks.transpose(1, 2).contiguous()


def contiguous(x: Tensor, width: int) -> Tensor:
    """Return `x` in contiguous memory. Raises ValueError unless it is float32 [n, width] on the CPU."""
    # The C++ would read past the end of any other tensor.
    if x.dim() != 2 or x.shape[1] != width or x.dtype != torch.float32 or x.device.type != "cpu":
        raise ValueError(f"{x.dtype} {list(x.shape)} on {x.device} is no float32 [n, {width}] on the CPU")
    return x.contiguous()


@dataclass(slots=True)
class NativeLayers:
    """All layers of a model whose matrices are `Blocked`."""

    structs: C.Array[LayerStruct]
    tensors: tuple[object, ...]  # keeps the memory that `structs` points at
    heads: int
    kv_heads: int
    floor: float  # keeps the divisor of RMSNorm above 0

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
        """Build the layers from their matrices: qkv, attention output, gate and up, down.

        None if they are not all `Blocked`, or do not fit the registers.
        """
        rows = [[matrix.struct for matrix in layer if isinstance(matrix, Blocked)] for layer in matrices]
        if not rows or head_dim % LANES or any(len(row) < 4 or row[3].inputs % BLOCK for row in rows):
            return None
        structs = [
            LayerStruct(*row, None if bias is None else bias.data_ptr()) for row, bias in zip(rows, biases, strict=True)
        ]
        return cls((LayerStruct * len(structs))(*structs), (*matrices, *biases), heads, kv_heads, floor)

    def normalised(self, x: Tensor) -> Tensor:
        """Apply RMSNorm without its weight, as the layers do.  # float32 [n, hidden] -> [n, hidden]"""
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
        mask: Tensor | None,
        read: Tensor | None,
        causal: bool,
    ) -> None:
        """Send states [n, hidden] at `start` through the layers from `first` to below `last`, in place.

        `angles` are complex [n, head_dim / 2]. `mask` [1, n, start + n] is -inf where a row may not attend. Layer
        `first` attends with `read`, if given, instead of its normed input. A layer in `cache.states` stores its input
        there. Raises ValueError if shapes do not fit.
        """
        compiled, data = library(), cache.data
        assert compiled is not None and x.is_contiguous() and data.is_contiguous() and data.dtype == torch.float32
        if len(angles) != len(x) or start + len(x) > data.shape[2]:
            raise ValueError(f"{len(x)} tokens at {start} do not fit the angles or the cache's positions")
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
            mask_data = None if mask is None else mask.data_ptr()
            compiled.specdec_layers(
                *(C.byref(self.structs, layer * C.sizeof(LayerStruct)), following - layer),
                *states,
                *stored,
                *heads,
                *(angles.data_ptr(), mask_data, causal, self.floor, torch.get_num_threads()),
            )
            read = None
