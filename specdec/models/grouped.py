"""Matrices in few bits: every 32 inputs of an output share a scale and perhaps a minimum, as in llama.cpp's files.

A product's inputs are rounded as well: to 8 bits, every 32 of a row with a scale of their own. Sums of a group are then
sums of whole numbers, which processors have instructions for and which are exact in any order. A row is rounded by
itself: what else is in a pass does not change its distribution. `native.cpp` computes in this way; this is the same in
torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

GROUP = 32  # inputs that share a scale
STEPS = 127  # the largest input of a group takes so many
NONE = 1e-30  # a group of smaller inputs counts as zeros
FILE = torch.quint4x2  # names the codes of a GGUF file, whatever their bits, as torch.int8 does 8 bits in groups
INT7: torch.dtype = torch.int7  # type: ignore[attr-defined]  # bytes that a browser's relaxed SIMD multiplies
LARGEST = {torch.int8: 127, INT7: 63}  # the largest weight of a group takes so many
CODES = (*LARGEST, FILE)


@dataclass(frozen=True)
class Grouped:
    """weight = scale * (code - zero) + minimum. Its length is the number of outputs."""

    codes: Tensor  # uint8 [out, in]
    scales: Tensor  # float16, or float32 where those are finer, [out, in / 32]
    minima: Tensor | None  # as the scales
    zero: int
    bits: int  # of a code: 8 or 4

    @classmethod
    def quantise(cls, matrix: Tensor, stored: torch.dtype = torch.int8) -> Grouped:
        """Rounded to 8 bits, as Q8_0 does, or to 7.  # [out, in]"""
        groups, most = matrix.float().unflatten(1, (-1, GROUP)), LARGEST.get(stored, STEPS)
        scales = (groups.abs().amax(-1) / most).half()
        steps = torch.where(scales > 0, 1 / scales.float(), 0)[..., None]
        codes = (groups * steps).round().clamp(-most, most) + most + 1
        return cls(codes.flatten(1).to(torch.uint8), scales, None, most + 1, 8)

    def __len__(self) -> int:
        return len(self.codes)

    def moved(self, change: Callable[..., Tensor], *others: Tensor | Grouped) -> Grouped:
        """`change` of this and others, which moves whole groups at most. ValueError for codes of other kinds."""
        alike = [self, *(one for one in others if isinstance(one, Grouped))]
        if len(alike) <= len(others) or len({(one.zero, one.bits, one.minima is None) for one in alike}) > 1:
            raise ValueError("matrices that are multiplied at once have codes of several kinds; take int8")
        minima = [one.minima for one in alike if one.minima is not None]
        codes, scales = (change(*parts) for parts in zip(*((one.codes, one.scales) for one in alike), strict=True))
        return Grouped(codes, scales, change(*minima) if minima else None, self.zero, self.bits)

    def dequantised(self) -> Tensor:
        """The same numbers in float32.  # [out, in]"""
        groups: Tensor = self.codes.unflatten(1, (-1, GROUP)).float() - self.zero
        weights = groups * self.scales.float()[..., None]
        return (weights if self.minima is None else weights + self.minima.float()[..., None]).flatten(1)


def rounded(x: Tensor) -> tuple[Tensor, Tensor]:
    """Inputs in 8 bits: codes from -127 to 127, and their scales.  # [n, in] -> [n, in / 32, 32], [n, in / 32, 1]"""
    groups = x.float().unflatten(1, (-1, GROUP))
    most = groups.abs().amax(-1, keepdim=True)
    return (groups * torch.where(most > NONE, STEPS / most, 0)).round(), most / STEPS


def in_parts(change: Callable[..., Tensor], *matrices: Tensor | Grouped) -> Tensor | Grouped:
    """`change` of matrices, which moves whole groups at most; of those in codes, part by part."""
    first, *others = matrices
    return first.moved(change, *others) if isinstance(first, Grouped) else change(*matrices)
