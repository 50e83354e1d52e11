"""transformers' assisted generation, always K tokens a draft, and its prompt lookup."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from specdec.servers.in_process import Write
from specdec.types import SamplingParams

from .adapter import Asked, Engine, PLAIN


def writer(asked: Asked) -> Write:
    target, draft = loaded(asked.target), loaded(asked.draft)
    draft.generation_config.num_assistant_tokens = asked.k
    draft.generation_config.num_assistant_tokens_schedule = "constant"
    draft.generation_config.assistant_confidence_threshold = 0.0  # by default a draft ends where it is unsure
    speculation: dict[str, dict[str, Any]] = {
        PLAIN: {}, "draft_model": {"assistant_model": draft}, "prompt_lookup": {"prompt_lookup_num_tokens": asked.k},
    }  # fmt: skip

    def write(prompt: Sequence[int], params: SamplingParams) -> list[int]:
        torch.manual_seed(params.seed)
        ids = torch.tensor([list(prompt)])
        options: dict[str, Any] = {"do_sample": False}
        if params.temperature:
            options = {"do_sample": True, "temperature": params.temperature, "top_p": params.top_p}
            options |= {"top_k": params.top_k or 0}
        out = target.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=params.max_tokens, pad_token_id=0, **options,
            **speculation[asked.method],
        )  # fmt: skip
        return out[0, len(prompt) :].tolist()  # type: ignore[no-any-return]

    return write


def loaded(folder: Path) -> Any:
    """In float32, and without an end: every text has the length that was asked for."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    model.generation_config.eos_token_id = None
    return model


ENGINE = Engine("transformers", "transformers", (PLAIN, "draft_model", "prompt_lookup"), writer)
