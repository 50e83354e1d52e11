"""transformers' own generation at a published shape, with random weights: what `shapes.py` is held against.

Eager, with a static cache (which that library compiles on a GPU), and with prompt lookup. Assisted generation has no
synthetic acceptance: its cost per cycle is measured at a constant K; with our tokens per cycle that gives a time per
token.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Any

import torch
from tqdm import tqdm

from .peers import seconds_per_step


def measure(
    draft: dict[str, Any], target: dict[str, Any], prompt: Sequence[int], depths: Sequence[int], tokens: int,
    repeats: int, dtype: torch.dtype, device: str,
) -> dict[str, Any]:  # fmt: skip
    """Seconds per token without a draft model, and per cycle of assisted generation by K; medians, lanes in turns."""
    known = lanes(draft, target, prompt, depths, dtype, device)
    seconds: dict[str, list[float]] = {name: [] for name in known}
    for repeat in tqdm(range(-1, repeats), desc="transformers", unit="round"):
        for name, lane in known.items():
            spent = seconds_per_step(lane, tokens, device)
            if repeat >= 0:
                seconds[name].append(spent)
    found = {name: median(values) for name, values in seconds.items()}
    cycles = {k: found.pop(f"assisted_k={k}") for k in depths}
    return {"seconds_per_token": found, "assisted_seconds_per_cycle": cycles}


def each(
    draft: dict[str, Any], target: dict[str, Any], prompt: Sequence[int], depths: Sequence[int], tokens: int,
    repeats: int, dtype: torch.dtype, device: str,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """The same, lane after lane: for a machine that may be gone before all are through."""
    for name, lane in lanes(draft, target, prompt, depths, dtype, device).items():
        spent = [seconds_per_step(lane, tokens, device) for _ in range(-1, repeats)][1:]
        yield {"lane": name, "tokens": tokens, "seconds_per_step": median(spent), "of": sorted(spent)}


def lanes(
    draft: dict[str, Any], target: dict[str, Any], prompt: Sequence[int], depths: Sequence[int], dtype: torch.dtype,
    device: str,
) -> dict[str, Callable[[int], int]]:  # fmt: skip
    """tokens -> steps taken: tokens written, or cycles of assisted generation. What compiles for minutes comes last."""
    small, large = model(draft, dtype, device), model(target, dtype, device)
    ids = torch.tensor([list(prompt)], device=device)
    known: dict[str, Callable[[int], int]] = {"generate": lambda n: write(large, ids, n)}
    longest = max(depths)
    known["generate_prompt_lookup"] = lambda n: write(large, ids, n, prompt_lookup_num_tokens=longest)
    known |= {f"assisted_k={k}": lambda n, k=k: assisted(large, small, k, ids, n) for k in depths}  # type: ignore[misc]
    if device != "cpu":
        known["generate_static_compiled"] = lambda n: write(large, ids, n, cache_implementation="static")
    return known


def model(shape: dict[str, Any], dtype: torch.dtype, device: str) -> Any:
    from transformers import AutoConfig, AutoModelForCausalLM

    fields = {name: value for name, value in shape.items() if name not in ("rope_theta", "rope_scaling")}
    rope = {"rope_type": "default", "rope_theta": shape.get("rope_theta", 1e4), **shape.get("rope_scaling", {})}
    config = AutoConfig.for_model(**fields, rope_parameters=rope)
    with torch.device(device):
        made = AutoModelForCausalLM.from_config(config, dtype=dtype).eval()
    made.generation_config.eos_token_id = None  # every run has the same length
    return made


def write(large: Any, ids: torch.Tensor, tokens: int, **options: Any) -> int:
    """Greedy; the number of tokens."""
    with warnings.catch_warnings(), torch.inference_mode():
        warnings.simplefilter("ignore")
        mask = torch.ones_like(ids)
        out = large.generate(
            ids, attention_mask=mask, do_sample=False, max_new_tokens=tokens, pad_token_id=0, **options
        )
    return int(out.shape[1] - ids.shape[1])


def assisted(large: Any, small: Any, k: int, ids: torch.Tensor, tokens: int) -> int:
    """The number of cycles, seen where its candidate generator is asked for a draft."""
    settings = small.generation_config
    settings.num_assistant_tokens, settings.num_assistant_tokens_schedule = k, "constant"
    settings.assistant_confidence_threshold = 0.0  # always k tokens
    cycles, make = 0, type(large)._get_candidate_generator

    def watched(**options: Any) -> Any:
        generator = make(large, **options)
        draft = generator.get_candidates

        def counted(*inputs: Any, **named: Any) -> Any:
            nonlocal cycles
            cycles += 1
            return draft(*inputs, **named)

        generator.get_candidates = counted
        return generator

    large._get_candidate_generator = watched
    try:
        write(large, ids, tokens, assistant_model=small)
    finally:
        del large._get_candidate_generator
    return cycles
