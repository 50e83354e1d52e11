"""What one pass of SmolLM2-135M costs by precision, threads and rows, beside llama.cpp and transformers.

All take turns in every round, and the figures are medians. *Reading* is what a product of a vector with itself takes,
of as many bytes as the matrices have. Caches are warm, as they are in decoding. llama.cpp reads the same file, through
llama-cpp-python where that is installed.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from importlib.util import find_spec
from statistics import median
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

from specdec.families import star
from specdec.families.zoo import computed_in, PRECISIONS
from specdec.lanes.transformers import load_model
from specdec.models.native import Blocked
from specdec.models.transformer import Transformer

from .options import Options

ROWS = (1, 2, 3, 5, 6, 9, 17)
CONTEXT = 64  # tokens that a pass sees
TIMES, WARM = 5, 3  # passes of a width in a round; those before that are not measured
Pass = Callable[[int], object]  # of so many rows; it leaves the cache as it was


def report(options: Options) -> dict[str, Any]:
    file = star.find() or star.fetched()
    prompt = [(7 * i) % 40_000 for i in range(CONTEXT)]
    models = {
        name: Transformer.load(file, computed_in(dtype, "cpu")[0], "cpu", computed_in(dtype, "cpu")[1])
        for name, dtype in PRECISIONS.items()
    }
    bytes_of = {name: sum(map(read_in_a_step, matrices(model))) for name, model in models.items()}
    memory = torch.ones(max(bytes_of.values()) // 4)
    lanes = {("specdec", name): ours(model, prompt) for name, model in models.items()}
    lanes |= {("transformers", name): library(load_model(file, PRECISIONS[name], "cpu"), prompt) for name in BOTH}
    found: dict[tuple[str, str, int], list[list[float]]] = {}
    reading: dict[tuple[str, int], list[float]] = {}
    for threads in (1, 2):
        beside = {("llama.cpp", "gguf"): llama(str(file), prompt, threads)} if find_spec("llama_cpp") else {}
        torch.set_num_threads(threads)
        for _ in tqdm(range(options.repeats + 1), desc=f"{threads} threads"):
            for (engine, name), run in (lanes | beside).items():
                found.setdefault((engine, name, threads), []).append(round_of(run))
            for name, count in bytes_of.items():
                product = functools.partial(torch.dot, memory[: count // 4], memory[: count // 4])
                reading.setdefault((name, threads), []).append([timed(product) for _ in range(WARM + 1)][-1])
    rows = [row(*place, rounds[1:], bytes_of, reading) for place, rounds in found.items()]
    for one in rows:
        print(*(f"{value:.3g}" if isinstance(value, float) else value for value in one.values() if value is not None))
    version = metadata.version("llama-cpp-python") if find_spec("llama_cpp") else None
    return {"rows": rows, "models": {"family": star.NAME}, "llama_cpp_python": version}


BOTH = ("float32", "bfloat16")  # what transformers has as well


def row(
    engine: str, precision: str, threads: int, rounds: list[list[float]], bytes_of: dict[str, int],
    reading: dict[tuple[str, int], list[float]],
) -> dict[str, Any]:  # fmt: skip
    """`v` are costs of a pass in steps, each by the step of the same round."""
    read_seconds = median(reading[precision, threads][1:])
    return {
        "engine": engine, "precision": precision, "threads": threads, "step_ms": 1e3 * median(one[0] for one in rounds),
        "v": {str(rows): median(one[i] / one[0] for one in rounds) for i, rows in enumerate(ROWS)},
        "megabytes": bytes_of[precision] / 1e6, "reading_ms": 1e3 * read_seconds,
    }  # fmt: skip


def timed(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def round_of(run: Pass) -> list[float]:
    """Seconds by ROWS."""
    for _ in range(WARM):
        run(1)
    return [median(timed(functools.partial(run, rows)) for _ in range(TIMES)) for rows in ROWS]


def ours(model: Transformer, prompt: list[int]) -> Pass:
    cache = model.new_cache(2 * CONTEXT)
    model.forward(prompt, cache)

    def run(rows: int) -> None:
        model.forward([1] * rows, cache, rows=rows)
        cache.keep(CONTEXT)

    return run


def matrices(model: Transformer) -> Iterator[object]:
    for layer in model.layers:
        yield from (layer.qkv, layer.out, layer.gate_up, layer.down)
    yield model.head


def read_in_a_step(matrix: object) -> int:
    """Bytes of the weights and of what scales them."""
    if not isinstance(matrix, Blocked):
        raise ValueError("the layers in C++ are not compiled here; install g++")
    parts: list[Tensor] = [matrix.weights, *(part for part in matrix.others if part is not None)]
    return sum(part.numel() * part.itemsize for part in parts)


def library(model: Any, prompt: list[int]) -> Pass:
    """transformers' own forward, with its own cache."""
    from transformers import DynamicCache

    cache = DynamicCache()
    with torch.inference_mode():
        model(torch.tensor([prompt]), past_key_values=cache)

    def run(rows: int) -> None:
        with torch.inference_mode():
            model(torch.tensor([[1] * rows]), past_key_values=cache)
        cache.crop(-rows)

    return run


def llama(file: str, prompt: list[int], threads: int) -> Pass:
    from llama_cpp import Llama

    model = Llama(file, n_ctx=512, n_threads=threads, n_threads_batch=threads, logits_all=True, verbose=False)
    model.eval(prompt)

    def run(rows: int) -> None:
        model.eval([1] * rows)
        model.n_tokens = CONTEXT  # the next one overwrites what stands behind it

    return run
