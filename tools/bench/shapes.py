"""Speed at the shapes of published models, with random weights: the time of a cycle does not depend on their values.

Acceptance does, so it is synthetic: each draft is accepted with probability α, whatever the models say (vLLM offers
the same). Every row of the report says so, and the text means nothing. Prompt lookup keeps the true test: random text
hardly repeats, so its rows show what a search without a find costs. Lanes take turns, run by run; a ratio compares
neighbours. The roofline is the time of reading the weights and the cache once.
"""

from __future__ import annotations

import functools
import gc
import json
import math
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

import pandas
import torch
from tqdm import tqdm

from specdec.drafters import Eagle3Head
from specdec.drafters.eagle3 import default_taps
from specdec.engine import Task
from specdec.events import Finished
from specdec.figures.stats import interval, LaneStats, middle, pooled_tau
from specdec.gpu import lane
from specdec.gpu.accept import ratio, synthetic
from specdec.gpu.cycle import Cycle
from specdec.gpu.drafting import Draft
from specdec.methods import METHODS
from specdec.models.checkpoint import Weights
from specdec.models.config import Config
from specdec.models.transformer import Transformer
from specdec.models.view import TargetView
from specdec.paths import ASSETS
from specdec.types import SamplingParams

from .. import roofline
from . import library
from .journal import Journal
from .options import Options
from .waits import host_reads

HARDWARE = ASSETS / "hardware.json"
LLAMA3 = {
    "rope_type": "llama3",
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
# Fields of each model's config.json on the Hub; the context is cut to what is measured.
SHAPES: dict[str, dict[str, Any]] = {
    "Qwen3-0.6B": {
        "model_type": "qwen3", "vocab_size": 151936, "hidden_size": 1024, "intermediate_size": 3072,
        "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
        "rms_norm_eps": 1e-6, "rope_theta": 1e6, "tie_word_embeddings": True, "max_position_embeddings": 8192,
    },
    "Qwen3-8B": {
        "model_type": "qwen3", "vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 12288,
        "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
        "rms_norm_eps": 1e-6, "rope_theta": 1e6, "tie_word_embeddings": False, "max_position_embeddings": 8192,
    },
    "Llama-3.2-1B": {
        "model_type": "llama", "vocab_size": 128256, "hidden_size": 2048, "intermediate_size": 8192,
        "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64,
        "rms_norm_eps": 1e-5, "rope_theta": 5e5, "rope_scaling": {**LLAMA3, "factor": 32.0},
        "tie_word_embeddings": True, "max_position_embeddings": 8192,
    },
    "Llama-3.1-8B": {
        "model_type": "llama", "vocab_size": 128256, "hidden_size": 4096, "intermediate_size": 14336,
        "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
        "rms_norm_eps": 1e-5, "rope_theta": 5e5, "rope_scaling": {**LLAMA3, "factor": 8.0},
        "tie_word_embeddings": False, "max_position_embeddings": 8192,
    },
    "tiny draft": {
        "model_type": "qwen3", "vocab_size": 256, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1,
        "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16, "max_position_embeddings": 8192,
        "tie_word_embeddings": True,
    },
    "tiny target": {
        "model_type": "qwen3", "vocab_size": 256, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 4,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 8192,
        "tie_word_embeddings": True,
    },
}  # fmt: skip
PAIRS = {
    "qwen3": ("Qwen3-0.6B", "Qwen3-8B"),
    "llama3": ("Llama-3.2-1B", "Llama-3.1-8B"),
    "tiny": ("tiny draft", "tiny target"),
}
HEADS = {"Llama-3.1-8B": 32_000, "tiny target": 64}  # targets that get an EAGLE-3 head, and how many tokens it knows
ALPHAS = (0.6, 0.8, 0.9)
DEPTHS = (0, 1, 2, 4, 8, 16)  # of the growth tables
CONTEXTS = (128, 512, 1024, 2048, 4096)
Plan = tuple[str, int, float | None]  # drafter, K, synthetic α
Normal = Callable[..., torch.Tensor]  # size -> numbers


@dataclass
class Case:
    """One lane, and what was measured of it."""

    pair: str
    drafter: str
    k: int
    alpha: float | None  # None: nothing is synthetic
    context: int
    cycle: Cycle
    setup: float = 0.0
    runs: list[LaneStats] = field(default_factory=list)
    other: list[float] = field(default_factory=list)  # the engine's share of a run's decoding
    events: list[float] = field(default_factory=list)  # the share of its wall clock that telling it took
    syncs: float = 0.0


def report(options: Options, journal: Journal) -> dict[str, Any]:
    """The lanes of one pair and context are measured together, and beside transformers on a GPU."""
    on_gpu = torch.cuda.is_available()
    if unknown := set(options.pairs) - PAIRS.keys():
        raise ValueError(f"there is no pair {', '.join(sorted(unknown))}; choose from {', '.join(PAIRS)}")
    chosen = options.pairs or (["qwen3", "llama3"] if on_gpu else ["tiny"])
    rows: list[dict[str, Any]] = []
    rivals: dict[str, Any] = {}
    for name in chosen:
        pair = functools.cache(functools.partial(models, name))
        found = []
        for context, plan in plans(options.k, drafters_of(name)):
            lanes = together(name, pair, context, plan, options)
            found += journal.measured(f"{name}, {context} tokens", lanes)
        del pair, lanes
        gc.collect()
        if on_gpu and options.peers and found:
            for library in journal.measured(f"{name}, transformers", beside(name, found, options)):
                rivals[name] = compared(found, library)
        rows += found
    if rows:
        print(table(rows))
    for name, rival in rivals.items():
        print(f"{name}: {rival['plain_over_generate']:.2f}× transformers' generate, plain against plain")
    return {
        "synthetic": True,
        "rows": rows,
        "peers": rivals or None,
        "eager_because": {row["pair"]: row["eager_because"] for row in rows},
        "models": {name: PAIRS[name] for name in chosen} | {"dtype": str(dtype_here()).removeprefix("torch.")},
    }


def together(
    name: str, pair: Callable[[], tuple[Transformer, dict[str, Draft]]], context: int, plan: list[Plan],
    options: Options,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """`pair` loads when the first row is asked for."""
    target, drafts = pair()
    yield from measured(name, target, drafts, context, plan, options)


def drafters_of(name: str) -> list[str]:
    return ["none", "draft_model", "prompt_lookup", *(["eagle3"] if PAIRS[name][1] in HEADS else [])]


def models(name: str) -> tuple[Transformer, dict[str, Draft]]:
    """A pair's target, and what drafts for it by the drafter's name."""
    small, large = PAIRS[name]
    draft, target = random_model(SHAPES[small], 0), random_model(SHAPES[large], 1)
    drafts: dict[str, Draft] = {"none": None, "draft_model": draft, "prompt_lookup": "lookup"}
    if large in HEADS:
        drafts["eagle3"] = random_head(SHAPES[large], HEADS[large], target, 2)
    return target, drafts


def plans(depths: Sequence[int], drafters: Iterable[str]) -> list[tuple[int, list[Plan]]]:
    """By context, the lanes that take turns: every drafter at the first, growth with context and K at all."""
    growth: list[Plan] = [("draft_model", k, 0.8) if k else ("none", 0, None) for k in DEPTHS]
    sweep: list[Plan] = [
        (name, k, alpha)
        for name in drafters
        if name != "none"
        for alpha in (ALPHAS if name != "prompt_lookup" else (None,))
        for k in depths
    ]
    return [
        (context, [*growth, *(s for s in sweep if i == 0 and s not in growth)]) for i, context in enumerate(CONTEXTS)
    ]


def measured(
    name: str, target: Transformer, drafts: dict[str, Draft], context: int, plan: list[Plan],
    options: Options,
) -> list[dict[str, Any]]:  # fmt: skip
    prompt = random_prompt(context, target.vocabulary)
    params = SamplingParams(temperature=1.0, max_tokens=options.tokens, ignore_end=True)
    cases = []
    for drafter, k, alpha in plan:
        start = time.perf_counter()
        test = ratio if alpha is None else synthetic(alpha)
        cycle = Cycle(target, drafts[drafter], k, context + options.tokens, params, test)
        cases.append(Case(name, drafter, k, alpha, context, cycle, time.perf_counter() - start))
    for repeat in tqdm(range(-1, options.repeats), desc=f"{name}, {context} tokens", unit="round"):
        for case in cases:
            task = task_of(case, drafts[case.drafter], target, prompt, params, repeat)
            if repeat < 0:  # warms up, captures, and counts where the host waits
                waits = host_reads(lambda: list(lane.on_device(task, case.cycle)))  # noqa: B023
                cycles = case.cycle.syncs
                case.syncs = (waits + cycles) / cycles
                case.setup += case.cycle.graphs.seconds
                continue
            start = time.perf_counter()
            events = list(lane.on_device(task, case.cycle))
            wall = time.perf_counter() - start
            end = events[-1]
            if not isinstance(end, Finished) or end.tokens != options.tokens:
                raise RuntimeError(f"a run of {options.tokens} tokens ended otherwise: {end}")
            case.runs.append(LaneStats.of(events, task.lane))
            case.other.append(end.other / (end.at - end.prefill))
            case.events.append(1.0 - end.at / wall)
    plain = cases[0]
    return [row(case, plain, drafts[case.drafter], target) for case in cases]


def beside(name: str, rows: list[dict[str, Any]], options: Options) -> Iterator[dict[str, Any]]:
    """transformers at the first context."""
    draft, target = (SHAPES[shape] for shape in PAIRS[name])
    prompt = random_prompt(CONTEXTS[0], target["vocab_size"])
    depths = sorted({row["k"] for row in rows if row["drafter"] == "draft_model"})
    found = library.measure(draft, target, prompt, depths, options.tokens, options.repeats, dtype_here(), device_here())
    cycles = {str(k): seconds for k, seconds in found["assisted_seconds_per_cycle"].items()}  # as JSON has it
    yield found | {"assisted_seconds_per_cycle": cycles}


def compared(rows: list[dict[str, Any]], found: dict[str, Any]) -> dict[str, Any]:
    """Our rows at the first context against that library.

    A draft model's `over_assisted` takes its own τ for that library's cycles, too.
    """
    first = [row for row in rows if row["context"] == CONTEXTS[0]]
    for row in first:
        row["over_generate"] = round(found["seconds_per_token"]["generate"] / row["seconds_per_token"], 4)
        if row["drafter"] == "draft_model":
            cycle = found["assisted_seconds_per_cycle"][str(row["k"])]
            row["over_assisted"] = round(cycle / row["tau"] / row["seconds_per_token"], 4)
    return found | {"plain_over_generate": next(row["over_generate"] for row in first if row["k"] == 0)}


def random_prompt(context: int, vocabulary: int) -> list[int]:
    rng = random.Random(context)
    return [rng.randrange(vocabulary) for _ in range(context)]


def task_of(
    case: Case, draft: Draft, target: Transformer, prompt: list[int], params: SamplingParams, repeat: int
) -> Task:
    seeded = replace(params, seed=repeat + 1)
    # It tells the lane's events whose drafts they are; the cycle makes them.
    drafter = METHODS[case.drafter].make(TargetView(target, getattr(draft, "taps", ())), draft, 1)
    return Task(target, prompt, seeded, drafter, case.k, details=False)


def row(case: Case, plain: Case, draft: Draft, target: Transformer) -> dict[str, Any]:
    """Medians over the runs; the ratio to plain decoding with its 95 % interval, from the runs side by side."""
    runs, step = case.runs, median(run.seconds_per_token or math.inf for run in plain.runs)
    ratios = [
        (a.seconds_per_token or math.inf) / (b.seconds_per_token or math.inf)
        for a, b in zip(plain.runs, runs, strict=True)
    ]
    tau = pooled_tau(runs)
    drafted, judged = sum(run.drafted for run in runs), sum(run.judged for run in runs)
    passes = [seconds for run in runs for seconds in (run.verify_seconds or run.step_seconds)]
    roof = seconds_at_peak(draft, target, case.k, case.context)
    token = median(run.seconds_per_token or math.inf for run in runs)
    return {
        "pair": case.pair,
        "drafter": case.drafter,
        "synthetic": True,
        "context": case.context,
        "k": case.k,
        "synthetic_alpha": case.alpha,
        "alpha": middle([sum(run.accepted for run in runs) / judged]) if judged else None,
        "tau": round(tau, 4),
        "seconds_per_token": token,
        "seconds_per_token_spread": [min(r.seconds_per_token or 0.0 for r in runs), max_of(runs)],
        "prefill_seconds": median(run.prefill_seconds for run in runs),
        "measured_speedup": round(median(ratios), 4),
        "measured_speedup_interval": interval(ratios),
        "draft_cost": round(sum(run.draft_seconds for run in runs) / drafted / step, 4) if drafted else None,
        "verify_cost": round(median(passes) / step, 4),
        "roofline_seconds_per_token": roof / tau if roof else None,
        "roofline_share": round(roof / tau / token, 4) if roof else None,
        "host_syncs_per_cycle": round(case.syncs, 4),
        "engine_overhead_share": round(median(case.other), 4),
        "event_overhead_share": round(median(case.events), 4),
        "setup_seconds": round(case.setup, 4),
        "eager_because": case.cycle.graphs.reason,
    }


def max_of(runs: Iterable[LaneStats]) -> float:
    return max(run.seconds_per_token or 0.0 for run in runs)


def seconds_at_peak(draft: Draft, target: Transformer, k: int, context: int) -> float | None:
    """Seconds of one cycle at the machine's peak figures; None for a GPU that `assets/hardware.json` does not know."""
    machines = json.loads(HARDWARE.read_text(encoding="utf-8"))["machines"]
    name = torch.cuda.get_device_name(0) if target.device.startswith("cuda") else "cpu"
    known = next((m for m in machines if m["id"] in name.lower().replace(" ", "")), None)
    if known is None:
        return None
    peak = roofline.Machine(known["tflops"] * 1e12, known["gbps"] * 1e9, known["mib"] * 2**20)
    bits = 8 * target.dtype.itemsize

    def weights(model: Transformer) -> int:
        # The table of embeddings is read at a few rows; where it is tied, the output matrix is the same numbers.
        return model.parameters - (0 if model.config.tie_word_embeddings else model.embedding.numel())

    def seconds(read: int, model: Transformer, rows: int) -> float:
        shape = roofline.Model(read, read, len(model.layers), model.heads, model.kv_heads, model.head_dim)
        return roofline.pass_seconds(peak, shape, bits, 1, rows, context)

    check = seconds(weights(target), target, k + 1)
    if isinstance(draft, Eagle3Head):  # the first step also fuses features
        decoder = draft.decoder
        return check + seconds(draft.parameters, decoder, k + 1) + (k - 1) * seconds(weights(decoder), decoder, 1)
    return check + (k * seconds(weights(draft), draft, 1) if isinstance(draft, Transformer) else 0.0)


def device_here() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def dtype_here() -> torch.dtype:
    return torch.bfloat16 if torch.cuda.is_available() else torch.float32


def random_model(shape: dict[str, Any], seed: int) -> Transformer:
    """Weights as fresh models have them: normal, with deviation 0.02; norms are ones."""
    config, normal = Config.read(shape), drawn(seed)
    width, size = config.hidden_size, config.head_dim
    weights: Weights = {
        "model.embed_tokens.weight": normal(config.vocab_size, width),
        "model.norm.weight": torch.ones(width),
    }
    if not config.tie_word_embeddings:
        weights["lm_head.weight"] = normal(config.vocab_size, width)
    norms = {"input_layernorm": width, "post_attention_layernorm": width}
    if config.model_type == "qwen3":
        norms |= {"self_attn.q_norm": size, "self_attn.k_norm": size}
    for i in range(config.num_hidden_layers):
        weights |= layer(f"model.layers.{i}", shape, width, normal, norms)
    return Transformer(config, weights, dtype_here(), device_here())


def random_head(shape: dict[str, Any], vocabulary: int, target: Transformer, seed: int) -> Eagle3Head:
    """An EAGLE-3 head for a target of that shape, as its authors shape theirs: it knows the first `vocabulary` ids."""
    width, normal, taps = target.config.hidden_size, drawn(seed), default_taps(len(target.layers))
    norms = {"hidden_norm": width, "input_layernorm": width, "post_attention_layernorm": width}
    weights = layer("midlayer", shape, 2 * width, normal, norms) | {
        "fc.weight": normal(width, len(taps) * width),
        "norm.weight": torch.ones(width),
        "lm_head.weight": normal(vocabulary, width),
    }
    return Eagle3Head(Config.read({**shape, "num_hidden_layers": 1}), weights, target, taps)


def drawn(seed: int) -> Normal:
    generator = torch.Generator(device_here()).manual_seed(seed)
    return lambda *size: 0.02 * torch.randn(*size, generator=generator, device=device_here(), dtype=dtype_here())


def layer(name: str, shape: dict[str, Any], read: int, normal: Normal, norms: dict[str, int]) -> Weights:
    """One block whose attention reads `read` numbers."""
    config, inner = Config.read(shape), shape["intermediate_size"]
    width, queries = config.hidden_size, config.num_attention_heads * config.head_dim
    keys = config.num_key_value_heads * config.head_dim
    parts = {
        "self_attn.q_proj": (queries, read), "self_attn.k_proj": (keys, read), "self_attn.v_proj": (keys, read),
        "self_attn.o_proj": (width, queries), "mlp.gate_proj": (inner, width), "mlp.up_proj": (inner, width),
        "mlp.down_proj": (width, inner),
    }  # fmt: skip
    weights = {f"{name}.{part}.weight": normal(*size) for part, size in parts.items()}
    return weights | {f"{name}.{norm}.weight": torch.ones(size) for norm, size in norms.items()}


COLUMNS = {
    "pair": "pair", "drafter": "drafter", "context": "context", "k": "K", "synthetic_alpha": "α (synthetic)",
    "tau": "τ", "seconds_per_token": "s/token", "roofline_seconds_per_token": "roofline",
    "measured_speedup": "measured", "draft_cost": "c", "verify_cost": "v", "host_syncs_per_cycle": "syncs",
    "engine_overhead_share": "engine", "event_overhead_share": "events", "setup_seconds": "set-up s",
}  # fmt: skip


def table(rows: Sequence[dict[str, Any]]) -> str:
    frame = pandas.DataFrame(list(rows))[list(COLUMNS)].rename(columns=COLUMNS)
    small = {name: "{:.6f}".format for name in ("s/token", "roofline")}
    return "Random weights, synthetic acceptance.\n" + frame.to_string(
        index=False, float_format="{:.2f}".format, formatters=small, na_rep="–"
    )
