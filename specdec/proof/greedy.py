"""Greedy text beside plain decoding: at temperature 0 nothing is random, so the two must be equal."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from ..drafters import NoDrafter
from ..engine import generate, Task
from ..events import Committed
from ..models.base import LanguageModel
from ..types import SamplingParams
from .mistakes import Mistake
from .pair import brief, drafter_of, GREEDY_K, ModelPair

WINDOW = 14  # tokens shown of each text
NEAR_TIE = 0.25  # between two logits: bfloat16 has steps of 1/8 from 16 on, and each may round either way


def greedy(pair: ModelPair, mistake: Mistake | None) -> dict[str, Any]:
    """Both texts at temperature 0 and where they part; in bfloat16 as well, where the pair has it."""
    told = beside_plain(pair, mistake, pair.models)
    return told | {"coarse": beside_plain(pair, mistake, pair.coarse()) if pair.coarse else None}


@torch.inference_mode()
def beside_plain(pair: ModelPair, mistake: Mistake | None, models: tuple[LanguageModel[Any], ...]) -> dict[str, Any]:
    """`equal` of `of` tokens; a window of both texts from token `start` on; where they part, the gap between the two
    best logits of the plain text: a near tie may fall either way, as a pass over five rows rounds unlike one over one.
    """
    target, draft = models
    params = SamplingParams(max_tokens=pair.greedy, ignore_end=True)
    plain_task = Task(target, pair.text, params, NoDrafter(), 0, guide=pair.guide(), details=False)
    task = replace(plain_task, drafter=drafter_of(mistake, draft), k=GREEDY_K, guide=pair.guide())
    plain, speculative = (
        [token for event in generate(one) if isinstance(event, Committed) for token in event.tokens]
        for one in (plain_task, mistake.apply(task, draft) if mistake else task)
    )
    same = next((i for i in range(pair.greedy) if plain[i : i + 1] != speculative[i : i + 1]), pair.greedy)
    start = 0 if same == pair.greedy else max(0, same - WINDOW // 2)
    told: dict[str, Any] = {"equal": same, "of": pair.greedy, "start": start, "gap": None}
    for name, text in (("plain", plain), ("speculative", speculative)):
        told[name] = [pair.piece(token) for token in text[start : start + WINDOW]]
    if same < pair.greedy:
        text = [*pair.text, *plain[:same]]
        row = target.forward(text, target.new_cache(len(text)))[-1].double()
        best = pair.masked(row, plain[:same]).topk(2).values
        told["gap"] = brief(best[0] - best[1])
    return told
