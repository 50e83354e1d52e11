"""How a model keeps its matrices, and multiplies by them.

Plain ones lie [in, out], in memory in either order. On a CPU a wide matrix in float32 is kept as oneDNN's kernels read
it, and a draft's may be kept in 8 bits.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import addmm, mm, Tensor

from .layout import outputs_first

LANES = 32  # torch's kernel for 8 bits reads this many inputs at once, even past the end of a row
WIDE = 2**17  # entries: calling oneDNN costs about 10 µs more than calling MKL
FEW = 16  # rows that it is packed for: a check has fewer, or a few more


class EightBit(NamedTuple):
    """A matrix in 8 bits: the weights of every output times a scale. A quarter of float32's bytes to read.

    Reading its weights is most of what a small draft costs. Rounding them changes what is drafted, hardly how much of
    it is kept, and never the law of the text.
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


class Prepacked(NamedTuple):
    """A matrix in the order of oneDNN's kernels, as torch.compile's freezing keeps it.

    A product with six rows took a third of MKL's time here, one with a single row two thirds.
    """

    weights: Tensor

    @classmethod
    def of(cls, matrix: Tensor) -> Prepacked:  # float32 [out, in]
        return cls(torch.ops.mkldnn._reorder_linear_weight(matrix.contiguous(), FEW))

    @staticmethod
    def pays(matrix: Tensor) -> bool:
        """For this [out, in], with this torch, on this machine."""
        return (
            matrix.device.type == "cpu" and matrix.dtype == torch.float32 and matrix.numel() >= WIDE
            and torch.backends.mkldnn.is_available() and torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")
            and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")
        )  # fmt: skip


Matrix = Tensor | EightBit | Prepacked


def kept(matrix: Tensor, dtype: torch.dtype, device: str, eight_bit: bool) -> Matrix:
    """[out, in] as it is multiplied fastest: in 8 bits where its width allows it, else packed, else [in, out]."""
    if eight_bit and matrix.shape[1] % LANES == 0:
        return EightBit.of(matrix)
    matrix = matrix.to(device, dtype)
    if Prepacked.pays(matrix):
        return Prepacked.of(matrix)
    return matrix.contiguous().t() if outputs_first(matrix) else matrix.t().contiguous()


def linear(x: Tensor, matrix: Matrix, added: Tensor | None = None) -> Tensor:
    """`x` @ `matrix`, plus `added`.  # [n, in] -> [n, out]"""
    if isinstance(matrix, Tensor):
        return mm(x, matrix) if added is None else addmm(added, x, matrix)
    product: Tensor
    if isinstance(matrix, Prepacked):
        product = torch.ops.mkldnn._linear_pointwise(x, matrix.weights, None, "none", [], "")
    else:
        product = torch._weight_int8pack_mm(x.bfloat16(), *matrix).to(x.dtype)  # fast in bf16 only
    return product if added is None else added + product


def add_product(total: Tensor, x: Tensor, matrix: Matrix) -> None:
    """`total` += `x` @ `matrix`: on a GPU one kernel, where `addmm` copies first."""
    if isinstance(matrix, Tensor):
        total.addmm_(x, matrix)
    else:
        total.add_(linear(x, matrix))
