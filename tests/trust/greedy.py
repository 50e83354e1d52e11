"""Greedy text in float32, token for token that of plain decoding: families, drafters, rules, K and prompts.

The models are tiny and random, with every way of drafting on them; the long form adds the embedded family.
"""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
import transformers
from toyheads import (
    adaptive,
    block_on,
    DRAFT,
    drafts_on,
    EXIT_LAYER,
    LAYERS,
    mtp_on,
    ours,
    quantised,
    view_of,
    WIDTH,
)
from toyheads import decoder as by_transformers

from specdec.drafters import Drafter
from specdec.engine import generate, Task
from specdec.events import Committed, Drafted, Failed
from specdec.families import zoo
from specdec.lanes.race import tasks
from specdec.methods import EXIT, Method, METHODS, MODEL
from specdec.models.transformer import Transformer
from specdec.models.view import TargetView
from specdec.rules import RULES
from specdec.types import SamplingParams

from .figures import all_of, at_least, Figure

SHAPE: dict[str, Any] = {
    "vocab_size": 23, "hidden_size": WIDTH, "intermediate_size": 48, "num_hidden_layers": LAYERS,
    "num_attention_heads": 2, "max_position_embeddings": 160, "pad_token_id": None, "bos_token_id": 0,
    "eos_token_id": 1,
}  # fmt: skip
FAMILIES = {
    "llama": transformers.LlamaConfig(**SHAPE, tie_word_embeddings=True),
    "mistral": transformers.MistralConfig(**SHAPE, num_key_value_heads=1, sliding_window=8),
    "qwen2": transformers.Qwen2Config(**SHAPE, num_key_value_heads=1),
    "qwen3": transformers.Qwen3Config(**SHAPE, num_key_value_heads=2, head_dim=16),
    "smollm3": transformers.SmolLM3Config(**SHAPE, num_key_value_heads=1),
    "seed_oss": transformers.SeedOssConfig(**SHAPE, num_key_value_heads=1, head_dim=16),
}
WORDS = {"drafters.medusa.MedusaHeads": "medusa", "drafters.eagle3.Eagle3Head": "eagle3"}
DEPTHS, TOKENS = (1, 2, 3, 5, 8), 24
GREEDY = SamplingParams(max_tokens=TOKENS)


@functools.cache
def family(name: str) -> tuple[Transformer, dict[str, Any]]:
    """A target, and what drafts for it, by the place of its class."""
    target = ours(by_transformers(FAMILIES[name], seed=sum(map(ord, name))))
    drafts = drafts_on(target)
    parts = {"": None, EXIT: EXIT_LAYER, MODEL: DRAFT}
    parts |= {
        "models.quantised.QuantisedCopy": quantised(DRAFT),
        "drafters.block.BlockHead": block_on(target),
        "drafters.mtp.MTPHead": mtp_on(target),
    }
    return target, parts | {place: drafts[name] for place, name in WORDS.items()}


DRAFTERS: list[tuple[Method, bool]] = [
    (method, adapted)
    for method, adapted in itertools.product(METHODS.values(), (False, True))
    if method.kind not in ("wrapper", "none") and (method.tree or not method.variant_of)
]


@functools.cache
def prompt(number: int) -> tuple[int, ...]:
    """Some repeat themselves, so that there is something to look up."""
    rng = random.Random(number)
    text = [rng.randrange(23) for _ in range(rng.randint(1, 12))]
    return tuple(text * rng.randint(1, 2))


def drafter(parts: dict[str, Any], method: Method, adapted: bool, view: TargetView) -> Drafter:
    def make(view: TargetView) -> Drafter:
        return method.make(view, parts[method.part], 160)

    return adaptive(make)(view) if adapted else make(view)


@functools.cache
def plain(name: str, number: int) -> list[int]:
    return text_of(Task(view_of(family(name)[0]), prompt(number), GREEDY, k=0, details=False))[0]


def text_of(task: Task) -> tuple[list[int], int]:
    """Its tokens, and how many were drafted. A drafter that failed wrote nothing."""
    tokens, drafted = list[int](), 0
    for event in generate(task):
        if isinstance(event, Failed):
            return [], 0
        if isinstance(event, Committed):
            tokens += event.tokens
        drafted += len(event.tokens) if isinstance(event, Drafted) else 0
    return tokens, drafted


def same(name: str, which: tuple[Method, bool], rule: str, k: int, number: int) -> tuple[bool, int]:
    target, parts = family(name)
    view = view_of(target)
    task = Task(view, prompt(number), GREEDY, drafter(parts, *which, view), k, RULES[rule](), details=False)
    tokens, drafted = text_of(task)
    return tokens == plain(name, number), drafted


def combinations(prompts: int) -> list[tuple[str, tuple[Method, bool], str, int, int]]:
    every = itertools.product(FAMILIES, DRAFTERS, RULES, DEPTHS, range(prompts))
    return [one for one in every if not one[1][0].tree or RULES[one[2]].trees]


def embedded(prompts: Sequence[str]) -> list[bool]:
    whole = zoo.load(dtype=torch.float32)
    equal = []
    for text, name, k in itertools.product(prompts, METHODS, (2, 5)):
        if name == "none" or name not in whole.drafters:
            continue
        lanes = tasks(whole, text, name, k, GREEDY, details=False)
        equal.append(text_of(lanes["speculative"])[0] == text_of(replace(lanes["plain"]))[0])
    return equal


def count(long: bool) -> list[Figure]:
    chosen = combinations(5)
    random.Random(4).shuffle(chosen)
    chosen = chosen if long else chosen[:600]
    found = [same(*one) for one in chosen]
    equal = [ok for ok, _ in found]
    if long:
        equal += embedded(["Once upon a time", "def main(", "The capital of France is", "The old lighthouse keeper"])
    names = {(which[0].name, which[1]) for _, which, _, _, _ in chosen}
    return [
        all_of("texts equal to plain decoding's", sum(equal), len(equal), 10_000 if long else 600),
        at_least("drafters among them, with adapted ones", len(names), len(DRAFTERS)),
        at_least("tokens drafted on the way", sum(drafted for _, drafted in found), len(chosen) * 10),
    ]
