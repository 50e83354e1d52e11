"""A finished family made small enough for a repository: what only this project reads is packed.

The target and its draft model stay as the Hub has them, for `transformers` reads them too.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from specdec.models import packed
from specdec.models.base import Target
from specdec.models.checkpoint import read_weights
from specdec.models.reduced import known_tokens, output_rows, WRITES

ROWS = ("draft_model_*", "tuned/draft_model", "medusa", "eagle3", "block", "mtp")
DIFFERENCES = ("tuned/target",)
# Scales tried for 4 bits, of the one that reaches the largest entry: a few clipped ones cost less than coarse steps.
CLIPS = (1.0, 0.92, 0.85, 0.78, 0.7)


def pack(family: Path) -> list[Path]:
    """Pack the parts of a family's folder that are not packed yet; those that were."""
    done = []
    for kind, patterns in ((packed.DIFFERENCE, DIFFERENCES), (packed.ROWS, ROWS)):
        for folder in (folder for pattern in patterns for folder in sorted(family.glob(pattern))):
            if packed.is_packed(folder):
                continue
            tensors = read_weights(folder)
            if kind == packed.ROWS:
                small = packed.pack_rows(tensors)
            else:
                small = pack_difference(tensors, read_weights(packed.base_of(folder)))
            for path in [*folder.glob("*.safetensors"), *folder.glob("*.safetensors.index.json")]:
                path.unlink()
            save_file(
                {name: tensor.contiguous() for name, tensor in small.items()}, folder / packed.FILE, {"packed": kind}
            )
            done.append(folder)
    return done


def without_outputs(head: Mapping[str, Tensor], target: Target) -> dict[str, Tensor]:
    """An EAGLE-3 head whose output matrix came from the target's, with the small matrix between them in its place."""
    small = {name: tensor for name, tensor in head.items() if name not in ("lm_head.weight", "t2d")}
    rows = output_rows(target, known_tokens(head["d2t"], target.vocabulary))
    return small | {WRITES: torch.linalg.lstsq(rows, head["lm_head.weight"].float()).solution.T}


def pack_difference(tensors: Mapping[str, Tensor], base: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Matrices as 4-bit differences from those of `base`; vectors whole. Entries of a matrix come in groups of 64."""
    small: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if tensor.dim() != 2:
            small[name] = tensor
            continue
        groups = (tensor.float() - base[name].float()).unflatten(1, (-1, packed.GROUP))
        reach = groups.abs().amax(-1, keepdim=True) / 7
        tried = [(reach * clip).half().clamp_min(1e-7) for clip in CLIPS]  # [out, in / 64, 1]
        steps = [(groups / scale.float()).round().clamp(-8, 7) for scale in tried]
        errors = [(step * scale.float() - groups).square().sum(-1) for step, scale in zip(steps, tried, strict=True)]
        best = torch.stack(errors).argmin(0)[None, ..., None]  # [1, out, in / 64, 1]
        scale = torch.stack(tried).gather(0, best)[0]
        step = torch.stack(steps).gather(0, best.expand(1, -1, -1, packed.GROUP))[0]
        low, high = (step + 8).to(torch.uint8).flatten(1).unflatten(1, (-1, 2)).unbind(-1)
        small[name], small[f"{name}.scale"] = low | high << 4, scale[..., 0]
    return small
