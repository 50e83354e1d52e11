"""How a model keeps its matrices, and multiplies by them.

Plain ones lie [in, out], in memory in either order. On a CPU they are kept as `native.cpp` reads them or, where that
cannot be compiled, as oneDNN's kernels do if that is faster. They may be rounded to 8 bits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import addmm, mm, Tensor

from .device import multiplies_bfloat16
from .layout import outputs_first
from .native import Blocked

LANES = 32  # torch's kernel for 8 bits reads this many inputs at once, even past the end of a row
WIDE = 2**17  # entries, in float32: below, calling oneDNN costs more than MKL's product
FEW = 16  # rows that it is packed for: a check has fewer, or a few more
ONEDNN: Any = getattr(torch.ops.mkldnn, "_linear_pointwise", None)  # torch's door to it; some builds lack it


class EightBit(NamedTuple):
    """A matrix in 8 bits: the weights of every output times a scale. A quarter of float32's bytes to read.

    Reading its weights is most of what a small draft costs. Rounding them changes what is drafted, hardly how much of
    it is kept, and never the distribution of the text. A target in 8 bits is another target, with a distribution of its
    own. Torch's kernel rounds the inputs to bfloat16, each by itself: one scale for the inputs of a pass would let a
    draft's rows change the distribution that judges it. Ours does not round them.
    """

    weights: Tensor  # int8 [out, in]
    scales: Tensor  # bf16 [out]

    @classmethod
    def of(cls, matrix: Tensor) -> EightBit:  # [out, in]
        scales = (matrix.abs().amax(1) / 127).clamp_min(1e-12).bfloat16()
        return cls((matrix / scales[:, None]).round().to(torch.int8), scales)

    @staticmethod
    def pays() -> bool:
        """Whether torch has a fast kernel for it here: elsewhere it was seven times slower than float32."""
        return torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")

    def wide(self) -> Tensor:
        """The same numbers in float32.  # [out, in]"""
        return self.weights * self.scales.float()[:, None]


class Prepacked(NamedTuple):
    """A matrix in the order that oneDNN chose for it, as torch.compile's freezing keeps it.

    In float32 a wide one's product with six rows took a third of MKL's time here, with a single row two thirds. In
    bfloat16 five rows cost little more than one; packed anew in every call it takes twice as long.
    """

    packed: Tensor  # opaque

    @classmethod
    def of(cls, matrix: Tensor) -> Prepacked:  # float32 or bfloat16 [out, in]
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


Matrix = Tensor | EightBit | Prepacked | Blocked


def kept(matrix: Tensor, dtype: torch.dtype, device: str, stored: torch.dtype | None = None) -> Matrix:
    """[out, in] as it is multiplied fastest: in 8 bits where its width allows it, else packed, else [in, out].

    `dtype` is that of the states, `stored` what the weights are rounded to, where that is coarser: torch.int8, in
    which each row has a scale, or 16 bits.
    """
    native = Blocked.pays(matrix, dtype, device)
    if stored == torch.int8 and matrix.shape[1] % LANES == 0:
        eight = EightBit.of(matrix)
        if native:
            return Blocked.of(*eight)
        if EightBit.pays():
            return eight
        matrix = eight.wide()  # the distribution of 8 bits at the speed of `dtype`
    matrix = matrix.to(dtype if stored in (None, torch.int8) else stored)
    if native:
        return Blocked.of(matrix)
    matrix = matrix.to(device, dtype)
    if Prepacked.pays(matrix):
        return Prepacked.of(matrix)
    return matrix.contiguous().t() if outputs_first(matrix) else matrix.t().contiguous()


def linear(x: Tensor, matrix: Matrix, added: Tensor | None = None) -> Tensor:
    """`x` @ `matrix`, plus `added`.  # [n, in] -> [n, out]"""
    if isinstance(matrix, Tensor):
        return mm(x, matrix) if added is None else addmm(added, x, matrix)
    product: Tensor
    if isinstance(matrix, Blocked):
        product = matrix.times(x)
    elif isinstance(matrix, Prepacked):
        # oneDNN keeps a kernel for every number of rows, hundreds of kB each: prompts of all lengths share a few.
        more = (1 << (len(x) - 1).bit_length()) - len(x) if len(x) > FEW else 0
        product = ONEDNN(F.pad(x, (0, 0, 0, more)) if more else x, matrix.packed, None, "none", [], "")[: len(x)]
    else:
        product = torch._weight_int8pack_mm(x.bfloat16(), *matrix).to(x.dtype)  # fast in bf16 only
    return product if added is None else added + product


def add_product(total: Tensor, x: Tensor, matrix: Matrix) -> None:
    """`total` += `x` @ `matrix`: on a GPU one kernel, where `addmm` copies first."""
    if isinstance(matrix, Tensor):
        total.addmm_(x, matrix)
    else:
        total.add_(linear(x, matrix))
