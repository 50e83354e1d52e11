"""Run all layers of a small model on a CPU in one call of C++; torch would need twenty calls for each layer.

`build.py` compiles `native.cpp` at the first use on a machine. If that fails, models run in torch. A row's result is
the same in every bit, whatever other rows the pass has.
"""

from __future__ import annotations

import ctypes as C
import logging
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import torch
from torch import Tensor

from . import build
from .cache import StaticCache
from .grouped import Grouped

BLOCK = 32  # outputs in a block; their weights for one input are adjacent in memory
REGISTER = 16  # float32 numbers in the largest register
OFF = "SPECDEC_NATIVE"  # environment variable; the value 0 switches the C++ off

log = logging.getLogger(__name__)


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


def library() -> C.CDLL | None:
    """Return the compiled library; None if it is switched off, the processor is not supported, or g++ failed."""
    return library_or_reason()[0]


def missing() -> str:
    """Return why the library could not be compiled. Visitors see this, so it names no folder."""
    return library_or_reason()[1]


@cache
def library_or_reason() -> tuple[C.CDLL | None, str]:
    if os.environ.get(OFF) == "0" or torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"):
        return None, ""
    try:
        compiled = C.CDLL(str(build.library_file()))
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        log.info("models run in torch, not in C++: %s", error)
        return None, getattr(error, "strerror", None) or "g++ failed"
    number, pointer = C.c_int64, C.c_void_p
    compiled.specdec_product.argtypes = [pointer, pointer, number, pointer, C.c_int]
    compiled.specdec_normalise.argtypes = [pointer, number, number, C.c_float, pointer]
    compiled.specdec_layers.argtypes = [
        *(pointer, number),  # layers
        *(pointer, number, number, pointer),  # states, their shape, and the first layer's attention input
        *(pointer, number, number, number),  # keys and values, their stride and capacity, and the start
        *(number, number, number),  # heads, KV heads, head_dim
        *(pointer, pointer, C.c_int, C.c_float, C.c_int),  # angles, paths, causal, floor, threads
    ]
    return compiled, ""


def runs_on(device: str) -> bool:
    """Return whether the compiled library multiplies matrices on `device`. Nothing is compiled for a GPU."""
    return torch.device(device).type == "cpu" and library() is not None


@dataclass(slots=True)
class Blocked:
    """A matrix in the layout of `native.cpp`: in a block of 32 outputs, their weights for one input are adjacent."""

    weights: Tensor  # [out / 32, in, 32]; 8-bit codes [out / 32, in / 4, 32, 4]; 4-bit codes [out / 32, in / 8, 32, 4]
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
            if bits == 4:  # a byte holds two inputs' codes: i in the lower half, i + 4 in the upper half
                low, high = weights.unflatten(1, (-1, 2)).unbind(2)
                weights = low | high << 4
            scales, minima = (None if x is None else side_by_side(x) for x in (matrix.scales, matrix.minima))
        factors = (None if x is None else x.float().contiguous() for x in (before, after))
        others = (*factors, scales, minima)
        scale_bits = 0 if scales is None else 8 * scales.itemsize
        pointers = (None if x is None else x.data_ptr() for x in (weights, *others))
        return cls(weights, others, MatrixStruct(*pointers, outputs, inputs, bits, scale_bits, zero))

    @staticmethod
    def pays(matrix: Tensor | Grouped, dtype: torch.dtype, device: str) -> bool:
        """Return whether a matrix [out, in] gets this layout in a model whose states have `dtype`."""
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
    """Put the numbers of 32 outputs for one input side by side.  # [out, in, ...] -> [out / 32, in, 32, ...]"""
    blocks: Tensor = matrix.unflatten(0, (-1, BLOCK))
    return blocks.transpose(1, 2).contiguous()


def contiguous(x: Tensor, width: int) -> Tensor:
    """Return `x` in contiguous memory. Raises ValueError unless it is float32 [n, width] on the CPU."""
    # Otherwise the C++ could read past the end of a tensor.
    if x.dim() != 2 or x.shape[1] != width or x.dtype != torch.float32 or x.device.type != "cpu":
        raise ValueError(f"{x.dtype} {list(x.shape)} on {x.device} is not float32 [n, {width}] on the CPU")
    return x.contiguous()


@dataclass(slots=True)
class NativeLayers:
    """All layers of a model whose matrices are `Blocked`."""

    structs: C.Array[LayerStruct]
    tensors: tuple[object, ...]  # own the memory that `structs` points at
    heads: int
    kv_heads: int
    floor: float  # see `folding.RMSNorm`

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
        """Build the layers from the four matrices of each: qkv, attention output, gate and up, down.

        Returns None unless all matrices are `Blocked`, REGISTER divides `head_dim`, and BLOCK divides the MLP's width.
        """
        layers = [[matrix.struct for matrix in layer if isinstance(matrix, Blocked)] for layer in matrices]
        if not layers or head_dim % REGISTER or any(len(layer) < 4 or layer[3].inputs % BLOCK for layer in layers):
            return None
        structs = [
            LayerStruct(*layer, None if b is None else b.data_ptr()) for layer, b in zip(layers, biases, strict=True)
        ]
        return cls((LayerStruct * len(structs))(*structs), (*matrices, *biases), heads, kv_heads, floor)

    def normalised(self, x: Tensor) -> Tensor:
        """Divide each row x by √(|x|² + floor²), exactly as the layers do.  # float32 [n, hidden] -> [n, hidden]"""
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
        paths: Tensor | None,
        read: Tensor | None,
        causal: bool,
    ) -> None:
        """Run layers `first` to `last` - 1, in place, on the states [n, hidden] of n tokens from position `start` on.

        `angles` are complex [n, head_dim / 2]. `paths` bool [n, n], for a tree, has which rows each row attends to: its
        result then has the bits of a chain. `read`, if given, replaces the normed input of attention in layer `first`.
        Layers in `cache.states` copy their input there. Without `causal` and `paths`, each row attends to all tokens.
        Raises ValueError if shapes do not fit.
        """
        compiled, data = library(), cache.data
        assert compiled is not None and x.is_contiguous() and data.is_contiguous() and data.dtype == torch.float32
        if len(angles) != len(x) or start + len(x) > data.shape[2]:
            raise ValueError(f"{len(x)} tokens at {start} do not fit the angles or the cache")
        if first == last:
            return
        first_read = contiguous(x if read is None else read, self.structs[first].qkv.inputs)
        boundaries = [first, *(layer for layer in cache.states if first < layer < last), last]
        for layer, following in pairwise(boundaries):  # stop at every layer that stores its input
            if layer in cache.states:
                cache.states[layer][start : start + len(x)] = x
            states = (x.data_ptr(), *x.shape, None if read is None else first_read.data_ptr())
            keys_values = (data[layer].data_ptr(), data.stride(0), data.shape[2], start)
            heads = (self.heads, self.kv_heads, data.shape[3])
            paths_data = None if paths is None else paths.data_ptr()
            compiled.specdec_layers(
                *(C.byref(self.structs, layer * C.sizeof(LayerStruct)), following - layer),
                *states,
                *keys_values,
                *heads,
                *(angles.data_ptr(), paths_data, causal, self.floor, torch.get_num_threads()),
            )
            read = None
