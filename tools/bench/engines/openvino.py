"""OpenVINO GenAI on a CPU: a draft model, or prompt lookup.

It reads GGUF files in float16, so weights are rounded to that; it computes in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from specdec.servers.in_process import Write
from specdec.types import SamplingParams

from ..gguf import convert
from .adapter import Asked, Engine, PLAIN

DEVICE, OPTIONS = "CPU", {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
NGRAM = 2  # the longest run of tokens that is looked up


def writer(asked: Asked) -> Write:
    import numpy as np
    import openvino as own
    import openvino_genai as genai

    target, draft = folders(asked)
    speculation: dict[str, dict[str, Any]] = {
        PLAIN: {}, "draft_model": {"draft_model": genai.draft_model(str(draft), DEVICE, **OPTIONS)},
        "prompt_lookup": {"prompt_lookup": True},
    }  # fmt: skip
    pipeline = genai.LLMPipeline(str(target), DEVICE, **OPTIONS, **speculation[asked.method])

    def write(prompt: Sequence[int], params: SamplingParams) -> list[int]:
        options = pipeline.get_generation_config()
        options.max_new_tokens, options.ignore_eos, options.rng_seed = params.max_tokens, True, params.seed
        options.do_sample = params.temperature > 0.0
        if options.do_sample:
            options.temperature, options.top_p = params.temperature, params.top_p
            options.top_k = params.top_k or options.top_k
        if asked.method != PLAIN:
            options.num_assistant_tokens = asked.k
        if asked.method == "prompt_lookup":
            options.max_ngram_size = NGRAM
        ids = own.Tensor(np.array([prompt], dtype=np.int64))
        written = pipeline.generate(genai.TokenizedInputs(ids, own.Tensor(np.ones_like(ids.data))), options)
        if told := written.extended_perf_metrics:
            asked.counts[:] = told.get_num_draft_tokens(), told.get_num_accepted_tokens()
        return list(written.tokens[0])

    return write


def folders(asked: Asked) -> list[Path]:
    """Target and draft as it saves them itself."""
    import openvino_genai as genai

    models = asked.target, asked.draft
    places = [asked.work / "openvino" / model.name for model in models]
    for model, place in zip(models, places, strict=True):
        if not place.exists():
            file = convert(model, place / "model.gguf", "f16")
            genai.LLMPipeline(str(file), DEVICE, enable_save_ov_model=True)
    return places


ENGINE = Engine("OpenVINO GenAI", "openvino-genai", (PLAIN, "draft_model", "prompt_lookup"), writer)
