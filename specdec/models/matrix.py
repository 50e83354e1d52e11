"""Store a model's matrices in the layout that multiplies fastest, and multiply by them.

A matrix becomes `Blocked` (`native.cpp`) if `Blocked.pays`. Of all others, a quantised one (`grouped.py`) becomes
`Dequantised`, and a float one `Prepacked` (oneDNN) if `Prepacked.pays`, or else a tensor [in, out].
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import addmm, mm, Tensor

from .device import multiplies_bfloat16, outputs_first
from .grouped import CODE_TYPES, GROUP, Grouped, INT7, rounded
from .native import Blocked, runs_on

WIDE = 2**17  # entries of a float32 matrix; with fewer, MKL is faster than oneDNN
PACKED_ROWS = 16  # oneDNN packs a matrix for inputs of this many rows
ONEDNN: Any = getattr(torch.ops.mkldnn, "_linear_pointwise", None)  # None in builds of torch without oneDNN


class Dequantised(NamedTuple):
    """A quantised (`Grouped`) matrix converted back to floats, for devices without a kernel for quantised weights."""

    weights: Tensor  # [in, out], with the factors of the outputs included
    before: Tensor | None = None  # factors of the inputs

    @classmethod
    def unpack(
        cls,
        matrix: Grouped,
        before: Tensor | None,
        after: Tensor | None,
        device: str,
        dtype: torch.dtype,
    ) -> Dequantised:
        weights = matrix.dequantised() if after is None else matrix.dequantised() * after.cpu()[:, None]
        factors = None if before is None else before.to(device, torch.float32)
        return cls(weights.to(device, dtype).t().contiguous(), factors)

    def times(self, x: Tensor) -> Tensor:
        codes, scales = rounded(x if self.before is None else x.float() * self.before)
        return mm((codes * scales).flatten(1).to(x.dtype), self.weights)


class Prepacked(NamedTuple):
    """A matrix in the layout that oneDNN chooses for it.

    Measured with a wide float32 matrix: an input of six rows takes a third of MKL's time, one row takes two thirds.
    """

    packed: Tensor  # in oneDNN's own format

    @classmethod
    def pack(cls, matrix: Tensor) -> Prepacked:  # float32 or bfloat16 [out, in]
        return cls(torch.ops.mkldnn._reorder_linear_weight(matrix.contiguous(), PACKED_ROWS))

    @staticmethod
    def pays(matrix: Tensor) -> bool:
        """Return whether this layout is faster for this matrix [out, in], with this torch, on this machine."""
        if matrix.device.type != "cpu" or ONEDNN is None or not torch.backends.mkldnn.is_available():
            return False
        if matrix.dtype == torch.bfloat16:
            return multiplies_bfloat16("cpu")
        wide = matrix.dtype == torch.float32 and matrix.numel() >= WIDE
        return wide and torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")


Matrix = Tensor | Dequantised | Prepacked | Blocked


def pack_weight(
    matrix: Tensor | Grouped,
    dtype: torch.dtype,
    device: str,
    stored: torch.dtype | None = None,
    before: Tensor | None = None,
    after: Tensor | None = None,
) -> Matrix:
    """Convert a matrix [out, in] to the layout that multiplies fastest (see the top of this file).

    Inputs and outputs have `dtype`. A Tensor is rounded to `stored`, but to `dtype` if `stored` is None, or if it is in
    `CODE_TYPES` and GROUP does not divide the inputs. `before` has a factor for each input, `after` for each output.
    """
    weight_dtype = dtype if stored is None or stored in CODE_TYPES else stored
    if isinstance(matrix, Tensor) and stored in CODE_TYPES and matrix.shape[1] % GROUP == 0:
        assert stored is not None
        matrix = Grouped.quantise(matrix, stored)
    if Blocked.pays(matrix, dtype, device):
        return Blocked.pack(matrix.to(weight_dtype) if isinstance(matrix, Tensor) else matrix, before, after)
    if isinstance(matrix, Grouped):
        return Dequantised.unpack(matrix, before, after, device, dtype)
    if before is not None:
        matrix = matrix * before
    if after is not None:
        matrix = matrix * after[:, None]
    matrix = matrix.to(weight_dtype).to(device, dtype)
    if Prepacked.pays(matrix):
        return Prepacked.pack(matrix)
    return matrix.contiguous().t() if outputs_first(matrix) else matrix.t().contiguous()


def draft_dtype(device: str, target: torch.dtype | None = None) -> torch.dtype | None:
    """Return a draft's `stored`: codes where `native.cpp` runs, otherwise None. `target` is the target's `stored`."""
    return (INT7 if target == INT7 else torch.int8) if runs_on(device) else None


def linear(x: Tensor, matrix: Matrix, added: Tensor | None = None) -> Tensor:
    """Return `x` @ `matrix` + `added`.  # [n, in] -> [n, out]"""
    if isinstance(matrix, Tensor):
        return mm(x, matrix) if added is None else addmm(added, x, matrix)
    product: Tensor
    if isinstance(matrix, Prepacked):
        # oneDNN caches a kernel of hundreds of kB for every number of rows, so long inputs are padded to a power of 2.
        padding = (1 << (len(x) - 1).bit_length()) - len(x) if len(x) > PACKED_ROWS else 0
        product = ONEDNN(F.pad(x, (0, 0, 0, padding)) if padding else x, matrix.packed, None, "none", [], "")[: len(x)]
    else:
        product = matrix.times(x)
    return product if added is None else added + product


def add_product(total: Tensor, x: Tensor, matrix: Matrix) -> None:
    """Add `x` @ `matrix` to `total` in place. On a GPU this is one kernel; `addmm` would copy `total` first."""
    if isinstance(matrix, Tensor):
        total.addmm_(x, matrix)
    else:
        total.add_(linear(x, matrix))
