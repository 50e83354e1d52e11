"""The peer to measure against: transformers' own generation on the same weights, dtype, prompts and lengths."""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import median
from typing import Any

import torch
from tqdm import tqdm

from specdec.bench.measure import run, Setting
from specdec.families.zoo import Family
from specdec.lanes.race import SPECULATIVE, tasks
from specdec.lanes.transformers import checked, load_model

ASSISTED_K: tuple[int | None, ...] = (None, 2, 4, 8)  # None: the library's default
LOOKUP_K = 10  # of its prompt lookup, as its documentation has it


class Peer:
    """A family's target and draft model in transformers, from the same files, greedy."""

    def __init__(self, family: Family) -> None:
        if family.draft is None:
            raise ValueError("assisted generation needs a draft model")
        self.family, self.device = family, family.target.device
        self.target, self.draft = (
            load_model(folder, family.target.dtype, self.device)
            for model in (family.target, family.draft)
            if (folder := checked(model).source)
        )
        # No end token: every run has the same length, and no logits processor is needed to keep it going.
        self.target.generation_config.eos_token_id = self.draft.generation_config.eos_token_id = None
        self.default = self.draft.generation_config

    def generate(self, prompt: str, tokens: int) -> list[int]:
        """Plain generation; the ids that it wrote."""
        return self._write(prompt, tokens)

    def assisted(self, k: int | None, prompt: str, tokens: int) -> list[int]:
        """Assisted generation with `k` draft tokens, or with the library's defaults."""
        settings = copy.deepcopy(self.default)
        if k is not None:
            settings.num_assistant_tokens = k
            settings.num_assistant_tokens_schedule = "constant"
            settings.assistant_confidence_threshold = 0.0  # always k tokens
        self.draft.generation_config = settings
        return self._write(prompt, tokens, assistant_model=self.draft)

    def lookup(self, prompt: str, tokens: int) -> list[int]:
        return self._write(prompt, tokens, prompt_lookup_num_tokens=LOOKUP_K)

    def compiled(self, prompt: str, tokens: int) -> list[int]:
        """Plain generation with a static cache, which the library compiles on a GPU."""
        return self._write(prompt, tokens, cache_implementation="static")

    def _write(self, prompt: str, tokens: int, **options: Any) -> list[int]:
        ids = torch.tensor([self.family.encode(prompt)], device=self.device)
        settings = {"do_sample": False, "max_new_tokens": tokens, "pad_token_id": 0}
        with warnings.catch_warnings(), torch.inference_mode():
            warnings.simplefilter("ignore")
            out = self.target.generate(ids, attention_mask=torch.ones_like(ids), **settings, **options)
        written: list[int] = out[0, ids.shape[1] :].tolist()
        if len(written) != tokens:
            raise RuntimeError(f"transformers wrote {len(written)} tokens instead of {tokens}")
        return written


def seconds_per_step(run: Callable[[int], int], tokens: int, device: str = "cpu") -> float:
    """Wall clock of a run of `tokens` less that of one of 2, over the steps that `run` counts between them.

    So what setting up and prefilling cost is not counted.
    """
    times, steps = [], []
    for count in (2, tokens):
        start = time.perf_counter()
        steps.append(run(count))
        if device != "cpu":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return (times[1] - times[0]) / max(1, steps[1] - steps[0])


def write(family: Family, setting: Setting, prompt: str, tokens: int) -> list[int]:
    """One run with all its events, as a reader gets them; its ids."""
    params = setting.params(tokens, 0)
    return run(tasks(family, prompt, setting.drafter, setting.k, params, details=False)[SPECULATIVE]).ids


def per_token(call: Callable[[str, int], list[int]], prompt: str, tokens: int, device: str) -> float:
    return seconds_per_step(lambda count: len(call(prompt, count)), tokens, device)


def measure(
    family: Family, prompts: Mapping[str, Sequence[str]], best: dict[str, Setting], tokens: int, repeats: int
) -> dict[str, Any]:
    """Tokens per second, medians over the domains; assisted generation at its best k. On a GPU two peers more.

    Our own two lanes, `best` a domain, run between the peers' runs, so that ratios compare neighbours.
    """
    peer = Peer(family)
    plain = Setting("none", "", 0.0, 0)
    theirs: dict[str, Callable[[str, int], list[int]]] = {"transformers_generate": peer.generate}
    if peer.device != "cpu":
        theirs |= {"transformers_static_compiled": peer.compiled, "transformers_prompt_lookup": peer.lookup}
    theirs |= {f"k={k or 'default'}": partial(peer.assisted, k) for k in ASSISTED_K}
    names = ["plain", "speculative", *theirs]
    rates: dict[str, list[float]] = {name: [] for name in names}
    same = 0
    for domain, texts in tqdm(prompts.items(), desc="peers", unit="domain"):
        calls: list[Callable[[str, int], list[int]]] = [
            partial(write, family, plain),
            partial(write, family, best[domain]),
            *theirs.values(),
        ]
        seconds: dict[str, list[float]] = {name: [] for name in names}
        for repeat in range(-1, repeats):  # the first round warms up
            for prompt in texts:
                for name, call in zip(names, calls, strict=True):
                    spent = per_token(call, prompt, tokens, peer.device)
                    if repeat >= 0:
                        seconds[name].append(spent)
                    elif name == "transformers_generate":
                        same += call(prompt, tokens) == write(family, plain, prompt, tokens)
        for name in names:
            rates[name].append(1.0 / median(seconds[name]))
    medians = {name: round(median(values), 1) for name, values in rates.items()}
    assisted = {name: medians.pop(name) for name in names if name.startswith("k=")}
    best_k = max(assisted, key=lambda name: assisted[name])
    return {
        **{name: rate for name, rate in medians.items() if name in theirs},
        "transformers_assisted": assisted[best_k],
        "transformers_assisted_best": best_k,
        "transformers_assisted_by_k": assisted,
        "prompts_with_identical_text": f"{same} of {sum(map(len, prompts.values()))}",
        "plain_beside_them": medians["plain"],
        "speculative_beside_them": medians["speculative"],
    }
