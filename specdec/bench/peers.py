"""The peer to measure against: transformers' own generation on the same weights, dtype, prompts and lengths."""

from __future__ import annotations

import time
import warnings
from statistics import median
from typing import Any

import torch

from ..zoo import EMBEDDED, Family, load
from .prompts import PROMPTS

ASSISTED_K: tuple[int | None, ...] = (None, 2, 4, 8)  # None: the library's default schedule


class Peer:
    """The embedded pair in transformers. Times are of decoding alone: a run less a run of one token."""

    def __init__(self, dtype: torch.dtype) -> None:
        from transformers import AutoModelForCausalLM
        from transformers.utils import logging

        logging.set_verbosity_error()
        logging.disable_progress_bar()
        self.target = AutoModelForCausalLM.from_pretrained(EMBEDDED / "target", dtype=dtype).eval()
        self.draft = AutoModelForCausalLM.from_pretrained(EMBEDDED / "draft_model", dtype=dtype).eval()

    def seconds(self, ids: list[int], tokens: int, **options: Any) -> float:
        inputs = torch.tensor([ids])
        settings = {"do_sample": False, "max_new_tokens": tokens, "min_new_tokens": tokens, "pad_token_id": 0}
        with warnings.catch_warnings(), torch.inference_mode():
            warnings.simplefilter("ignore")
            start = time.perf_counter()
            out = self.target.generate(inputs, attention_mask=torch.ones_like(inputs), **settings, **options)
            elapsed = time.perf_counter() - start
        if out.shape[1] - len(ids) != tokens:
            raise RuntimeError(f"transformers wrote {out.shape[1] - len(ids)} tokens instead of {tokens}")
        return elapsed

    def assisted(self, ids: list[int], tokens: int, k: int | None) -> float:
        self.draft.generation_config.num_assistant_tokens = k or 20
        schedule = "constant" if k else "heuristic"
        self.draft.generation_config.num_assistant_tokens_schedule = schedule
        if k:
            self.draft.generation_config.assistant_confidence_threshold = 0.0
        return self.seconds(ids, tokens, assistant_model=self.draft)


def measure(family: Family, tokens: int, repeats: int) -> dict[str, Any]:
    """Tokens per second, medians over the domains; assisted generation at its best k. Greedy."""
    peer = Peer(family.target.dtype)
    ways: dict[str, Any] = {"transformers_generate": peer.seconds}
    for k in ASSISTED_K:
        ways[f"assisted k={k or 'default'}"] = lambda ids, n, k=k: peer.assisted(ids, n, k)
    rates: dict[str, list[float]] = {way: [] for way in ways}
    for prompts in PROMPTS.values():
        seconds: dict[str, list[float]] = {way: [] for way in ways}
        for repeat in range(-1, repeats):
            for prompt in prompts:
                ids = family.encode(prompt)
                for way, call in ways.items():
                    first, whole = call(ids, 1 if way == "transformers_generate" else 2), call(ids, tokens)
                    if repeat >= 0:
                        # assisted runs may give two tokens in their first cycle
                        extra = 1 if way == "transformers_generate" else 2
                        seconds[way].append((whole - first) / (tokens - extra))
        for way in ways:
            rates[way].append(1.0 / median(seconds[way]))
    generated = median(rates.pop("transformers_generate"))
    assisted = {way: round(median(values), 1) for way, values in rates.items()}
    best = max(assisted, key=lambda way: assisted[way])
    return {
        "transformers_generate": round(generated, 1),
        "transformers_assisted": assisted[best],
        "transformers_assisted_best": best.removeprefix("assisted "),
        "transformers_assisted_by_k": {way.removeprefix("assisted "): rate for way, rate in assisted.items()},
    }


def available() -> Family:
    return load("embedded")
