"""transformers' assisted generation, always K tokens a draft, and its prompt lookup."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from specdec.servers.in_process import Write
from specdec.types import SamplingParams

from .adapter import Engine, Job, PLAIN


def writer(job: Job) -> Write:
    target, draft = load(job.target), load(job.draft)
    draft.generation_config.num_assistant_tokens = job.k
    draft.generation_config.num_assistant_tokens_schedule = "constant"
    draft.generation_config.assistant_confidence_threshold = 0.0  # by default a draft ends where it is unsure
    speculation: dict[str, Any] = {"prompt_lookup_num_tokens": job.k} if job.method == "prompt_lookup" else {}
    if job.method == "draft_model":
        speculation = {"assistant_model": draft}

    def write(prompt: Sequence[int], params: SamplingParams) -> list[int]:
        torch.manual_seed(params.seed)
        ids = torch.tensor([list(prompt)])
        options: dict[str, Any] = {"max_new_tokens": params.max_tokens, "do_sample": params.temperature > 0.0}
        if params.temperature:
            options |= {"temperature": params.temperature, "top_p": params.top_p, "top_k": params.top_k or 0}
        mask = torch.ones_like(ids)
        out = target.generate(ids, attention_mask=mask, pad_token_id=0, **options, **speculation)
        return out[0, len(prompt) :].tolist()  # type: ignore[no-any-return]

    return write


def load(folder: Path) -> Any:
    """Load a checkpoint in float32, without an end token: every text has the length that is wanted."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    model.generation_config.eos_token_id = None
    return model


ENGINE = Engine("transformers", "transformers", (PLAIN, "draft_model", "prompt_lookup"), writer)
