"""A server of others, watched from outside: what it accepts, its speed beside a plain one, and both under load.

Each text is asked of the two servers in turn. Under load, several texts are in hand at once: there a pass over
more rows is no longer nearly free, and at some number of requests speculation stops paying.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Any

import pandas
from tqdm import tqdm

from ..events import Event, Failed
from ..figures.stats import Comparison, interval, LaneStats, middle, summary
from ..servers import lane
from ..servers.base import Server
from ..servers.connect import connect_pair
from ..servers.stream import Limits
from ..types import SamplingParams
from .measure import params_for
from .options import Options
from .prompts import PROMPTS

TEMPERATURES = (0.0, 0.8)
DAY_S = 86_400.0
CROWDS = (1, 4, 16)  # requests at once
FIGURES = (
    "alpha", "alpha_by_position", "draft_acceptance_rate", "tau", "tokens_per_second", "plain_tokens_per_second",
    "first_token_seconds", "plain_first_token_seconds", "measured_speedup",
)  # fmt: skip
COLUMNS = {
    "domain": "domain", "temperature": "T", "cycles": "cycles", "alpha": "α", "tau": "τ",
    "plain_tokens_per_second": "plain tok/s", "tokens_per_second": "tok/s", "measured_speedup": "measured",
    "identical_to_plain": "identical",
}  # fmt: skip


def report(options: Options) -> dict[str, Any]:
    """ValueError where a server cannot be asked, or breaks off."""
    server, plain = connect_pair(
        options.server or "", options.plain, os.environ.get("SPECDEC_SERVER_KEY", ""), Limits(total_s=DAY_S)
    )
    rows = measure(server, plain, options)
    print(pandas.DataFrame(rows)[list(COLUMNS)].rename(columns=COLUMNS).to_string(index=False), end="\n\n")
    crowds = [one for temperature in TEMPERATURES for one in under_load(server, plain, temperature, options)]
    print(pandas.DataFrame(crowds).to_string(index=False))
    return {"rows": rows, "under_load": crowds, "tokens": options.tokens, "models": lane.about(server, plain)}


def measure(server: Server, plain: Server | None, options: Options) -> list[dict[str, Any]]:
    """A row a domain and temperature; the first round warms up."""
    rows = []
    total = sum(map(len, PROMPTS.values())) * len(TEMPERATURES) * (options.repeats + 1)
    with tqdm(total=total, desc="one at a time", unit="text", mininterval=2) as bar:
        for domain, prompts in PROMPTS.items():
            for temperature in TEMPERATURES:
                races = list[Comparison]()
                for repeat in range(options.repeats + 1):
                    for prompt in prompts:
                        race = raced(server, plain, prompt, params_for(temperature, options.tokens, repeat))
                        races += [race] if repeat else []
                        bar.update()
                rows.append({"domain": domain, "temperature": temperature} | row(races, plain, temperature == 0.0))
    return rows


def row(races: Sequence[Comparison], plain: Server | None, greedy: bool) -> dict[str, Any]:
    known = summary(races)
    return {
        "cycles": "/".join(sorted({race.speculative.counted or "none" for race in races})),
        **{name: known[name] for name in FIGURES},
        "measured_speedup_interval": interval(race.measured_speedup for race in races),
        "identical_to_plain": all(x.speculative.ids == x.plain.ids for x in races) if plain and greedy else None,
    }


def raced(server: Server, plain: Server | None, prompt: str, params: SamplingParams) -> Comparison:
    *_, last = lane.race(server, plain, prompt, params)
    assert isinstance(last, lane.FinalTrace)
    return Comparison.of(sound(last.events))


def sound(events: Sequence[Event]) -> Sequence[Event]:
    for event in events:
        if isinstance(event, Failed):
            raise ValueError(f"the server failed in the middle of the suite: {event.reason}")
    return events


def under_load(server: Server, plain: Server | None, temperature: float, options: Options) -> list[dict[str, Any]]:
    """By requests in hand: tokens per second of all, milliseconds per token of one; the servers take turns."""
    found = []
    both = {"speculative": server} | ({"plain": plain} if plain is not None else {})
    for crowd in CROWDS:
        rates: dict[str, list[float]] = {name: [] for name in both}
        waits: dict[str, list[float | None]] = {name: [] for name in both}
        for repeat in tqdm(range(options.repeats + 1), desc=f"{crowd} at once, T = {temperature}", mininterval=2):
            for name, one in both.items():
                rate, lanes = crowded(one, crowd, temperature, options.tokens, repeat)
                if repeat:
                    rates[name].append(rate)
                    waits[name] += [stats.seconds_per_token for stats in lanes]
        gains = [fast / slow for fast, slow in zip(rates["speculative"], rates.get("plain", ()), strict=False)]
        figures = {f"{name}_tokens_per_second": middle(values) for name, values in rates.items()}
        figures |= {f"{name}_ms_per_token": middle(1e3 * x for x in values if x) for name, values in waits.items()}
        found.append({"requests": crowd, "temperature": temperature} | figures | {"gain": middle(gains)})
    return found


def crowded(server: Server, crowd: int, temperature: float, tokens: int, seed: int) -> tuple[float, list[LaneStats]]:
    """All prompts, `crowd` of them in hand at any time: tokens per second of the whole, and each text's lane."""
    params = params_for(temperature, tokens, seed)
    read = [lane.tokens(server, prompt) for prompt in chain.from_iterable(zip(*PROMPTS.values(), strict=True))]

    def one(prompt: Sequence[int]) -> LaneStats:
        return LaneStats.of(sound(list(lane.watch(server, prompt, params, top=0))), lane.SPECULATIVE)

    start = time.perf_counter()
    with ThreadPoolExecutor(crowd) as pool:
        lanes = list(pool.map(one, read))
    return sum(stats.tokens for stats in lanes) / (time.perf_counter() - start), lanes
