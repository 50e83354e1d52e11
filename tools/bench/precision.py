"""Quantise or draft? Plain and speculative decoding in 32, 16 and 8 bits, ours and llama.cpp's, in the same minutes.

Each precision is a target of its own, with its own distribution: `law_moved` says how far it lies from
float32's. Drafting moves no distribution. A lane is an engine, a precision and a way to draft, at the K that was best
in rounds of their own. The lanes of a precision stand between two plain runs of ours in float32, and the mean of these
is what their speed is a ratio to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import median
from typing import Any

import pandas
import torch
from tqdm import tqdm

from specdec.bench.measure import params_for, run
from specdec.bench.prompts import PROMPTS
from specdec.export.llama_cpp import Numbers
from specdec.families.zoo import dtype_of, Family, load
from specdec.figures.stats import interval, LaneStats, middle
from specdec.lanes.race import SPECULATIVE, tasks
from specdec.methods import DEFAULT
from specdec.sampling import probabilities
from specdec.types import SamplingParams

from .journal import Journal
from .llama_cpp import command, Servers, VARIABLE
from .options import Options

OURS, THEIRS, PLAIN = "specdec", "llama.cpp", "plain"
TEMPERATURES = (0.0, 0.8)
NUMBERS: dict[str, Numbers] = {"float32": "f32", "bfloat16": "bf16", "int8": "q8_0"}
DRAFTERS = (DEFAULT, "block")  # as far as the family has them
MISSING = f"llama.cpp is left out: there is no llama-server here; install llama.cpp, or name its place in {VARIABLE}"


@dataclass(frozen=True)
class Lane:
    engine: str
    precision: str
    method: str
    k: int = 0


@dataclass(frozen=True)
class Written:
    """One text: its ids, and tokens per second after the first."""

    ids: tuple[int, ...]
    rate: float
    tau: float | None = None


@dataclass(frozen=True)
class Measured:
    """A lane's text, and the rate of our plain runs in float32 on either side."""

    prompt: int
    written: Written
    base: float


Write = Callable[[Lane, str, SamplingParams], Written]


def report(options: Options, journal: Journal) -> dict[str, Any]:
    """ValueError where models cannot be loaded, or llama.cpp's server cannot be started or breaks off."""
    families = {name: load(options.family, dtype_of(name)) for name in NUMBERS}
    exact = families["float32"]
    for family in families.values():
        family.threads = exact.threads  # as many for every lane
    executable = command() if options.peers else None
    if options.peers and executable is None:
        print(MISSING)
    with Servers(executable or "", options.family, exact.threads) as servers:
        write = writer(families, servers)
        lanes = [*ours(exact, options.k), *(theirs(options.k) if executable else [])]
        rows = []
        for domain in PROMPTS:
            for temperature in TEMPERATURES:
                found = side_by_side(write, lanes, domain, temperature, options)
                rows += journal.measured(f"{domain}, T = {temperature}", found)
        version = servers.lane("f32").facts.version if executable else None
    moved = {name: distribution_moved(exact, family) for name, family in families.items() if family is not exact}
    if rows:
        print(pandas.DataFrame(rows).to_string(index=False))
    return {
        "rows": rows,
        "law_moved": moved,
        "llama_cpp": version,
        "tokens": options.tokens,
        "models": {name: family.describe() for name, family in families.items()},
    }


def ours(family: Family, depths: Sequence[int]) -> list[Lane]:
    drafters = [name for name in DRAFTERS if name in family.drafters]
    drafting = [(name, k) for name in drafters for k in depths]
    return [Lane(OURS, name, *one) for name in NUMBERS for one in [(PLAIN, 0), *drafting]]


def theirs(depths: Sequence[int]) -> list[Lane]:
    return [Lane(THEIRS, name, *one) for name in NUMBERS for one in [(PLAIN, 0), *((DEFAULT, k) for k in depths)]]


def writer(families: dict[str, Family], servers: Servers) -> Write:
    def write(lane: Lane, prompt: str, params: SamplingParams) -> Written:
        family = families[lane.precision]
        if lane.engine == OURS:
            drafter = "none" if lane.method == PLAIN else lane.method
            stats: LaneStats = run(tasks(family, prompt, drafter, lane.k, params, details=False)[SPECULATIVE])
            return Written(tuple(stats.ids), stats.tokens_per_second or 0.0, stats.tau)
        ids, seconds = servers.lane(NUMBERS[lane.precision], lane.k).timed(family.encode(prompt), params)
        return Written(ids, (len(ids) - 1) / seconds)

    return write


def side_by_side(
    write: Write, lanes: Sequence[Lane], domain: str, temperature: float, options: Options
) -> Iterator[dict[str, Any]]:
    """A row a lane at its best K."""
    prompts, best = PROMPTS[domain], list(lanes)
    if len({kind_of(lane) for lane in lanes}) < len(lanes):
        tried = measure(write, lanes, prompts, temperature, options.tokens, [0], f"{domain}: choosing K")
        fastest = {kind_of(lane): lane for lane in sorted(lanes, key=lambda lane: ratio(tried[lane]))}
        best = [lane for lane in lanes if lane is fastest[kind_of(lane)]]
    seeds = range(1, 1 + options.repeats)  # others than that which chose K, and would flatter what it chose
    found = measure(write, best, prompts, temperature, options.tokens, seeds, f"{domain}, T = {temperature}")
    plain = {(one.engine, one.precision): found[one] for one in best if one.method == PLAIN}
    for lane in best:
        runs, beside = found[lane], plain[lane.engine, lane.precision]
        written = texts(beside)
        same = sum(text == written[prompt] for prompt, text in texts(runs).items())
        yield {
            "engine": lane.engine,
            "precision": lane.precision,
            "method": lane.method,
            "domain": domain,
            "temperature": temperature,
            "k": lane.k,
            "tokens_per_second": round(median(one.written.rate for one in runs), 1),
            "ratio": round(ratio(runs), 4),
            "ratio_interval": interval(one.written.rate / one.base for one in runs),
            "tau": middle(one.written.tau for one in runs),
            "same_text": [same, len(prompts)] if temperature == 0.0 else None,
            **({} if lane.method == PLAIN else over_plain(runs, beside)),
        }


def measure(
    write: Write, lanes: Sequence[Lane], prompts: Sequence[str], temperature: float, tokens: int, seeds: Sequence[int],
    name: str,
) -> dict[Lane, list[Measured]]:  # fmt: skip
    """Every lane in turn, prompt by prompt and seed by seed, after one text that warms it up."""
    base = Lane(OURS, "float32", PLAIN)
    groups: dict[tuple[str, str], list[Lane]] = {}
    for lane in lanes:
        groups.setdefault((lane.engine, lane.precision), []).append(lane)
    found: dict[Lane, list[Measured]] = {lane: [] for lane in lanes}
    for lane in lanes:
        write(lane, prompts[0], params_for(temperature, tokens, seeds[0]))
    for seed, (index, prompt) in tqdm(list(product(seeds, enumerate(prompts))), desc=name, unit="text", mininterval=2):
        params = params_for(temperature, tokens, seed)
        before = write(base, prompt, params).rate
        for group in groups.values():
            told = {lane: write(lane, prompt, params) for lane in group}
            after = write(base, prompt, params).rate
            for lane, written in told.items():
                found[lane].append(Measured(index, written, (before + after) / 2))
            before = after
    return found


def kind_of(lane: Lane) -> tuple[str, str, str]:
    return lane.engine, lane.precision, lane.method


def ratio(runs: Sequence[Measured]) -> float:
    return median(one.written.rate / one.base for one in runs)


def over_plain(runs: Sequence[Measured], plain: Sequence[Measured]) -> dict[str, Any]:
    """What drafting did to each text: its rate over that of the same text, seed and minutes without drafts."""
    ratios: dict[int, list[float]] = {}
    for one, other in zip(runs, plain, strict=True):
        ratios.setdefault(one.prompt, []).append(one.written.rate / other.written.rate)
    every = [ratio for of_prompt in ratios.values() for ratio in of_prompt]
    return {
        "over_plain": round(median(every), 4),
        "over_plain_interval": interval(every),
        "faster_than_plain": [sum(median(of_prompt) > 1.0 for of_prompt in ratios.values()), len(ratios)],
    }


def texts(runs: Sequence[Measured]) -> dict[int, tuple[int, ...]]:
    """By prompt; greedy, every round writes the same."""
    return {one.prompt: one.written.ids for one in runs}


@torch.inference_mode()
def distribution_moved(exact: Family, other: Family) -> float:
    """The mean total variation between both targets' distributions of the next token, over all prompts, at temperature
    1.
    """
    distances = []
    for prompt in (prompt for prompts in PROMPTS.values() for prompt in prompts):
        ids = exact.encode(prompt)
        p, q = (
            probabilities(model.forward(ids, model.new_cache(len(ids)), rows=len(ids) - 1), SamplingParams(1.0))
            for model in (exact.target, other.target)
        )
        distances += (0.5 * (p - q).abs().sum(-1)).tolist()
    return round(sum(distances) / len(distances), 4)
