"""Read and write weights whose matrices are stored in 8 bits, so that the repository stays small.

`packed.safetensors` replaces a folder's other weight files. It holds each matrix NAME as int8 [out, in], and its scales
as `NAME.scale`: one bfloat16 for each row, absmax / 127. All other tensors are stored unchanged.
"""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

FILE = "packed.safetensors"
ROWS = "rows"  # in the metadata of FILE, this says that each row has one scale


def is_packed(folder: Path) -> bool:
    return (folder / FILE).is_file()


def unpack(stored: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors of a checkpoint, with matrices in float32."""
    tensors = {}
    for name, tensor in stored.items():
        if name.endswith(".scale"):
            continue
        scale = stored.get(f"{name}.scale")
        tensors[name] = tensor if scale is None else tensor.float() * scale.float()[:, None]
    return tensors


def pack_rows(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Round matrices to 8 bits, with one scale for each row. `pack_rows(unpack(packed))` equals `packed`."""
    packed: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if tensor.dim() != 2 or not tensor.is_floating_point():
            packed[name] = tensor
            continue
        scale = (tensor.float().abs().amax(1) / 127).clamp_min(1e-12).bfloat16()
        packed[f"{name}.scale"] = scale
        packed[name] = (tensor.float() / scale.float()[:, None]).round().clamp(-127, 127).to(torch.int8)
    return packed
