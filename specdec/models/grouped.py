"""Quantised matrices, as in llama.cpp: every 32 weights of an output share a scale and, in some formats, a minimum.

The inputs of a product are rounded, too: to 8 bits, in groups of 32 that share a scale. The sum over a group is then a
sum of integers, which is fast, and exact in any order. Each row is rounded on its own, so its result does not depend on
the other rows of a pass. `native.cpp` works in this way. `Dequantised` in `matrix.py` also rounds, but sums floats.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

GROUP = 32  # inputs that share a scale
STEPS = 127  # the code of the largest input of a group
TINY = 1e-30  # if all inputs of a group are smaller, they are rounded to 0
GGUF = torch.quint4x2  # `stored=GGUF` means the codes of a GGUF file
INT7: torch.dtype = torch.int7  # type: ignore[attr-defined]  # 7-bit codes, for a browser's relaxed SIMD
LARGEST = {torch.int8: 127, INT7: 63}  # code - zero of the largest weight of a group
CODE_TYPES = (*LARGEST, GGUF)


@dataclass(frozen=True)
class Grouped:
    """A quantised matrix: weight = scale * (code - zero) + minimum. `len()` is the number of outputs."""

    codes: Tensor  # uint8 [out, in]
    scales: Tensor  # float16 or float32 [out, in / 32]
    minima: Tensor | None  # same shape as `scales`
    zero: int
    bits: int  # of a packed code: 8 (also for 7-bit codes) or 4

    @classmethod
    def quantise(cls, matrix: Tensor, stored: torch.dtype = torch.int8) -> Grouped:
        """Round a matrix [out, in] to 8 bits, as llama.cpp's Q8_0 does, or to 7 bits."""
        groups, largest = matrix.float().unflatten(1, (-1, GROUP)), LARGEST.get(stored, STEPS)
        scales = (groups.abs().amax(-1) / largest).half()
        steps = torch.where(scales > 0, 1 / scales.float(), 0)[..., None]
        codes = (groups * steps).round().clamp(-largest, largest) + largest + 1
        return cls(codes.flatten(1).to(torch.uint8), scales, None, largest + 1, 8)

    def __len__(self) -> int:
        return len(self.codes)

    def rearrange(self, change: Callable[..., Tensor], *others: Tensor | Grouped) -> Grouped:
        """Apply `change` to the codes, scales and minima of all matrices. `change` must not split groups.

        Raises ValueError unless all matrices are quantised, and in the same way.
        """
        matrices = [self, *(other for other in others if isinstance(other, Grouped))]
        if len(matrices) <= len(others) or len({(m.zero, m.bits, m.minima is None) for m in matrices}) > 1:
            raise ValueError("matrices to be joined, such as q, k and v, are quantised differently; choose int8")
        minima = [m.minima for m in matrices if m.minima is not None]
        codes, scales = (change(*parts) for parts in zip(*((m.codes, m.scales) for m in matrices), strict=True))
        return Grouped(codes, scales, change(*minima) if minima else None, self.zero, self.bits)

    def dequantised(self) -> Tensor:
        """Return the weights in float32.  # [out, in]"""
        groups: Tensor = self.codes.unflatten(1, (-1, GROUP)).float() - self.zero
        weights = groups * self.scales.float()[..., None]
        return (weights if self.minima is None else weights + self.minima.float()[..., None]).flatten(1)


def rounded(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return inputs as codes from -127 to 127, and scales.  # [n, in] -> [n, in / 32, 32], [n, in / 32, 1]"""
    groups = x.float().unflatten(1, (-1, GROUP))
    largest = groups.abs().amax(-1, keepdim=True)
    return (groups * torch.where(largest > TINY, STEPS / largest, 0)).round(), largest / STEPS


def rearrange(change: Callable[..., Tensor], *matrices: Tensor | Grouped) -> Tensor | Grouped:
    """Apply `change` to matrices, quantised or not. It may move and join groups of 32 inputs, but not split them."""
    first, *others = matrices
    return first.rearrange(change, *others) if isinstance(first, Grouped) else change(*matrices)
