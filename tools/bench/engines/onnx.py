"""ONNX Runtime GenAI: a draft model beside the target (`model.draft`), or n-grams of the text."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from specdec.servers.in_process import Write
from specdec.types import SamplingParams

from .adapter import Engine, Job, PLAIN

NGRAM = 2  # the shortest run of tokens that is looked up


def writer(job: Job) -> Write:
    import onnxruntime_genai as own

    model = own.Model(str(written(job)))

    def write(prompt: Sequence[int], params: SamplingParams) -> list[int]:
        search: dict[str, Any] = {"max_length": len(prompt) + params.max_tokens, "random_seed": params.seed}
        search |= {"temperature": params.temperature or 1.0, "top_k": params.top_k, "top_p": params.top_p}
        options = own.GeneratorParams(model)
        options.set_search_options(do_sample=params.temperature > 0.0, **search)
        generator = own.Generator(model, options)
        generator.append_tokens(list(prompt))
        while not generator.is_done():
            generator.generate_next_token()
        if job.method != PLAIN:
            stats = generator.get_speculative_stats()
            job.counts = stats["draft_tokens_proposed"], stats["draft_tokens_accepted"]
        return generator.get_sequence(0)[len(prompt) :].tolist()  # type: ignore[no-any-return]

    return write


def written(job: Job) -> Path:
    """Write the target, with the draft model in it, by the engine's own builder; return the folder."""
    place = job.work / f"onnx-{job.method}-{job.k}"
    settings = build(job.target, place)
    settings["model"]["eos_token_id"] = job.unused
    if job.method == "draft_model":
        draft = build(job.draft, place / "draft")["model"]["decoder"]
        settings["model"] |= {"type": "speculative", "draft": draft | {"filename": "draft/model.onnx"}}
        settings["speculative"] = {"max_draft_tokens": job.k}
    if job.method == "ngram":
        settings["speculative"] = {"max_draft_tokens": job.k, "ngram_size": NGRAM}
    (place / "genai_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return place


def build(model: Path, place: Path) -> dict[str, Any]:
    """Write a model in float32; return its genai_config.json."""
    command = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-m", str(model), "-o", str(place)]
    command += ["-p", "fp32", "-e", "cpu", "-c", str(place.with_name("cache"))]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    settings: dict[str, Any] = json.loads((place / "genai_config.json").read_text(encoding="utf-8"))
    settings["model"]["decoder"]["session_options"] |= {"intra_op_num_threads": 1}
    return settings


ENGINE = Engine("ONNX Runtime GenAI", "onnxruntime-genai", (PLAIN, "draft_model", "ngram"), writer)
