"""What a training is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Options:
    """Tokens are what each model sees; `device` and `compile` are where and how."""

    corpus: Path
    out: Path
    minutes: float | None
    tokens: int
    draft_tokens: int
    medusa_tokens: int
    eagle3_tokens: int
    block_tokens: int
    mtp_tokens: int
    tuned_tokens: int
    tuned_draft_tokens: int
    own_tokens: int
    lesson_tokens: int
    widths: list[int]
    stories: int
    batch_tokens: int
    length: int
    seed: int
    device: str
    compile: bool
