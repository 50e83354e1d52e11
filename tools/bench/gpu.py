"""What a GPU gives, in about nine minutes: first whether all is right there, then where the time goes.

Each stage is a process of its own. What breaks one, an address gone wrong for instance, stays in it; none finds the
graphs, workspaces or settings of another; and one that hangs is ended. A stage prints its rows as lines of JSON, and
they are in the report's journal at once. Models have the shapes of Qwen3 8B and 0.6B, with random weights.
"""

from __future__ import annotations

import contextlib
import gc
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
import torch.nn.functional as F

from specdec import children
from specdec.bench.measure import pairs, params_for, row, run, Setting
from specdec.bench.prompts import PROMPTS
from specdec.drafters import DraftModelDrafter
from specdec.engine import Task
from specdec.events import Committed, Event, Failed
from specdec.families import zoo
from specdec.figures import machine
from specdec.gpu import graphs, lane
from specdec.gpu.accept import ratio, synthetic
from specdec.gpu.cycle import Cycle
from specdec.gpu.graphs import Graphs
from specdec.lanes.race import tasks
from specdec.models.device import settle
from specdec.types import SamplingParams

from . import library, shapes
from .journal import Journal, Row
from .options import Options
from .waits import host_syncs

ROOT = Path(__file__).resolve().parents[2]
MATRICES = {"qkv": (4096, 6144), "gate_up": (4096, 24576), "down": (12288, 4096)}  # [in, out], of an 8B layer
ROWS = (1, 2, 3, 5, 9, 17)  # of a pass: one token, and K + 1
CACHE = 200_000_000  # bytes of matrices that take turns, more than any card's L2


@dataclass(frozen=True)
class Scale:
    """What is measured. Tests take another, small enough for a CPU."""

    device: str = "cuda"
    pair: str = "qwen3"
    contexts: tuple[int, ...] = (128, 4096)
    depths: tuple[int, ...] = (0, 2, 4, 8)
    tokens: int = 64
    repeats: int = 2
    matrices: tuple[tuple[str, int, int], ...] = tuple((name, *size) for name, size in MATRICES.items())
    heads: tuple[int, ...] = (151_669, 151_936)  # tokens of Qwen3's tokenizer, and columns of its output matrix
    width: int = 4096
    bytes: int = 2**30  # copied
    prompts: int = 6  # of each kind

    @property
    def dtype(self) -> torch.dtype:
        return torch.bfloat16 if self.device == "cuda" else torch.float32


# ---- the stages ----


def about(at: Scale) -> Iterator[Row]:
    """Versions, and the bandwidth of a copy: what a pass over all weights cannot beat."""
    packages = ("nvidia-cublas", "nvidia-cublas-cu12", "triton", "transformers", "tokenizers", "numpy")
    yield {
        **machine.describe(),
        "driver": driver(),
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
        **{name: found for name in packages if (found := version(name))},
    }
    source = torch.empty(at.bytes, dtype=torch.uint8, device=at.device)
    target = torch.empty_like(source)
    spent = seconds(lambda: target.copy_(source), 10, at.device)
    yield {"copy_gbps": 2 * at.bytes / spent / 1e9}


def tests(at: Scale) -> Iterator[Row]:
    """`pytest -m cuda`."""
    if not (ROOT / "tests" / "gpu").is_dir():
        yield {"skipped": "there are no tests beside this package"}
        return
    run = children.start(
        "pytest", "-m", "cuda", "-n0", "-p", "no:cacheprovider", "tests/gpu/test_cuda.py",
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    told, _ = run.communicate()
    lines = told.splitlines()
    print(told, file=sys.stderr)
    yield {"rc": run.returncode, "summary": lines[-1:], "failed": [x for x in lines if x.startswith("FAILED")]}


def capture(at: Scale) -> Iterator[Row]:
    """Two owners of graphs: one ends, its memory is scribbled over; is the other's replay still right?"""
    for first_ends in (True, False):
        inputs = [torch.randn(n, at.width, dtype=at.dtype, device=at.device) for n in (1, 5)]
        matrix = torch.randn(at.width, at.width, dtype=at.dtype, device=at.device)
        out = [torch.empty_like(x) for x in inputs]
        counter = torch.zeros(1, device=at.device)
        owners = [Graphs(at.device), Graphs(at.device)]

        def step(i: int, out: list[torch.Tensor] = out, inputs: Any = inputs, matrix: Any = matrix) -> None:
            out[i].copy_(torch.mm(inputs[i], matrix))

        for owner in owners:
            for i in range(2):
                owner.run(i, lambda i=i: step(i), counter)  # type: ignore[misc]
        expected = [x.clone() for x in out]
        del owner, owners[0 if first_ends else 1]
        gc.collect()
        if at.device == "cuda":
            torch.cuda.empty_cache()
        scribbled = [torch.full((at.bytes // 64,), float("nan"), device=at.device) for _ in range(8)]
        for x in out:
            x.zero_()
        for i in range(2):
            owners[0].run(i, lambda i=i: step(i), counter)  # type: ignore[misc]
        wait(at.device)
        equal = all(torch.equal(a, b) for a, b in zip(out, expected, strict=True))
        yield {"ended": "first" if first_ends else "second", "equal": equal, "reason": owners[0].reason}
        del scribbled


def attention(at: Scale) -> Iterator[Row]:
    """The first call at lengths that were never seen, and the second, with cuDNN and without; then transformers'."""
    length = 100
    for cudnn in (True, False):
        torch.backends.cuda.enable_cudnn_sdp(cudnn)
        for masked in (False, True):
            for _ in range(5):
                spent = attended(at, length, masked)
                yield {"of": "ours", "cudnn": cudnn, "masked": masked, "length": length, "seconds": spent}
                length += 1
    shape = {**shapes.SHAPES[shapes.PAIRS[at.pair][1]], "num_hidden_layers": 1}
    theirs = library.model(shape, at.dtype, at.device)
    for cudnn in (True, False):
        torch.backends.cuda.enable_cudnn_sdp(cudnn)
        for _ in range(5):
            ids = torch.zeros(1, length, dtype=torch.long, device=at.device)
            with torch.inference_mode():
                spent = [once(lambda ids=ids: theirs(ids), at.device) for _ in range(2)]  # type: ignore[misc]
            yield {"of": "transformers", "cudnn": cudnn, "length": length, "seconds": spent}
            length += 1


def attended(at: Scale, length: int, masked: bool) -> list[float]:
    """As Qwen3 8B's layers: 32 heads of queries, 8 of keys."""
    q = torch.randn(1, 32, length, 128, dtype=at.dtype, device=at.device)
    k, v = torch.randn(2, 1, 8, length, 128, dtype=at.dtype, device=at.device).unbind()
    mask = torch.full((length, length), float("-inf"), dtype=at.dtype, device=at.device).triu(1) if masked else None

    def call() -> None:
        F.scaled_dot_product_attention(q, k, v, mask, is_causal=not masked, enable_gqa=True)

    return [once(call, at.device) for _ in range(2)]


def products(at: Scale) -> Iterator[Row]:
    """GB/s of matrix products in graphs, matrices taking turns; stored [in, out], as ours are, and [out, in]."""
    for name, inputs, outputs in (*at.matrices, *(("head", at.width, columns) for columns in at.heads)):
        size = inputs * outputs * at.dtype.itemsize
        count = max(1, -(-CACHE // size)) if at.device == "cuda" else 1
        matrices = [torch.randn(outputs, inputs, dtype=at.dtype, device=at.device) for _ in range(count)]
        for layout in ("out, in", "in, out"):
            if layout == "in, out":
                matrices = [matrix.t().contiguous() for matrix in matrices]
            for rows in ROWS:
                x = torch.randn(rows, inputs, dtype=at.dtype, device=at.device)
                y = torch.empty(rows, outputs, dtype=at.dtype, device=at.device)
                spent = replayed(lambda x=x, y=y, m=matrices, flip=layout == "out, in": turn(x, m, flip, y), at)  # type: ignore[misc]
                found = {"matrix": name, "in": inputs, "out": outputs, "layout": layout, "rows": rows}
                yield {**found, "ms": 1e3 * spent / count, "gbps": size * count / spent / 1e9}


def turn(x: torch.Tensor, matrices: list[torch.Tensor], flip: bool, y: torch.Tensor) -> None:
    for matrix in matrices:
        torch.mm(x, matrix.t() if flip else matrix, out=y)


def steps(at: Scale) -> Iterator[Row]:
    """A plain step, drafts and checks of the large pair: milliseconds, kernels, and the longest of them."""
    target, draft = models(at)
    for context in at.contexts:
        prompt = shapes.random_prompt(context, target.vocabulary)
        for k in at.depths:
            end = context + at.tokens
            cycle = Cycle(target, draft if k else None, k, end, SAMPLED, synthetic(0.8) if k else ratio)
            cycle.prepare(context, end)
            timed, walls = [], []
            for repeat in range(at.repeats + 1):
                cycle.begin(prompt, end, repeat)
                length = context + 1
                while length < end:
                    start = time.perf_counter()
                    length += cycle.run().accepted + 1
                    walls.append(time.perf_counter() - start)
                    timed.append((cycle.draft_seconds, cycle.verify_seconds))
                if not repeat:
                    timed, walls = [], []
            drafts, checks = zip(*timed, strict=True)
            yield {
                "context": context,
                "k": k,
                "draft_ms": 1e3 * median(drafts),
                "verify_ms": 1e3 * median(checks),
                "cycle_ms": 1e3 * median(walls),  # of the host
                "capture_seconds": cycle.graphs.seconds,
                "graphs": len(cycle.graphs.keys),
                "reason": cycle.graphs.reason,
                **kernels(cycle, prompt, end),
            }


def kernels(cycle: Cycle, prompt: list[int], end: int) -> Row:
    """Of one cycle, in the middle of a text."""
    if not cycle.record.is_cuda:
        return {}
    cycle.begin(prompt, end, 0)
    cycle.run()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as told:
        cycle.run()
    ran = [(one.key, one.count, one.self_device_time_total) for one in told.key_averages()]
    ran = sorted((one for one in ran if one[2] > 0 and not one[0].startswith("Mem")), key=lambda one: -one[2])
    longest = [{"name": name[:120], "count": count, "us": us} for name, count, us in ran[:15]]
    return {"kernels": sum(count for _, count, _ in ran), "longest": longest}


def embedded(at: Scale) -> Iterator[Row]:
    """The pair that comes with the repository: is greedy text plain decoding's, what drafts and checks cost."""
    for dtype in (torch.float32, torch.bfloat16):
        family = zoo.load("embedded", dtype, at.device)
        prompts = [prompt for kind in PROMPTS.values() for prompt in kind[: at.prompts]]
        parted = []
        for prompt in prompts:
            both = tasks(family, prompt, "draft_model", 4, params_for(0.0, at.tokens, 0), details=False)
            a, b = (run(both[name]).ids for name in ("speculative", "plain"))
            parted.append(next((i for i, pair in enumerate(zip(a, b, strict=True)) if pair[0] != pair[1]), None))
        setting = Setting("draft_model", "story", 0.8, 4)
        found = pairs(family, PROMPTS["story"][: at.prompts], [setting], at.tokens, at.repeats)[setting]
        told = row(setting, found, 0)
        figures = (
            "draft_cost",
            "verify_cost",
            "tau",
            "measured_speedup",
            "tokens_per_second",
            "plain_tokens_per_second",
        )
        yield {
            "dtype": str(dtype).removeprefix("torch."),
            "prompts": len(prompts),
            "parted_at": parted,
            "identical": parted.count(None),
            **{name: told[name] for name in (*figures, "eager_because")},
            "host_syncs_per_cycle": host_syncs(family, setting, PROMPTS["story"][0], at.tokens),
        }


def trees(at: Scale) -> Iterator[Row]:
    """Heads of that pair, drafting chains and trees: a tree's check has more rows, and its walk more kernels."""
    family = zoo.load("embedded", torch.float32, at.device)
    settings = [Setting(name + form, "story", 0.8, 4) for name in ("medusa", "eagle3") for form in ("", ":tree")]
    found = pairs(family, PROMPTS["story"][: at.prompts], settings, at.tokens, at.repeats)
    for setting in settings:
        told = row(setting, found[setting], 0)
        figures = ("draft_cost", "verify_cost", "tau", "measured_speedup", "tokens_per_second", "eager_because")
        yield {"drafter": setting.drafter, **{name: told[name] for name in figures}}


def lanes(at: Scale) -> Iterator[Row]:
    """Our lanes at the large shapes, K = 4, a draft kept with α = 0.8."""
    target, drafts = shapes.models(at.pair)
    plan: list[shapes.Plan] = [("none", 0, None), ("draft_model", 4, 0.8), ("prompt_lookup", 4, None)]
    options = Options(suite="gpu", tokens=at.tokens, repeats=at.repeats)
    for context in at.contexts[:1]:
        yield from shapes.measured(at.pair, target, drafts, context, plan, options)


def rivals(at: Scale) -> Iterator[Row]:
    """transformers at the same shapes: eager, prompt lookup, assisted (seconds a cycle, K = 4), static and compiled."""
    settle(at.device)
    draft, target = (shapes.SHAPES[name] for name in shapes.PAIRS[at.pair])
    prompt = shapes.random_prompt(at.contexts[0], target["vocab_size"])
    yield from library.each(draft, target, prompt, (4,), at.tokens, at.repeats, at.dtype, at.device)


def drills(at: Scale) -> Iterator[Row]:
    """What goes wrong on a card, and whether the next run is whole."""
    target, draft = models(replace(at, pair="tiny"))
    prompt = shapes.random_prompt(16, target.vocabulary)

    def told(model: Any = target) -> list[Event]:
        return list(lane.on_device(Task(model, prompt, GREEDY, DraftModelDrafter(draft, 1), 4, details=False)))

    expected = ids(told())

    def after(name: str, events: list[Event]) -> Row:
        failed = next((event.reason for event in events if isinstance(event, Failed)), None)
        return {"drill": name, "told": failed, "next_is_whole": ids(told()) == expected}

    stopped = lane.on_device(Task(target, prompt, GREEDY, DraftModelDrafter(draft, 1), 4, details=False))
    begun = [next(stopped) for _ in range(5)]
    stopped.close()
    yield after("stopped", begun)
    broken = models(replace(at, pair="tiny"))[0]
    broken.embedding = torch.full_like(broken.embedding, float("nan"))
    yield after("not finite", told(broken))
    if at.device == "cuda":
        lane._idle.clear()
        full = filled()
        events = told()
        del full
        torch.cuda.empty_cache()
        yield after("no room", events)
    counter = torch.zeros(1, device=at.device)
    failing, later = Graphs(at.device), Graphs(at.device)

    def asks_the_host() -> None:
        counter.add_(float(counter))

    def asks_nothing() -> None:
        counter.add_(1.0)

    failing.run("step", asks_the_host, counter)
    later.run("step", asks_nothing, counter)
    lane._idle.clear()
    yield after("not captured", []) | {
        "reason": failing.reason,
        "later_reason": later.reason,
        "failures_stay": graphs.FAILURES_STAY,
    }


def filled() -> list[torch.Tensor]:
    """All of the card's memory."""
    held: list[torch.Tensor] = []
    size = 2**30
    while size >= 512:
        try:
            held.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
        except torch.OutOfMemoryError:
            size //= 2
    return held


Stage = Callable[[Scale], Iterator[Row]]
STAGES: dict[str, tuple[Stage, float]] = {  # in order, with the seconds that each may take
    "about": (about, 60),
    "tests": (tests, 180),
    "capture": (capture, 60),
    "attention": (attention, 90),
    "products": (products, 90),
    "steps": (steps, 150),
    "embedded": (embedded, 120),
    "trees": (trees, 60),
    "lanes": (lanes, 120),
    "rivals": (rivals, 240),
    "drills": (drills, 60),
}
SAMPLED = SamplingParams(temperature=1.0, max_tokens=2, ignore_end=True)
GREEDY = SamplingParams(max_tokens=40, ignore_end=True)


# ---- how they are timed ----


def models(at: Scale) -> tuple[Any, Any]:
    small, large = shapes.PAIRS[at.pair]
    return shapes.random_model(shapes.SHAPES[large], 1), shapes.random_model(shapes.SHAPES[small], 0)


def wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def once(call: Callable[[], object], device: str) -> float:
    wait(device)
    start = time.perf_counter()
    call()
    wait(device)
    return time.perf_counter() - start


def seconds(call: Callable[[], object], times: int, device: str) -> float:
    """Of one call, after one to warm up."""
    call()

    def all_of_them() -> None:
        for _ in range(times):
            call()

    return once(all_of_them, device) / times


def replayed(step: Callable[[], None], at: Scale) -> float:
    """Seconds of `step` as a graph."""
    owner, counter = Graphs(at.device), torch.zeros(1, device=at.device)
    spent = seconds(lambda: owner.run("step", step, counter), 10, at.device)
    if at.device == "cuda" and owner.reason:
        raise RuntimeError(owner.reason)
    return spent


def ids(events: list[Event]) -> list[int]:
    return [token for event in events if isinstance(event, Committed) for token in event.tokens]


def version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def driver() -> str | None:
    asked = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(asked, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


# ---- the suite ----


def check() -> None:
    """ValueError, in one sentence, without a GPU."""
    if not torch.cuda.is_available():
        raise ValueError("The suite gpu needs an NVIDIA GPU, and torch sees none; --suite shapes runs on a CPU, too.")


def report(options: Options, journal: Journal) -> Row:
    found = {}
    for name, (_, limit) in STAGES.items():
        rows = watched(name, min(limit, journal.seconds_left))
        found[name] = journal.measured(name, rows, lambda rows: rows[-1]["ended"]["rc"] == 0)
    models = {name: shapes.SHAPES[name] for name in shapes.PAIRS["qwen3"]}
    return {"synthetic": True, "stages": found, "models": models}


def watched(name: str, limit: float) -> Iterator[Row]:
    """The rows that a stage prints, and how it ended."""
    start = time.monotonic()
    stage = children.start(__name__, name, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True)
    ended_late = threading.Event()

    def kill() -> None:
        if not hasattr(os, "killpg"):
            return stage.kill()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(stage.pid, signal.SIGKILL)  # what it started, too

    def end() -> None:
        ended_late.set()
        kill()

    timer = threading.Timer(limit, end)
    timer.start()
    assert stage.stdout is not None
    try:
        for line in stage.stdout:
            told = row_of(line)
            if told is None:
                print(line, end="", file=sys.stderr)
            else:
                print(json.dumps(told, ensure_ascii=False), flush=True)
                yield told
        code = stage.wait()
    finally:
        timer.cancel()
        kill()
        stage.wait()
    ended = {"rc": code, "seconds": round(time.monotonic() - start, 1), "out_of_time": ended_late.is_set()}
    print(f"{name}: {ended}", file=sys.stderr)
    yield {"ended": ended}


def row_of(line: str) -> Row | None:
    try:
        told = json.loads(line)
    except ValueError:
        return None
    return told if isinstance(told, dict) else None


def main(stage: str, at: Scale | None = None) -> None:
    for one in STAGES[stage][0](at or Scale()):
        print(json.dumps(one, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
