"""OpenVINO GenAI on a CPU: a draft model, or prompt lookup. Weights are rounded to float16, all else is float32."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from specdec.servers.in_process import Write
from specdec.types import SamplingParams

from .adapter import Engine, Job, PLAIN
from .gguf import convert

OPTIONS = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
NGRAM = 2  # the longest run of tokens that is looked up


def writer(job: Job) -> Write:
    import numpy as np
    import openvino as own
    import openvino_genai as genai

    speculation: dict[str, Any] = {"prompt_lookup": True} if job.method == "prompt_lookup" else {}
    if job.method == "draft_model":
        speculation["draft_model"] = genai.draft_model(saved(job.draft), "CPU", **OPTIONS)
    pipeline = genai.LLMPipeline(saved(job.target), "CPU", **OPTIONS, **speculation)

    def write(prompt: Sequence[int], params: SamplingParams) -> list[int]:
        config = pipeline.get_generation_config()
        config.max_new_tokens, config.ignore_eos, config.rng_seed = params.max_tokens, True, params.seed
        if params.temperature:
            config.do_sample, config.temperature, config.top_p = True, params.temperature, params.top_p
            config.top_k = params.top_k or config.top_k
        if job.method != PLAIN:
            config.num_assistant_tokens = job.k
        if job.method == "prompt_lookup":
            config.max_ngram_size = NGRAM
        ids = own.Tensor(np.array([prompt], dtype=np.int64))
        result = pipeline.generate(genai.TokenizedInputs(ids, own.Tensor(np.ones_like(ids.data))), config)
        if metrics := result.extended_perf_metrics:
            job.counts = metrics.get_num_draft_tokens(), metrics.get_num_accepted_tokens()
        return list(result.tokens[0])

    return write


def saved(model: Path) -> str:
    """Return the folder of the model as OpenVINO saves it itself."""
    import openvino_genai as genai

    place = model.parent / "openvino" / model.name
    if not place.exists():
        genai.LLMPipeline(str(convert(model, place / "model.gguf", "f16")), "CPU", enable_save_ov_model=True)
    return str(place)


ENGINE = Engine("OpenVINO GenAI", "openvino-genai", (PLAIN, "draft_model", "prompt_lookup"), writer)
