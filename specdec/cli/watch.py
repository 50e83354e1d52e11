"""`specdec "Once upon a time" --server URL`: a server of others in the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median

from ..events import Committed, Event, Failed, Started, Verified
from ..figures.stats import Comparison
from ..servers import lane
from ..servers.base import Server
from ..servers.connect import connect_pair
from ..traces import file as trace
from ..traces.file import Header
from ..types import SamplingParams
from .commands import KEY
from .render import as_lines, render, strip_control_characters, STYLES

COUNTED = {
    "exact": "exact: the server's own count of each agrees with what arrived",
    "merged": "merged: the server's own list was laid over what arrived together",
    "totals": "totals only: what arrived together is taken for one",
    None: "none: the server drafted nothing",
}


def watched(
    prompt: str, address: str, plain_address: str | None, key_env: str, params: SamplingParams, kind: str, as_json: bool
) -> tuple[Header, list[Event]]:
    """The run as the server counts it at its end, told on the standard output. ServerError where it cannot begin."""
    key = os.environ.get(key_env, "")
    if key_env != KEY and not key:
        raise ValueError(f"the environment holds no {key_env}")
    server, plain = connect_pair(address, plain_address, key)
    header = trace.live_header(prompt, lane.about(server, plain), kind)
    lanes = ("speculative", "plain") if plain else ("speculative",)
    header = replace(header, lanes=lanes, machine={})  # the server's machine is not told
    events = list[Event]()
    if not as_json:
        sys.stdout.write(prompt)
    for told in lane.race(server, plain, prompt, params):
        if isinstance(told, lane.FinalTrace):
            events = list(told.events)
        elif isinstance(told, Committed) and told.lane == "speculative" and not as_json:
            sys.stdout.write(strip_control_characters(told.text))
            sys.stdout.flush()
    if as_json:
        return header, as_lines(header, events)
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    mine = [event for event in events if event.lane == "speculative"]
    drawn = "".join(render(event, mine[: place + 1], colour) for place, event in enumerate(mine))
    print(f"\n\n{drawn}\n\n{report(events, server)}")
    return header, events


def report(events: Sequence[Event], server: Server) -> str:
    """The figures, one per line, with their units; last what this server does not report."""
    comparison = Comparison.of(events)
    spec, plain = comparison.speculative, comparison.plain
    beside = any(isinstance(event, Started) and event.lane == "plain" for event in events)
    facts, unknown = server.facts, "not reported"
    depth = f", at most {facts.k} tokens drafted a cycle" if facts.k else ""
    totals = spec.counted not in ("exact", "merged")
    rows = [
        ("server", f"{facts.kind} {facts.version}, model {facts.model}{depth}"),
        ("cycles", COUNTED[spec.counted]),
        ("speculative", figure(spec.tokens_per_second, 1, "tokens/s")),
        ("plain decoding", figure(plain.tokens_per_second, 1, "tokens/s") if beside else "– no --plain server given"),
        *([("measured speed-up", figure(comparison.measured_speedup, 2, "×"))] if beside else []),
        ("acceptance rate α", figure(spec.alpha, 2, unknown if totals else f"{spec.accepted} of {spec.judged} judged")),
        ("draft acceptance rate", figure(spec.draft_acceptance_rate, 2, f"{spec.accepted} of {spec.drafted} drafted")),
        ("block efficiency τ", figure(spec.tau, 2, "tokens per cycle")),
        ("time to first token", figure(1e3 * spec.prefill_seconds, 1, against(plain.prefill_seconds, beside))),
        ("time per token", figure(ms(spec.seconds_per_token), 2, against(plain.seconds_per_token, beside, 2))),
    ]
    for name in ("speculative", "plain") if beside else ("speculative",):
        if found := gaps(events, name):
            longest = f"median {1e3 * median(found):.1f}, longest {1e3 * max(found):.1f} ms"
            rows.append((f"gaps, {name}", longest))
    rows += [(f"{event.lane} failed", " ".join(event.reason.split())) for event in events if isinstance(event, Failed)]
    told = any(isinstance(event, Verified) and event.p is not None for event in events)
    probabilities = "the drafter's probabilities" if told else "both models' probabilities under these settings"
    rows.append(("not reported", f"which tokens were rejected, {probabilities}, coins, the time of drafting"))
    legend = "  ".join(f"{mark} {name}" for name, (_, mark) in STYLES.items())
    return "\n".join([*(f"{name:<28}{value}" for name, value in rows), "", legend])


def figure(value: float | None, digits: int, unit: str) -> str:
    return f"– {unit}".rstrip() if value is None else f"{value:.{digits}f} {unit}"


def ms(seconds: float | None) -> float | None:
    return None if seconds is None else 1e3 * seconds


def against(plain: float | None, beside: bool, digits: int = 1) -> str:
    return f"ms (plain {figure(ms(plain), digits, 'ms')})" if beside else "ms"


def gaps(events: Sequence[Event], name: str) -> list[float]:
    """Seconds between arrivals: tokens that came together are one."""
    times = sorted({event.at for event in events if isinstance(event, Committed) and event.lane == name})
    return [later - sooner for sooner, later in pairwise(times)]
