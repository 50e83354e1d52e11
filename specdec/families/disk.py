"""Large files on this disk: is there room for one, and is it the one that was meant?"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from ..types import TranslatableText

SPARE = 1_000_000_000  # bytes of disk that a download leaves free


def sha256(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as source:
        while block := source.read(2**20):
            digest.update(block)
    return digest.hexdigest()


def check_disk(name: str, total: int, place: Path) -> None:
    place.mkdir(parents=True, exist_ok=True)
    if (free := shutil.disk_usage(place).free) < total + SPARE:
        raise ValueError(
            TranslatableText(
                "{name} needs {needed} GB of disk, and {free} GB are free. Make room, or set HF_HOME to a larger disk.",
                name=name, needed=f"{(total + SPARE) / 1e9:.1f}", free=f"{free / 1e9:.1f}",
            )
        )  # fmt: skip
