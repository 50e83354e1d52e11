"""llama-cpp-python's own loop: prompt lookup, or what its interface takes, here the draft model's likeliest tokens."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from specdec.servers.in_process import Write
from specdec.types import SamplingParams

from ..gguf import convert
from .adapter import Asked, Engine, PLAIN


def writer(asked: Asked) -> Write:
    import numpy as np
    from llama_cpp import llama_speculative as own

    files = {model: model.with_suffix(".gguf") for model in (asked.target, asked.draft)}
    for model, file in files.items():
        if not file.exists():
            convert(model, file)

    class Second(own.LlamaDraftModel):  # type: ignore[misc]
        """The draft model's likeliest tokens."""

        model = loaded(files[asked.draft])

        def __call__(self, input_ids: Any, /, **_: Any) -> Any:
            tokens = self.model.generate(input_ids.tolist(), temp=0.0)
            return np.array(list(itertools.islice(tokens, asked.k)), dtype=np.intc)

    drafts = {"prompt_lookup": own.LlamaPromptLookupDecoding(num_pred_tokens=asked.k), "draft_model": Second()}
    target = loaded(files[asked.target], draft_model=drafts.get(asked.method))

    def write(prompt: Sequence[int], params: SamplingParams) -> list[int]:
        target.set_seed(params.seed)
        told = target.generate(
            list(prompt), temp=params.temperature, top_k=params.top_k, top_p=params.top_p, min_p=0.0, repeat_penalty=1.0
        )
        return [int(token) for token in itertools.islice(told, params.max_tokens)]

    return write


def loaded(path: Path, **options: Any) -> Any:
    from llama_cpp import Llama

    return Llama(str(path), n_ctx=512, n_threads=1, n_threads_batch=1, verbose=False, **options)


ENGINE = Engine("llama-cpp-python", "llama-cpp-python", (PLAIN, "draft_model", "prompt_lookup"), writer)
