"""transformers' own generation at a published shape, with random weights: what `shapes.py` is held against.

Assisted generation has no synthetic acceptance: its cost per cycle is measured at a constant K; with our tokens per
cycle that gives a time per token.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from statistics import median
from typing import Any

import torch

from specdec.models.device import configure_cuda

from . import shapes
from .peers import seconds_per_step

K = 4


def measure(at: Any, names: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Yield a row for each lane of `names`: the median of its seconds per step, one warm-up left out.

    A step is a token, and in the lane *assisted* a cycle.
    """
    configure_cuda(at.device)
    small, large = (load(shapes.SHAPES[name], at.device) for name in shapes.PAIRS[at.pair])
    ids = torch.tensor([shapes.random_prompt(at.contexts[0], large.config.vocab_size)], device=at.device)
    lanes = {
        "generate": lambda n: write(large, ids, n),
        "assisted": lambda n: count_cycles(large, small, ids, n),
        "static": lambda n: write(large, ids, n, cache_implementation="static"),
    }
    for name in names:
        spent = [seconds_per_step(lanes[name], at.tokens, at.device) for _ in range(at.repeats + 1)][1:]
        yield {"lane": name, "k": K if name == "assisted" else 0, "seconds_per_step": median(spent)}


def load(shape: dict[str, Any], device: str) -> Any:
    """Make a model of that shape with random weights."""
    from transformers import AutoConfig, AutoModelForCausalLM

    fields = {name: value for name, value in shape.items() if name != "rope_theta"}
    rope = {"rope_type": "default", "rope_theta": shape.get("rope_theta", 1e4)}
    config = AutoConfig.for_model(**fields, rope_parameters=rope)
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(config, dtype=dtype).eval()
    model.generation_config.eos_token_id = None  # every run has the same length
    return model


def write(large: Any, ids: torch.Tensor, tokens: int, **options: Any) -> int:
    """Generate greedily; return the number of tokens."""
    settings = {"do_sample": False, "max_new_tokens": tokens, "pad_token_id": 0}
    with warnings.catch_warnings(), torch.inference_mode():
        warnings.simplefilter("ignore")
        out = large.generate(ids, attention_mask=torch.ones_like(ids), **settings, **options)
    return int(out.shape[1] - ids.shape[1])


def count_cycles(large: Any, small: Any, ids: torch.Tensor, tokens: int) -> int:
    """Generate with `small` as the assistant; return the number of cycles: passes of `large` over K + 1 rows."""
    settings = small.generation_config
    settings.num_assistant_tokens, settings.num_assistant_tokens_schedule = K, "constant"
    settings.assistant_confidence_threshold = 0.0  # always K tokens
    cycles = 0

    def count(*_: Any) -> None:
        nonlocal cycles
        cycles += 1

    hook = large.register_forward_pre_hook(count)
    try:
        write(large, ids, tokens, assistant_model=small)
    finally:
        hook.remove()
    return cycles
