"""Measure models of published shapes with random weights, since the time of a cycle does not depend on the weights.

Acceptance does depend on the weights, so it is synthetic: each drafted token is accepted with probability α. Every
row that `measure` yields is marked as synthetic.
"""

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch

from specdec import loop
from specdec.drafters.draft_model import DraftModelDrafter
from specdec.events import Finished
from specdec.figures.stats import interval, LaneStats, pooled_tau, rounded_median
from specdec.gpu import lane
from specdec.gpu.accept import ratio, Test
from specdec.gpu.drafting import draft_of
from specdec.gpu.runner import DeviceRunner
from specdec.models.checkpoint import Weights
from specdec.models.config import Config
from specdec.models.transformer import Transformer
from specdec.task import Task
from specdec.types import SamplingParams

COMMON = {"model_type": "qwen3", "head_dim": 128, "num_key_value_heads": 8, "max_position_embeddings": 8192}
QWEN3 = COMMON | {"vocab_size": 151936, "rms_norm_eps": 1e-6, "rope_theta": 1e6}
TINY = COMMON | {"vocab_size": 256, "head_dim": 16, "tie_word_embeddings": True}
SIZES = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
# For Qwen3, fields of config.json on the Hub, with a shorter context. The tiny models are ours, for tests on a CPU.
SHAPES: dict[str, dict[str, Any]] = {
    "Qwen3-0.6B": QWEN3 | dict(zip(SIZES, (1024, 3072, 28, 16), strict=True), tie_word_embeddings=True),
    "Qwen3-8B": QWEN3 | dict(zip(SIZES, (4096, 12288, 36, 32), strict=True), tie_word_embeddings=False),
    "tiny draft": TINY | dict(zip(SIZES, (32, 64, 1, 2), strict=True), num_key_value_heads=1),
    "tiny target": TINY | dict(zip(SIZES, (64, 128, 4, 4), strict=True), num_key_value_heads=2),
}
PAIRS = {"qwen3": ("Qwen3-0.6B", "Qwen3-8B"), "tiny": ("tiny draft", "tiny target")}
SYNTHETIC_ALPHA = 0.8


@dataclass
class Lane:
    """Runs of the pair with one K. K = 0 is plain decoding."""

    k: int
    task: Task
    runner: DeviceRunner
    runs: list[LaneStats]


def synthetic(alpha: float) -> Test:
    """Make a test that accepts with probability `alpha`, whatever p and q are, as vLLM's synthetic acceptance does."""
    return lambda p, q, u: u < alpha


def measure(
    target: Transformer, draft: Transformer, context: int, depths: tuple[int, ...], tokens: int, repeats: int
) -> Iterator[dict[str, Any]]:
    """Yield a row for each K of `depths`; the first K must be 0, the baseline. The lanes take turns."""
    prompt = random_prompt(context, target.vocabulary)
    params = SamplingParams(temperature=1.0, max_tokens=tokens, ignore_end=True)
    lanes = []
    for k in depths:
        accept = synthetic(SYNTHETIC_ALPHA) if k else ratio
        drafter = DraftModelDrafter(draft, 1)  # is not run: `runner` drafts, with its own caches
        runner = DeviceRunner(target, draft_of(drafter, k), context + tokens, params, accept)
        lanes.append(Lane(k, Task(target, prompt, params, drafter, k, details=False), runner, []))
    for repeat in range(-1, repeats):  # the first round captures CUDA graphs and warms up
        for measured in lanes:
            measured.task.resources.idle[lane.RunnerKey.from_task(measured.task)] = measured.runner
            events = list(loop.generate(measured.task, lane.CudaExecutor(measured.task)))
            if not isinstance(events[-1], Finished) or events[-1].tokens != tokens:
                raise RuntimeError(f"a run did not end after {tokens} tokens: {events[-1]}")
            if repeat >= 0:
                measured.runs.append(LaneStats.from_events(events, measured.task.lane))
    for measured in lanes:
        yield row(measured, lanes[0], context)


def row(measured: Lane, plain: Lane, context: int) -> dict[str, Any]:
    """Make a row of the report from all runs. A speed-up compares a run with the plain run of the same round."""
    runs = measured.runs
    steps = [run.seconds_per_token or 0.0 for run in plain.runs]
    seconds = [run.seconds_per_token or 0.0 for run in runs]
    ratios = [a / b for a, b in zip(steps, seconds, strict=True)]
    drafted, judged = sum(run.drafted for run in runs), sum(run.judged for run in runs)
    passes = [time_s for run in runs for time_s in (run.verify_seconds or run.step_seconds)]
    draft_seconds = sum(run.draft_seconds for run in runs)
    return {
        "synthetic": True,
        "synthetic_alpha": SYNTHETIC_ALPHA if measured.k else None,
        "context": context,
        "k": measured.k,
        "alpha": rounded_median([sum(run.accepted for run in runs) / judged]) if judged else None,
        "tau": round(pooled_tau(runs), 4),
        "seconds_per_token": median(seconds),
        "measured_speedup": round(median(ratios), 4),
        "measured_speedup_interval": interval(ratios),
        "draft_cost": round(draft_seconds / drafted / median(steps), 4) if drafted else None,
        "verify_cost": round(median(passes) / median(steps), 4),
        "eager_because": measured.runner.graphs.reason,
    }


def random_prompt(context: int, vocabulary: int) -> list[int]:
    rng = random.Random(context)
    return [rng.randrange(vocabulary) for _ in range(context)]


def load_pair(name: str, device: str) -> tuple[Transformer, Transformer]:
    """Make the target and the draft model of the pair `name`, with random weights."""
    small, large = PAIRS[name]
    return random_model(SHAPES[large], 1, device), random_model(SHAPES[small], 0, device)


def random_model(shape: dict[str, Any], seed: int, device: str) -> Transformer:
    """Make a model with normal weights of standard deviation 0.02, and norms of 1."""
    config, dtype = Config.parse(shape), torch.bfloat16 if device == "cuda" else torch.float32
    generator = torch.Generator(device).manual_seed(seed)
    weights: Weights = {}
    for name, size in config.tensors({}).items():
        noise = torch.randn(size, generator=generator, device=device, dtype=dtype)
        weights[name] = torch.ones(size) if len(size) == 1 else 0.02 * noise
    return Transformer(config, weights, dtype, device)


def time_once(call: Callable[[], object], device: str) -> float:
    """Return the seconds of one call, including the work on the device."""
    if device == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    call()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start
