"""How a model keeps its matrices, and multiplies by them.

Plain ones lie [in, out], in memory in either order. On a CPU they are kept as `native.cpp` reads them or, where that
cannot be compiled, as oneDNN's kernels do if that is faster. They may be rounded to 8 bits (`grouped.py`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import addmm, mm, Tensor

from .device import multiplies_bfloat16, outputs_first
from .grouped import CODES, GROUP, Grouped, INT7, rounded
from .native import Blocked, runs_on

WIDE = 2**17  # entries, in float32: below, calling oneDNN costs more than MKL's product
FEW = 16  # rows that it is packed for: a check has fewer, or a few more
ONEDNN: Any = getattr(torch.ops.mkldnn, "_linear_pointwise", None)  # torch's door to it; some builds lack it


class Dequantised(NamedTuple):
    """A `Grouped` matrix for devices without a kernel for its codes: the same numbers, and inputs rounded alike."""

    weights: Tensor  # [in, out], times what outputs are multiplied by
    before: Tensor | None = None

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
    """A matrix in the order that oneDNN chose for it, as torch.compile's freezing keeps it.

    In float32 a wide one's product with six rows took a third of MKL's time here, with a single row two thirds. In
    bfloat16 five rows cost little more than one; packed anew in every call it takes twice as long.
    """

    packed: Tensor  # opaque

    @classmethod
    def pack(cls, matrix: Tensor) -> Prepacked:  # float32 or bfloat16 [out, in]
        return cls(torch.ops.mkldnn._reorder_linear_weight(matrix.contiguous(), FEW))

    @staticmethod
    def pays(matrix: Tensor) -> bool:
        """For this [out, in], with this torch, on this machine."""
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
    """[out, in] in the layout that multiplies fastest: as `native.cpp` reads it, else packed, else [in, out].

    `dtype` is that of the states, `stored` what the weights are rounded to, where that is coarser: torch.int8, which is
    8 bits in groups, or 16 bits. Inputs are multiplied by `before`, outputs by `after`: 16 bits are rounded without
    them only where `native.cpp` computes, codes everywhere.
    """
    number = dtype if stored is None or stored in CODES else stored
    if isinstance(matrix, Tensor) and stored in CODES and matrix.shape[1] % GROUP == 0:
        assert stored is not None
        matrix = Grouped.quantise(matrix, stored)
    if Blocked.pays(matrix, dtype, device):
        return Blocked.pack(matrix.to(number) if isinstance(matrix, Tensor) else matrix, before, after)
    if isinstance(matrix, Grouped):
        return Dequantised.unpack(matrix, before, after, device, dtype)
    if before is not None:
        matrix = matrix * before
    if after is not None:
        matrix = matrix * after[:, None]
    matrix = matrix.to(number).to(device, dtype)
    if Prepacked.pays(matrix):
        return Prepacked.pack(matrix)
    return matrix.contiguous().t() if outputs_first(matrix) else matrix.t().contiguous()


def draft_dtype(device: str, target: torch.dtype | None = None) -> torch.dtype | None:
    """What matrices of drafts are rounded to: reading them is most of what a small draft costs. None: not rounded."""
    return (INT7 if target == INT7 else torch.int8) if runs_on(device) else None


def linear(x: Tensor, matrix: Matrix, added: Tensor | None = None) -> Tensor:
    """`x` @ `matrix`, plus `added`.  # [n, in] -> [n, out]"""
    if isinstance(matrix, Tensor):
        return mm(x, matrix) if added is None else addmm(added, x, matrix)
    product: Tensor
    if isinstance(matrix, Prepacked):
        # oneDNN keeps a kernel for every number of rows, hundreds of kB each: prompts of all lengths share a few.
        more = (1 << (len(x) - 1).bit_length()) - len(x) if len(x) > FEW else 0
        product = ONEDNN(F.pad(x, (0, 0, 0, more)) if more else x, matrix.packed, None, "none", [], "")[: len(x)]
    else:
        product = matrix.times(x)
    return product if added is None else added + product


def add_product(total: Tensor, x: Tensor, matrix: Matrix) -> None:
    """`total` += `x` @ `matrix`: on a GPU one kernel, where `addmm` copies first."""
    if isinstance(matrix, Tensor):
        total.addmm_(x, matrix)
    else:
        total.add_(linear(x, matrix))
