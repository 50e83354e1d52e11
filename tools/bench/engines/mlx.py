"""mlx-lm on MLX's CPU build: a draft model, whose tokens count where the target draws the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from specdec.servers.in_process import Write
from specdec.types import SamplingParams

from .adapter import Engine, Job, PLAIN


def writer(job: Job) -> Write:
    import mlx.core as mx
    from mlx_lm.generate import generate_step, speculative_generate_step
    from mlx_lm.sample_utils import make_sampler

    target, draft = load(job.target), load(job.draft)

    def write(prompt: Sequence[int], params: SamplingParams) -> list[int]:
        mx.random.seed(params.seed)
        sampler = make_sampler(temp=params.temperature, top_p=params.top_p % 1.0, top_k=params.top_k)
        options: dict[str, Any] = {"max_tokens": params.max_tokens, "sampler": sampler}
        ids = mx.array(prompt)
        if job.method == PLAIN:
            return [int(token) for token, _ in generate_step(ids, target, **options)]
        tokens: list[int] = []
        begins, drafted, accepted_drafts = True, 0, 0
        for token, _, accepted in speculative_generate_step(ids, target, draft, num_draft_tokens=job.k, **options):
            drafted += min(job.k, params.max_tokens - len(tokens)) if begins else 0  # as it drafts a cycle
            accepted_drafts += accepted
            tokens.append(int(token))
            begins = not accepted
        job.counts = drafted, accepted_drafts
        return tokens

    return write


def load(folder: Path) -> Any:
    """Load a checkpoint in float32, whatever its file has."""
    import mlx.core as mx
    from mlx_lm.utils import load_model

    model, _ = load_model(folder)
    model.set_dtype(mx.float32)
    return model


ENGINE = Engine("mlx-lm", "mlx-lm", (PLAIN, "draft_model"), writer)
