"""Our own engine, asked from outside like the others. SmolLM2 is drafted for by the draft that was trained for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from specdec.engine import generate, Task
from specdec.events import Committed, Verified
from specdec.families.presets import drafters_of, STAR
from specdec.families.zoo import load_pair
from specdec.servers.in_process import Write
from specdec.types import SamplingParams

from .adapter import Asked, Engine, PLAIN


def writer(asked: Asked) -> Write:
    drafts = drafters_of(STAR) if Path(asked.family).name == STAR else [asked.draft]
    family = load_pair(asked.target, *drafts, dtype=torch.float32)
    name = "none" if asked.method == PLAIN else asked.method

    def write(prompt: Sequence[int], params: SamplingParams) -> list[int]:
        target, drafter = family.lane(name, len(prompt) + params.max_tokens + asked.k)
        task = Task(target, list(prompt), replace(params, ignore_end=True), drafter, asked.k)
        tokens: list[int] = []
        drafted = accepted = 0
        for event in generate(task):
            if isinstance(event, Verified):
                drafted += len(event.positions)
            elif isinstance(event, Committed):
                tokens += event.tokens
                accepted += event.accepted
        asked.counts[:] = [] if asked.method == PLAIN else [drafted, accepted]
        return tokens

    return write


ENGINE = Engine("SpecDec", "", (PLAIN, "draft_model", "quantised", "suffix", "prompt_lookup"), writer)
