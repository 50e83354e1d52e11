"""A finished family made small enough for a repository: what only this project reads is packed.

The target and its draft model stay as the Hub has them, for `transformers` reads them too.
"""

from __future__ import annotations

from pathlib import Path

from safetensors.torch import save_file

from specdec.models import packed
from specdec.models.checkpoint import read_weights

ROWS = ("draft_model_*", "tuned/draft_model", "medusa", "eagle3", "block", "mtp")
DIFFERENCES = ("tuned/target",)


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
                small = packed.pack_difference(tensors, read_weights(packed.base_of(folder)))
            for path in [*folder.glob("*.safetensors"), *folder.glob("*.safetensors.index.json")]:
                path.unlink()
            save_file(
                {name: tensor.contiguous() for name, tensor in small.items()}, folder / packed.FILE, {"packed": kind}
            )
            done.append(folder)
    return done
