"""Weights packed to keep the repository small: matrices in 8 bits, or a checkpoint as its difference from another.

One file, `packed.safetensors`, instead of a folder's other weights. A matrix NAME has its scales beside it,
`NAME.scale`; tensors without scales are stored unchanged.

- `rows`: int8 [out, in] and one bfloat16 scale a row, absmax / 127.
- `difference`: two 4-bit numbers a byte, the first in the low half: uint8 [out, in / 2], and a float16 scale for every
  64 inputs. They are added to the tensors of the checkpoint of the same name in the folder around this family:
  `tuned/target` is told by its difference from `target`. Vectors are stored whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

FILE = "packed.safetensors"
ROWS, DIFFERENCE = "rows", "difference"
GROUP = 64  # inputs that share a scale of a difference


def is_packed(folder: Path) -> bool:
    return (folder / FILE).is_file()


def base_of(folder: Path) -> Path:
    """The checkpoint that a difference in `folder` is added to: `tuned/target` -> `target`."""
    return folder.parent.parent / folder.name


def unpack(stored: Mapping[str, Tensor], base: Mapping[str, Tensor] | None = None) -> dict[str, Tensor]:
    """The tensors as a checkpoint has them, matrices in float32. With `base`, `stored` is a difference from it."""
    tensors = {}
    for name, tensor in stored.items():
        if name.endswith(".scale"):
            continue
        if (scale := stored.get(f"{name}.scale")) is None:
            tensors[name] = tensor
        elif base is None:
            tensors[name] = tensor.float() * scale.float()[:, None]
        else:
            steps = torch.stack((tensor & 15, tensor >> 4), -1).flatten(1).float() - 8  # [out, in]
            tensors[name] = base[name].float() + (steps.unflatten(1, (-1, GROUP)) * scale.float()[..., None]).flatten(1)
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
