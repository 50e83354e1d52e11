"""What a family's folder holds to be exported, and the way to write it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ..families.zoo import draft_folders, FOLDERS
from ..models.checkpoint import naming, read_json, read_weights, Weights

TARGET, HEADS = "target", ("eagle3", "medusa")


@dataclass(frozen=True)
class Source:
    """The folders of a family: its target and draft models, its heads, by the names that they get; the tokenizer."""

    models: dict[str, Path]
    heads: dict[str, Path]
    tokenizer: Path

    @classmethod
    def of(cls, family: str) -> Source:
        """That of a family's name or folder. ValueError where it holds no target and no tokenizer."""
        folder = FOLDERS.get(family) or Path(family)
        tuned = not (folder / "tokenizer").is_dir()
        words = (folder.parent if tuned else folder) / "tokenizer"
        if not (folder / TARGET).is_dir() or not words.is_dir():
            raise ValueError(
                f"{family} is no family: name 'embedded', 'tuned', or a folder with target/ and tokenizer/"
            )
        drafts = {name.replace(":", "_"): path for name, path in draft_folders(folder, tuned).items()}
        heads = {name: folder / name for name in HEADS if (folder / name).is_dir()}
        return cls({TARGET: folder / TARGET} | drafts, heads, words)


def read(folder: Path) -> tuple[dict[str, Any], Weights]:
    """config.json and the tensors, unpacked. They are float32 where any of them was packed: 8 bits times a scale
    fit into no 16."""
    with naming(folder):
        config, weights = read_json(folder / "config.json"), read_weights(folder)
    kinds = {tensor.dtype for tensor in weights.values() if tensor.is_floating_point()}
    if len(kinds) > 1:
        weights = {name: tensor.float() if tensor.is_floating_point() else tensor for name, tensor in weights.items()}
    dtype = kinds.pop() if len(kinds) == 1 else torch.float32
    return config | {"dtype": str(dtype).removeprefix("torch.")}, weights


@contextmanager
def filling(place: Path) -> Iterator[Path]:
    """A folder to write into, which becomes `place` once it is whole. ValueError if something stands there."""
    if place.exists():
        raise ValueError(f"{place} is there already; name another folder with --out, or remove it")
    half = place.with_name(f".{place.name}")
    shutil.rmtree(half, ignore_errors=True)  # of an export that was stopped
    half.mkdir(parents=True)
    try:
        yield half
        half.rename(place)
    finally:
        shutil.rmtree(half, ignore_errors=True)
