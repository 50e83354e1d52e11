"""What drafting costs on this machine, from a second of real decoding: the figures that `adaptive` weighs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import linear_regression, median, mode
from typing import NamedTuple

import numpy as np

from ..engine import Task
from ..events import Drafted, Event, Verified
from ..families.zoo import Family
from ..figures.stats import Comparison, LaneStats
from ..gpu.lane import generate
from ..types import Costs, SamplingParams, Tree

# Every usual depth: one row more may cost nothing, or a seventh of a pass. Long copies go deeper.
DEPTHS, TOKENS, ROUNDS = (*range(1, 9), 12, 16), 25, 3
GREEDY = SamplingParams(max_tokens=TOKENS, ignore_end=True)
WARM = replace(GREEDY, temperature=0.8)
# A text of usual length: a pass over several rows is more expensive after it than at the beginning of one.
TEXT = "The ship sailed at dawn, and nobody on the quay knew where she was bound. " * 4


def probe(family: Family, name: str) -> Costs:
    """Costs of drafting with `name`, in plain steps: as `measure` found them, once for this family."""
    if name not in family.costs:
        family.costs[name] = measure(family, name)
    return family.costs[name]


def measure(family: Family, name: str, depths: Sequence[int] = DEPTHS, rounds: int = ROUNDS) -> Costs:
    """The same, measured anew, at these depths alone and so many times each.

    Medians of single cycles: one pause of the machine must not make a depth look permanently expensive. ValueError
    where it drafts nothing.
    """
    compare(family, name, max(depths), 1)  # first calls are slow
    seen = {depth: compare(family, name, depth, rounds) for depth in depths}
    everything = [comparison for runs in seen.values() for comparison in runs.comparisons]
    step = median(one.step or 0.0 for one in everything)
    drafts, passes = dict[int, float](), dict[int, float]()
    for runs in seen.values():
        cycles = runs.cycles
        # Heads have a limit, and the last drafts of a text are cut short: the usual depth is the one measured.
        if usual := mode(cycle.depth for cycle in cycles) if cycles else 0:
            drafts[usual] = median(cycle.draft for cycle in cycles if cycle.depth == usual) / step
            passes[usual] = median(cycle.verify for cycle in cycles if cycle.depth == usual) / step
    if not drafts:
        raise ValueError(f"{name} drafted nothing while its costs were measured, so there is nothing to adapt")
    level, start = fit_line(drafts)
    overhead = median(one.overhead or 0.0 for one in everything)
    found = interpolated(passes, max(depths))
    deepest = max(drafts)
    sampled = [
        cycle for _ in range(rounds)
        for cycle in cycles_of(events_of(family, name, deepest, WARM)) if cycle.depth == deepest
    ]  # fmt: skip
    draws = median(cycle.draft for cycle in sampled) / step - drafts[deepest] if sampled else 0.0
    return Costs(
        round(level, 4), tuple(round(cost, 4) for cost in found), round(overhead, 4),
        round(max(0.0, draws / deepest), 4), round(start, 4),
    )  # fmt: skip


class Cycle(NamedTuple):
    """One that drafted: the depth of its draft, and the seconds of the draft and of the pass over it."""

    depth: int
    draft: float
    verify: float


class Runs(NamedTuple):
    comparisons: list[Comparison]
    cycles: list[Cycle]


def compare(family: Family, name: str, k: int, rounds: int = ROUNDS) -> Runs:
    """Short speculative runs of fixed depth, and a plain one for comparison."""
    lane, plain = Task.lane, events_of(family, "none", 0)
    drafted = [events_of(family, name, k) for _ in range(rounds)]
    comparisons = [
        Comparison(speculative=LaneStats.from_events(run, lane), plain=LaneStats.from_events(plain, lane))
        for run in drafted
    ]
    return Runs(comparisons, [cycle for run in drafted for cycle in cycles_of(run)])


def events_of(family: Family, name: str, k: int, params: SamplingParams = GREEDY) -> list[Event]:
    prompt = family.encode(TEXT)
    target, drafter = family.lane(name, len(prompt) + TOKENS)
    return list(generate(Task(target, prompt, params, drafter, k, details=False)))


def cycles_of(events: Sequence[Event]) -> list[Cycle]:
    drafted = {event.cycle: event for event in events if isinstance(event, Drafted) and event.cycle}
    return [
        Cycle(max(Tree(draft.parents).depths()), draft.end - draft.start, event.end - event.start)
        for event in events
        if isinstance(event, Verified) and (draft := drafted.get(event.cycle))
    ]


def fit_line(drafts: dict[int, float]) -> tuple[float, float]:
    """What a level of a draft costs and what any draft costs, from the cost by depth; neither is less than nothing.

    A draft model pays for each level, heads for the first alone.
    """
    if len(drafts) == 1:
        ((depth, cost),) = drafts.items()
        return cost / depth, 0.0
    slope, fixed = linear_regression(list(drafts), list(drafts.values()))
    return max(0.0, slope), max(0.0, fixed)


def interpolated(passes: dict[int, float], deepest: int) -> list[float]:
    """The cost of a pass over a draft of depth 0, 1, … `deepest`; 1.0 for none, straight lines between the measured.

    A deeper one never costs less.
    """
    measured = {0: 1.0} | passes
    depths = sorted(measured)
    costs = np.interp(range(deepest + 1), depths, [measured[depth] for depth in depths])
    return np.maximum.accumulate(costs).tolist()  # type: ignore[no-any-return]
