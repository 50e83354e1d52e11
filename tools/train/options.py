"""What a training is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..options import option


@dataclass(frozen=True)
class Options:
    """The embedded family from plain text files. A stage whose checkpoint exists continues where it stopped.

    Tokens are what each model sees.
    """

    stage: str = option(
        "all",
        "tokenizer, target (or early_exit), draft, draft:scratch, draft:story, draft:large, medusa, eagle3, block, "
        "mtp, tuned, report, all, or pack",
        positional=True,
    )
    corpus: Path = option(None, "a folder of .txt files: the stories")
    out: Path = option(None, "the family's folder")
    minutes: float | None = option(None, "stop after about this many minutes (55 %% for the target)")
    tokens: int = option(40_000_000, "tokens the target sees")
    draft_tokens: int = option(60_000_000, "tokens a draft sees")
    medusa_tokens: int = option(8_000_000, "tokens the Medusa heads see")
    eagle3_tokens: int = option(20_000_000, "tokens the EAGLE-3 head sees")
    block_tokens: int = option(20_000_000, "tokens the block drafter sees")
    mtp_tokens: int = option(20_000_000, "tokens the MTP layer sees")
    tuned_tokens: int = option(28_000_000, "tokens of edits and other texts for the tuned target")
    tuned_draft_tokens: int = option(10_000_000, "tokens its draft then sees")
    own_tokens: int = option(1_500_000, "tokens the target writes for its drafters")
    lesson_tokens: int = option(2_500_000, "tokens of text it reads for them")
    widths: tuple[int, ...] = option((192,), "widths of the draft")
    stories: int = option(1000, "sampled stories to search for blocked words")
    batch_tokens: int = option(8192, "tokens a step")
    length: int = option(256, "window; the last part of a run sees twice as much")
    seed: int = option(0, "of every random choice")
    device: str = option("auto", "auto: an NVIDIA GPU, where there is one", choices=("auto", "cpu", "cuda"))
    compile: bool = option(True, "torch.compile; needs a C++ compiler")
