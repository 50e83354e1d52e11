"""The options of `python -m tools.train`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..options import option


@dataclass(frozen=True)
class Options:
    """Train the embedded family on plain text files. A second start skips finished stages, and continues others."""

    stage: str = option(
        "all", "tokenizer, target, texts, draft_model, eagle3, medusa, block, mtp, or all", positional=True
    )
    corpus: Path = option(None, "a folder of .txt files: the stories")  # required, because None is no `Path`
    out: Path = option(None, "the family's folder")
    minutes: float = option(120.0, "training time of all stages together")
    batch_tokens: int = option(8192, "tokens of a training step")
    length: int = option(256, "tokens of a training sequence")
    seed: int = option(0, "seed of every random choice")
    device: str = option("auto", "auto: an NVIDIA GPU if there is one", choices=("auto", "cpu", "cuda"))
