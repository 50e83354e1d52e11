"""Measure transformers' own generation with the weights, dtype, prompts and lengths of our runs, for comparison."""

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import median
from typing import Any

import torch
from tqdm import tqdm

from specdec.bench.measure import Case, run
from specdec.engine import Engine
from specdec.families.zoo import Family
from specdec.lanes.transformers import load_model, unwrapped
from specdec.methods import DRAFT_MODEL

ASSISTED_K: tuple[int | None, ...] = (None, 2, 4, 8)  # None: the library's default
Write = Callable[[str, int], list[int]]  # (prompt, number of new tokens) -> ids of the new tokens


class Peer:
    """A family's target and draft model in transformers, from the same files. Raises ValueError without a draft."""

    def __init__(self, family: Family) -> None:
        if DRAFT_MODEL not in family.drafts:
            raise ValueError("assisted generation needs a draft model")
        self.family, self.device = family, family.target.device
        self.target, self.draft = (
            load_model(folder, family.target.dtype, self.device)
            for model in (family.target, family.drafts[DRAFT_MODEL])
            if (folder := unwrapped(model).source)
        )
        # Without an end token every run has the same length; `min_new_tokens` would add work to every step.
        self.target.generation_config.eos_token_id = self.draft.generation_config.eos_token_id = None

    def generate(self, prompt: str, tokens: int, **options: Any) -> list[int]:
        return generate(self.target, self.family.encode(prompt), tokens, **options)

    def assisted(self, k: int | None, prompt: str, tokens: int) -> list[int]:
        """Run assisted generation with `k` draft tokens in every step; with the library's defaults if `k` is None."""
        default = self.draft.generation_config
        if k is not None:
            constant = {"num_assistant_tokens_schedule": "constant", "assistant_confidence_threshold": 0.0}
            self.draft.generation_config = type(default)(**default.to_dict() | constant | {"num_assistant_tokens": k})
        try:
            return self.generate(prompt, tokens, assistant_model=self.draft)
        finally:
            self.draft.generation_config = default


def generate(model: Any, prompt: Sequence[int], tokens: int, **options: Any) -> list[int]:
    """Write `tokens` tokens greedily with a model of transformers. Raises RuntimeError if it writes fewer."""
    ids = torch.tensor([prompt], device=model.device)
    settings = {"do_sample": False, "max_new_tokens": tokens, "pad_token_id": 0}
    with warnings.catch_warnings(), torch.inference_mode():
        warnings.simplefilter("ignore")
        out = model.generate(ids, attention_mask=torch.ones_like(ids), **settings, **options)
    written: list[int] = out[0, len(prompt) :].tolist()
    if len(written) != tokens:
        raise RuntimeError(f"transformers wrote {len(written)} tokens instead of {tokens}")
    return written


def seconds_per_step(run_and_count: Callable[[int], int], tokens: int, device: str = "cpu") -> float:
    """Time a run of 2 tokens and a run of `tokens` tokens. Return how many seconds each extra token takes.

    Setup and prefill thus do not count. `run_and_count(n)` writes n tokens and returns their number.
    """
    times, steps = [], []
    for count in (2, tokens):
        start = time.perf_counter()
        steps.append(run_and_count(count))
        if device != "cpu":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return (times[1] - times[0]) / max(1, steps[1] - steps[0])


def write(engine: Engine, case: Case, prompt: str, tokens: int) -> list[int]:
    return run(engine, prompt, case.drafter, case.k, case.params(tokens, 0)).ids


def measure(
    engine: Engine, prompts: Mapping[str, Sequence[str]], best: dict[str, Case], tokens: int, repeats: int
) -> dict[str, Any]:
    """Return tokens per second, as medians over the domains.

    Our lanes take turns with those of transformers, so that slow moments of the machine slow all.
    """
    peer, identical = Peer(engine.models), 0
    plain = partial(write, engine, Case("none", "", 0.0, 0))
    assisted: dict[str, Write] = {f"k={k or 'default'}": partial(peer.assisted, k) for k in ASSISTED_K}
    rates: dict[str, list[float]] = {}
    for domain, texts in tqdm(prompts.items(), desc="peers", unit="domain"):
        lanes: dict[str, Write] = {
            "plain_beside_them": plain,
            "speculative_beside_them": partial(write, engine, best[domain]),
            "transformers_generate": peer.generate,
            **assisted,
        }
        identical += sum(peer.generate(prompt, tokens) == plain(prompt, tokens) for prompt in texts)  # also warms up
        seconds: dict[str, list[float]] = {name: [] for name in lanes}
        for repeat in range(-1, repeats):  # the first round warms up
            for prompt in texts:
                for name, lane in lanes.items():
                    step_s = seconds_per_step(lambda n, lane=lane, text=prompt: len(lane(text, n)), tokens, peer.device)  # type: ignore[misc]
                    seconds[name] += [step_s] if repeat >= 0 else []
        for name, times in seconds.items():
            rates.setdefault(name, []).append(1.0 / median(times))
    medians = {name: round(median(values), 1) for name, values in rates.items()}
    by_k = {name: medians.pop(name) for name in assisted}
    best_k = max(by_k, key=lambda name: by_k[name])
    return {
        **medians,
        "transformers_assisted": by_k[best_k],
        "transformers_assisted_best": best_k,
        "transformers_assisted_by_k": by_k,
        "prompts_with_identical_text": f"{identical} of {sum(map(len, prompts.values()))}",
    }
