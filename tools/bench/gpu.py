"""Test and measure the engine on a GPU in about eight minutes.

Each stage runs in its own process, so that an illegal memory access does not break other stages. A stage prints its
rows as lines of JSON. With `--json`, a second start runs only the stages that did not succeed. `--device cpu` runs
every stage at toy scale.
"""

import contextlib
import importlib.metadata
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import torch

from specdec import children
from specdec.bench.measure import Case, measure_pairs, row, run
from specdec.bench.suites import commit, PROMPTS, QUESTIONS
from specdec.drafters.draft_model import DraftModelDrafter
from specdec.engine import Engine
from specdec.families import smollm2
from specdec.figures import machine
from specdec.gpu.accept import ratio
from specdec.gpu.drafting import draft_of
from specdec.gpu.runner import DeviceRunner
from specdec.models.device import configure_cuda
from specdec.types import SamplingParams

from . import peers, shapes, zero
from .options import Options
from .peers import seconds_per_step

Row = dict[str, Any]
ROOT = Path(__file__).resolve().parents[2]
FIGURES = "drafter temperature k alpha tau draft_cost verify_cost measured_speedup worst_prompt_speedup".split()
FIGURES += ["tokens_per_second", "plain_tokens_per_second", "identical_to_plain", "eager_because"]


@dataclass(frozen=True)
class Scale:
    """The device, models, lengths and numbers of texts that the stages use."""

    device: str
    pair: str
    contexts: tuple[int, ...]
    depths: tuple[int, ...]  # values of K
    tokens: int
    repeats: int
    prompts: int  # texts of each kind
    questions: int  # of each kind
    copied_bytes: int


FULL = Scale("cuda", "qwen3", (128, 4096), (0, 4, 8), 64, 2, 6, 4, 2**30)
TOY = Scale("cpu", "tiny", (16,), (0, 2), 12, 1, 1, 1, 2**16)


def about(at: Scale) -> Iterator[Row]:
    """Report versions and the bandwidth of a copy."""
    packages = ("nvidia-cublas", "triton", "transformers", "tokenizers", "numpy")
    versions = {name: installed for name in packages if (installed := version(name))}
    yield {**machine.describe(), "driver": driver(), "cuda": torch.version.cuda, **versions}
    source = torch.empty(at.copied_bytes, dtype=torch.uint8, device=at.device)
    destination = torch.empty_like(source)
    seconds = median(shapes.time_once(lambda: destination.copy_(source), at.device) for _ in range(10))
    yield {"copy_gbps": 2 * at.copied_bytes / seconds / 1e9}


def tests(at: Scale) -> Iterator[Row]:
    """Run `pytest -m cuda`; at toy scale, run only one test file."""
    chosen = ["-m", "cuda", "tests/gpu"] if at == FULL else ["-n0", "tests/gpu/test_accept.py"]
    command = ["-p", "no:cacheprovider", *chosen]
    done = children.start("pytest", *command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    printed, _ = done.communicate()
    print(printed, file=sys.stderr)
    lines = printed.splitlines()
    yield {"rc": done.returncode, "summary": lines[-1:], "failed": [x for x in lines if x.startswith("FAILED")]}


def steps(at: Scale) -> Iterator[Row]:
    """Time plain steps, drafts and verification passes of models in `shapes.SHAPES`, and count a cycle's kernels."""
    target, draft = shapes.load_pair(at.pair, at.device)
    for context in at.contexts:
        prompt = shapes.random_prompt(context, target.vocabulary)
        for k in at.depths:
            end = context + at.tokens
            params = SamplingParams(temperature=1.0, max_tokens=2, ignore_end=True)
            accept = shapes.synthetic(shapes.SYNTHETIC_ALPHA) if k else ratio
            runner = DeviceRunner(target, draft_of(DraftModelDrafter(draft), k), end, params, accept)
            runner.prepare(context, end)
            drafts, checks = [], []
            for repeat in range(at.repeats + 1):
                runner.begin(prompt, end, repeat)
                length = context + 1
                while length < end:
                    length += runner.run().accepted + 1
                    if repeat:
                        drafts.append(runner.draft_seconds)
                        checks.append(runner.verify_seconds)
            yield {
                "context": context,
                "k": k,
                "draft_ms": 1e3 * median(drafts) if k else 0.0,
                "verify_ms": 1e3 * median(checks),
                "kernels": count_kernels(runner, prompt, end),
                "capture_seconds": runner.graphs.seconds,
                "eager_because": runner.graphs.reason,
            }
        yield from shapes.measure(target, draft, context, (0, 4), at.tokens, at.repeats)


def count_kernels(runner: DeviceRunner, prompt: list[int], end: int) -> int | None:
    """Count the kernels of a run's second cycle. Return None on a CPU."""
    if not runner.record.is_cuda:
        return None
    runner.begin(prompt, end, 0)
    runner.run()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        runner.run()
    return sum(event.count for event in profile.key_averages() if not event.key.startswith("Mem"))


def embedded(at: Scale) -> Iterator[Row]:
    """Measure the embedded pair in two precisions: its speed-up, and how many greedy texts are as in plain decoding."""
    for dtype in ("float32", "bfloat16"):
        engine = Engine("embedded", dtype=dtype, device=at.device)
        prompts = [prompt for kind in PROMPTS.values() for prompt in kind[: at.prompts]]
        identical = sum(is_greedy_text_identical(engine, prompt, at.tokens) for prompt in prompts)
        cases = [Case("draft_model", "story", 0.8, 4)]
        (figures,) = measure(engine, PROMPTS["story"][: at.prompts], cases, at)
        yield {**figures, "prompts": len(prompts), "identical": identical}


def is_greedy_text_identical(engine: Engine, prompt: str, tokens: int) -> bool:
    params = Case("draft_model", "story", 0.0, 4).params(tokens, 0)
    return run(engine, prompt, "draft_model", 4, params).ids == run(engine, prompt, "none", 0, params).ids


def measure_smollm2(at: Scale) -> Iterator[Row]:
    """Measure SmolLM2-135M with its drafters on the bench's questions."""
    if not smollm2.find():
        yield {"skipped": "SmolLM2's file is not on this machine"}
        return
    engine = Engine("smollm2", dtype="bfloat16", device=at.device)
    prompts = [prompt for kind in QUESTIONS.values() for prompt in kind[: at.questions]]
    best = ("eagle3", "draft_model")  # measured first, because the time can run out
    names = sorted(set(engine.models.drafters) - {"none", "suffix"}, key=lambda name: (name not in best, name))
    for name in names if at == FULL else names[:1]:
        cases = [Case(name, "qa", 0.0, k, ignore_end=False) for k in ((4, 3, 6, 8) if name in best else (4,))]
        for same_temperature in (cases, [Case(name, "qa", 0.8, 4, ignore_end=False)]):
            yield from measure(engine, prompts, same_temperature, replace(at, repeats=1))


def generate(at: Scale) -> Iterator[Row]:
    """Time a token of transformers' `generate`, on a model with the target's shape and random weights."""
    from transformers import AutoConfig, AutoModelForCausalLM

    configure_cuda(at.device)
    shape = shapes.SHAPES[shapes.PAIRS[at.pair][1]]
    fields = {name: value for name, value in shape.items() if name != "rope_theta"}
    rope = {"rope_type": "default", "rope_theta": shape.get("rope_theta", 1e4)}
    config = AutoConfig.for_model(**fields, rope_parameters=rope)
    dtype = torch.bfloat16 if at.device == "cuda" else torch.float32
    with torch.device(at.device):
        model = AutoModelForCausalLM.from_config(config, dtype=dtype).eval()
    model.generation_config.eos_token_id = None  # every run has the same length
    prompt = shapes.random_prompt(at.contexts[0], shape["vocab_size"])
    _, *seconds = [
        seconds_per_step(lambda n: len(peers.generate(model, prompt, n)), at.tokens, at.device)
        for _ in range(at.repeats + 1)
    ]
    yield {"seconds_per_step": median(seconds)}


def measure_zero(at: Scale) -> Iterator[Row]:
    """Run the embedded pair as on ZeroGPU: in forks, in which graphs are captured anew."""
    if at.device != "cuda" or not version("spaces"):
        yield {"skipped": "this needs CUDA and the package spaces"}
        return
    yield from zero.measure()


Stage = Callable[[Scale], Iterator[Row]]
STAGES: dict[str, tuple[Stage, float]] = {  # in order, with the time limit of each in seconds
    "about": (about, 20),
    "embedded": (embedded, 40),
    "smollm2": (measure_smollm2, 200),
    "steps": (steps, 60),
    "generate": (generate, 40),
    "zero": (measure_zero, 60),
    "tests": (tests, 170),
}


def measure(engine: Engine, prompts: Any, cases: list[Case], at: Scale) -> Iterator[Row]:
    """Yield a row for each case. Speculative and plain runs take turns."""
    engine.models.resources.max_idle = 24  # with fewer idle runners, most runs would capture graphs again
    measured = measure_pairs(engine, tuple(prompts), cases, at.tokens, at.repeats)
    for case in cases:
        figures = row(case, measured[case], 0)
        yield {"dtype": engine.models.precision} | {name: figures[name] for name in FIGURES}


def version(package: str) -> str | None:
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(package)
    return None


def driver() -> str | None:
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
    return None


def report(options: Options) -> Row:
    """Run the stages. With `--json FILE`, a file beside FILE keeps the rows of successful stages until all succeed.

    Raises ValueError if a GPU is needed and torch sees none, or if the file has another machine, version or setting.
    """
    if options.device != "cpu" and not torch.cuda.is_available():
        raise ValueError("The suite gpu needs an NVIDIA GPU, and torch sees none; --device cpu runs it at toy scale.")
    path = options.json and options.json.with_suffix(".stages.json")
    setting = [options.device, machine.describe(), commit()]
    succeeded = dict[str, list[Row]]()
    if path and path.exists():
        stored_setting, succeeded = json.loads(path.read_text(encoding="utf-8"))
        if stored_setting != setting:
            raise ValueError(f"{path} comes from another machine, version or setting; move it, or name another file")
    stages = {}
    for name, (_, budget_s) in STAGES.items():
        stages[name] = succeeded.get(name) or list(watch(name, options.device, budget_s))
        if stages[name][-1]["ended"]["rc"] == 0:
            succeeded[name] = stages[name]
        if path:
            path.write_text(json.dumps([setting, succeeded], ensure_ascii=False), encoding="utf-8")
    left_out = [name for name in STAGES if name not in succeeded]
    if left_out:
        print(f"failed: {', '.join(left_out)}. With --json, the same command runs only these.", file=sys.stderr)
    elif path:
        path.unlink()
    models = {name: shapes.SHAPES[name] for name in shapes.PAIRS["qwen3"]}
    return {"synthetic": True, "stages": stages, "models": models, "left_out": left_out}


def watch(name: str, device: str, budget_s: float) -> Iterator[Row]:
    """Run a stage; yield the rows that it prints, then its exit status."""
    start = time.monotonic()
    stage = children.start(__name__, name, device, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True)
    out_of_time = threading.Event()

    def kill() -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(stage.pid, signal.SIGKILL)  # also kills its child processes

    def end() -> None:
        out_of_time.set()
        kill()

    timer = threading.Timer(budget_s, end)
    timer.start()
    assert stage.stdout is not None
    try:
        for line in stage.stdout:
            print(line, end="", flush=True, file=sys.stderr)
            with contextlib.suppress(ValueError):  # a line that a library printed
                yield json.loads(line)
        code = stage.wait()
    finally:
        timer.cancel()
        kill()
        stage.wait()
    yield {"ended": {"rc": code, "seconds": round(time.monotonic() - start, 1), "out_of_time": out_of_time.is_set()}}


def main(stage: str, device: str) -> None:
    for row_of_stage in STAGES[stage][0](TOY if device == "cpu" else FULL):
        print(json.dumps(row_of_stage, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
