"""Quantised matrices: every 32 inputs of an output share a scale and perhaps a minimum, as in llama.cpp's files.

The inputs of a product are rounded too: to 8 bits, in groups of 32 with a scale each. The sum of a group is then a sum
of integers, which is exact in any order and fast. Rows are rounded independently of each other, so a row's result does
not depend on the other rows of a pass. `native.cpp` computes in this way; this file does the same in torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

GROUP = 32  # inputs that share a scale
STEPS = 127  # the code of the largest input of a group
NONE = 1e-30  # a group whose inputs are all smaller is rounded to zeros
GGUF = torch.quint4x2  # as a value of `stored`, it means the codes of a GGUF file, whatever their bits
INT7: torch.dtype = torch.int7  # type: ignore[attr-defined]  # codes of 7 bits, for a browser's relaxed SIMD
LARGEST = {torch.int8: 127, INT7: 63}  # the code of the largest weight of a group
CODE_TYPES = (*LARGEST, GGUF)


@dataclass(frozen=True)
class Grouped:
    """A quantised matrix: weight = scale * (code - zero) + minimum. Its length is the number of outputs."""

    codes: Tensor  # uint8 [out, in]
    scales: Tensor  # float16 or float32 [out, in / 32]
    minima: Tensor | None  # of the shape of `scales`
    zero: int
    bits: int  # bits of a code: 8 or 4

    @classmethod
    def quantise(cls, matrix: Tensor, stored: torch.dtype = torch.int8) -> Grouped:
        """Round a matrix [out, in] to 8 bits, as Q8_0 does, or to 7."""
        groups, most = matrix.float().unflatten(1, (-1, GROUP)), LARGEST.get(stored, STEPS)
        scales = (groups.abs().amax(-1) / most).half()
        steps = torch.where(scales > 0, 1 / scales.float(), 0)[..., None]
        codes = (groups * steps).round().clamp(-most, most) + most + 1
        return cls(codes.flatten(1).to(torch.uint8), scales, None, most + 1, 8)

    def __len__(self) -> int:
        return len(self.codes)

    def rearrange(self, change: Callable[..., Tensor], *others: Tensor | Grouped) -> Grouped:
        """Apply `change`, which may move or join whole groups, to this and other matrices.

        Raises ValueError if their codes are of different kinds.
        """
        matrices = [self, *(other for other in others if isinstance(other, Grouped))]
        if len(matrices) <= len(others) or len({(m.zero, m.bits, m.minima is None) for m in matrices}) > 1:
            raise ValueError("matrices that are joined into one, as q, k and v, are quantised differently; take int8")
        minima = [m.minima for m in matrices if m.minima is not None]
        codes, scales = (change(*parts) for parts in zip(*((m.codes, m.scales) for m in matrices), strict=True))
        return Grouped(codes, scales, change(*minima) if minima else None, self.zero, self.bits)

    def dequantised(self) -> Tensor:
        """Return the weights in float32.  # [out, in]"""
        groups: Tensor = self.codes.unflatten(1, (-1, GROUP)).float() - self.zero
        weights = groups * self.scales.float()[..., None]
        return (weights if self.minima is None else weights + self.minima.float()[..., None]).flatten(1)


def rounded(x: Tensor) -> tuple[Tensor, Tensor]:
    """Round inputs to codes from -127 to 127, with scales.  # [n, in] -> [n, in / 32, 32], [n, in / 32, 1]"""
    groups = x.float().unflatten(1, (-1, GROUP))
    most = groups.abs().amax(-1, keepdim=True)
    return (groups * torch.where(most > NONE, STEPS / most, 0)).round(), most / STEPS


def rearrange(change: Callable[..., Tensor], *matrices: Tensor | Grouped) -> Tensor | Grouped:
    """Apply `change`, which may move or join whole groups, to matrices that are quantised or not."""
    first, *others = matrices
    return first.rearrange(change, *others) if isinstance(first, Grouped) else change(*matrices)
