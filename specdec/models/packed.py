"""Weights packed to keep the repository small: matrices in 8 bits.

One file, `packed.safetensors`, instead of a folder's other weights. A matrix NAME, int8 [out, in], has its scales
beside it, `NAME.scale`: one bfloat16 a row, absmax / 127. Tensors without scales are stored unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

FILE = "packed.safetensors"
ROWS = "rows"


def is_packed(folder: Path) -> bool:
    return (folder / FILE).is_file()


def unpack(stored: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors as a checkpoint has them, matrices in float32."""
    tensors = {}
    for name, tensor in stored.items():
        if name.endswith(".scale"):
            continue
        scale = stored.get(f"{name}.scale")
        tensors[name] = tensor if scale is None else tensor.float() * scale.float()[:, None]
    return tensors


def pack_rows(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Matrices in 8 bits, with a scale a row: packing what was unpacked changes nothing."""
    packed: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if tensor.dim() != 2 or not tensor.is_floating_point():
            packed[name] = tensor
            continue
        scale = (tensor.float().abs().amax(1) / 127).clamp_min(1e-12).bfloat16()
        packed[f"{name}.scale"] = scale
        packed[name] = (tensor.float() / scale.float()[:, None]).round().clamp(-127, 127).to(torch.int8)
    return packed
