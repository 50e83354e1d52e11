"""llama-cpp-python's own loop: prompt lookup, or what its interface takes, here the draft model's likeliest tokens."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from specdec.servers.in_process import Write
from specdec.types import SamplingParams

from .adapter import Engine, Job, PLAIN
from .gguf import convert


def writer(job: Job) -> Write:
    import numpy as np
    from llama_cpp import llama_speculative as own

    target_file, draft_file = (convert(model, model.with_suffix(".gguf")) for model in (job.target, job.draft))

    class DraftModel(own.LlamaDraftModel):  # type: ignore[misc]
        model = load(draft_file)

        def __call__(self, input_ids: Any, /, **_: Any) -> Any:
            tokens = self.model.generate(input_ids.tolist(), temp=0.0)
            return np.array(list(islice(tokens, job.k)), dtype=np.intc)

    drafts = {"prompt_lookup": own.LlamaPromptLookupDecoding(num_pred_tokens=job.k), "draft_model": DraftModel()}
    target = load(target_file, draft_model=drafts.get(job.method))

    def write(prompt: Sequence[int], params: SamplingParams) -> list[int]:
        target.set_seed(params.seed)
        filters = {"top_k": params.top_k, "top_p": params.top_p, "min_p": 0.0}
        tokens = target.generate(list(prompt), temp=params.temperature, repeat_penalty=1.0, **filters)
        return [int(token) for token in islice(tokens, params.max_tokens)]

    return write


def load(path: Path, **options: Any) -> Any:
    from llama_cpp import Llama

    return Llama(str(path), n_ctx=512, n_threads=1, n_threads_batch=1, verbose=False, **options)


ENGINE = Engine("llama-cpp-python", "llama-cpp-python", (PLAIN, "draft_model", "prompt_lookup"), writer)
