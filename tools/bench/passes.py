"""Measure a pass of SmolLM2-135M by precision, threads and rows (tokens), in our engine, llama.cpp and transformers.

The engines take turns in every round, and the figures are medians. The column *reading* is the time to read as many
bytes as the matrices have. llama.cpp runs the file that our engine loads, if llama-cpp-python is installed.
"""

from collections.abc import Callable
from importlib import metadata
from importlib.util import find_spec
from inspect import signature
from statistics import median
from typing import Any

import torch
from tqdm import tqdm

from specdec.families import hub, smollm2
from specdec.families.zoo import compute_dtypes, PRECISIONS
from specdec.lanes.transformers import load_model
from specdec.models.native import Blocked
from specdec.models.transformer import Transformer

from .options import Options
from .shapes import time_once

ROWS = (1, 2, 3, 5, 6, 9, 17)
CONTEXT = 64  # tokens in the cache before a pass
TIMES = 5  # passes for each number of rows in a round
WARM = 1  # extra measurements to warm up; their times are thrown away
Pass = Callable[[int], object]  # runs a pass with this number of rows, and rolls the cache back


def report(options: Options) -> dict[str, Any]:
    file = hub.find(smollm2.NAME)
    prompt = [(7 * i) % 40_000 for i in range(CONTEXT)]
    lanes: dict[tuple[str, str], Pass] = {}
    size = {}  # bytes that a step reads, by precision
    for name, dtype in PRECISIONS.items():
        model = Transformer.load(file, compute_dtypes(dtype, "cpu")[0], "cpu", compute_dtypes(dtype, "cpu")[1])
        lanes["specdec", name] = specdec_pass(model, prompt)
        size[name] = bytes_of(model)
    for name in ("float32", "bfloat16"):
        lanes["transformers", name] = transformers_pass(load_model(file, PRECISIONS[name], "cpu"), prompt)
    memory = torch.ones(max(size.values()) // 4)
    entries = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        if find_spec("llama_cpp"):
            lanes["llama.cpp", "gguf"] = llama_cpp_pass(str(file), prompt, threads)
        seconds: dict[tuple[str, str], list[list[float]]] = {}
        reading: dict[str, list[float]] = {}
        for _ in tqdm(range(options.repeats + 1), desc=f"{threads} threads"):
            for lane, run in lanes.items():
                seconds.setdefault(lane, []).append([time_pass(run, rows) for rows in (*[1] * WARM, *ROWS)][WARM:])
            for name, count in size.items():
                part = memory[: count // 4]
                reading.setdefault(name, []).append(time_pass(lambda _, part=part: torch.dot(part, part), 1))  # type: ignore[misc]
        for (engine, name), (_, *rounds) in seconds.items():
            entry = {
                "engine": engine,
                "precision": name,
                "threads": threads,
                "step_ms": 1e3 * median(times[0] for times in rounds),
                "v": {str(n): median(times[i] / times[0] for times in rounds) for i, n in enumerate(ROWS)},
                "megabytes": size[name] / 1e6,
                "reading_ms": 1e3 * median(reading[name][1:]),
            }
            print(*entry.values())
            entries.append(entry)
    version = metadata.version("llama-cpp-python") if find_spec("llama_cpp") else None
    return {"rows": entries, "models": {"family": smollm2.NAME}, "llama_cpp_python": version}


def time_pass(run: Pass, rows: int) -> float:
    """Return the median duration of `TIMES` passes."""
    return median(time_once(lambda: run(rows), "cpu") for _ in range(TIMES))


def specdec_pass(model: Transformer, prompt: list[int]) -> Pass:
    cache = model.new_cache(2 * CONTEXT)
    model.forward(prompt, cache)

    def run(rows: int) -> None:
        model.forward([1] * rows, cache, rows=rows)
        cache.keep(CONTEXT)

    return run


def bytes_of(model: Transformer) -> int:
    """Return the bytes of the layers' and the head's matrices with their scales. Raises ValueError if C++ is off."""
    matrices = [matrix for layer in model.layers for matrix in (layer.qkv, layer.out, layer.gate_up, layer.down)]
    size = 0
    for matrix in (*matrices, model.head):
        if not isinstance(matrix, Blocked):
            raise ValueError("the layers in C++ are not compiled here; install g++")
        tensors = (matrix.weights, *matrix.others)
        size += sum(tensor.numel() * tensor.itemsize for tensor in tensors if tensor is not None)
    return size


def transformers_pass(model: Any, prompt: list[int]) -> Pass:
    """Return a function that runs transformers' forward pass, with transformers' own cache."""
    from transformers import DynamicCache

    cache = DynamicCache()
    name = "cache" if "cache" in signature(type(model).forward).parameters else "past_key_values"  # before 5.24
    with torch.inference_mode():
        model(torch.tensor([prompt]), **{name: cache})

    def run(rows: int) -> None:
        with torch.inference_mode():
            model(torch.tensor([[1] * rows]), **{name: cache})
        cache.crop(-rows)

    return run


def llama_cpp_pass(file: str, prompt: list[int], threads: int) -> Pass:
    from llama_cpp import Llama

    model = Llama(file, n_ctx=512, n_threads=threads, n_threads_batch=threads, logits_all=True, verbose=False)
    model.eval(prompt)

    def run(rows: int) -> None:
        model.eval([1] * rows)
        model.n_tokens = CONTEXT  # rolls back: the next pass overwrites the later tokens

    return run
