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

from .adapter import Asked, Engine, PLAIN

NGRAM = 2  # the shortest run of tokens that is looked up


def writer(asked: Asked) -> Write:
    import onnxruntime_genai as own

    model = own.Model(str(folder(asked)))

    def write(prompt: Sequence[int], params: SamplingParams) -> list[int]:
        options = own.GeneratorParams(model)
        options.set_search_options(
            do_sample=params.temperature > 0.0, temperature=params.temperature or 1.0, top_k=params.top_k,
            top_p=params.top_p, max_length=len(prompt) + params.max_tokens, random_seed=params.seed,
        )  # fmt: skip
        generator = own.Generator(model, options)
        generator.append_tokens(list(prompt))
        while not generator.is_done():
            generator.generate_next_token()
        asked.counts[:] = told(generator) if asked.method != PLAIN else []
        return generator.get_sequence(0)[len(prompt) :].tolist()  # type: ignore[no-any-return]

    return write


def told(generator: Any) -> list[int]:
    stats = generator.get_speculative_stats()
    return [stats["draft_tokens_proposed"], stats["draft_tokens_accepted"]]


def folder(asked: Asked) -> Path:
    """The target with the draft inside, as its own builder writes them, in float32."""
    place = asked.work / f"onnx-{asked.method}-{asked.k}"
    if not place.exists():
        built(asked.target, place)
        settings = json.loads((place / "genai_config.json").read_text(encoding="utf-8"))
        settings["model"]["eos_token_id"] = asked.unused
        if asked.method == "draft_model":
            built(asked.draft, place / "draft")
            draft = json.loads((place / "draft" / "genai_config.json").read_text(encoding="utf-8"))["model"]["decoder"]
            settings["model"] |= {"type": "speculative", "draft": draft | {"filename": "draft/model.onnx"}}
        for one in {"decoder", "draft"} & set(settings["model"]):
            settings["model"][one]["session_options"] |= {"intra_op_num_threads": 1}
        if asked.method != PLAIN:
            ngrams = {"ngram_size": NGRAM} if asked.method == "ngram" else {}
            settings["speculative"] = {"max_draft_tokens": asked.k} | ngrams
        (place / "genai_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return place


def built(model: Path, place: Path) -> None:
    command = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-m", str(model), "-o", str(place)]
    command += ["-p", "fp32", "-e", "cpu", "-c", str(place.with_name("cache"))]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


ENGINE = Engine("ONNX Runtime GenAI", "onnxruntime-genai", (PLAIN, "draft_model", "ngram"), writer)
