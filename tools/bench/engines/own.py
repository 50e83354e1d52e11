"""Our own engine, called from outside like the others. SmolLM2 has the draft that was trained for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from specdec.engine import generate, Task
from specdec.events import Committed, Verified
from specdec.families.presets import drafters_of, STAR
from specdec.families.zoo import load_pair
from specdec.servers.in_process import Write
from specdec.types import SamplingParams

from .adapter import Engine, Job, PLAIN


def writer(job: Job) -> Write:
    drafts = drafters_of(STAR) if job.family == STAR else [job.draft]
    family = load_pair(job.target, *drafts, dtype=torch.float32)
    name = "none" if job.method == PLAIN else job.method

    def write(prompt: Sequence[int], params: SamplingParams) -> list[int]:
        target, drafter = family.lane(name, len(prompt) + params.max_tokens + job.k)
        events = list(generate(Task(target, list(prompt), replace(params, ignore_end=True), drafter, job.k)))
        committed = [event for event in events if isinstance(event, Committed)]
        if job.method != PLAIN:
            drafted = sum(len(event.positions) for event in events if isinstance(event, Verified))
            job.counts = drafted, sum(event.accepted for event in committed)
        return [token for event in committed for token in event.tokens]

    return write


ENGINE = Engine("SpecDec", "", (PLAIN, "draft_model", "quantised", "suffix", "prompt_lookup"), writer)
