"""Measure the costs of drafting in short runs, and choose the drafter and draft depth that a run leaves open.

The default is expected to be fastest: tokens per cycle divided by a cycle's cost (Leviathan et al. 2022, theorem 3.8).
The acceptance rate is in the drafter's config.json if training wrote it. The user's cache folder keeps measured costs.
"""

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from itertools import accumulate
from operator import mul
from pathlib import Path
from statistics import linear_regression, median, mode
from typing import Any

import numpy as np
import torch

from .. import __version__
from ..events import Event, Failed
from ..families.zoo import Family
from ..figures import machine
from ..figures.stats import Comparison, LaneStats
from ..messages import Refused
from ..methods import ACCEPTANCE, Choice, DEFAULT_DRAFTER, find_method
from ..models.build import folder
from ..models.device import torch_threads
from ..paths import write_whole
from ..task import Task
from ..traces.cycle import cycles
from ..types import Costs, SamplingParams
from .race import run_task
from .transformers import usual_drafter

Report = Callable[[int, int], None]  # of the parts that are done, and of all
DEPTHS = range(1, 9)  # each depth is measured, because costs do not grow evenly with the depth
TOKENS = 25  # new tokens of each run
GREEDY = SamplingParams(max_tokens=TOKENS, ignore_end=True)
SAMPLED = replace(GREEDY, temperature=0.8)
# A short prompt would understate costs: after a longer text, a pass over several tokens costs more.
TEXT = "The ship sailed at dawn, and nobody on the quay knew where she was bound. " * 4
# For drafters whose costs are not measured, or whose acceptance is unknown, so that no depth can be expected to be the
# best: that of drafters that copy depends on the text; trees, and heads of others, come without a figure.
USUAL_K = 4
USUAL_ADAPTIVE_K = 8  # the greatest depth that an adaptive drafter may choose
ENOUGH_SPEEDUP = 1.3  # once a drafter is expected to reach this, no further drafter is measured
# A shallower draft is preferred if it reaches this share of the best speed-up, as it loses less on a hard prompt.
NEARLY_BEST = 0.95


def choose(
    family: Family,
    drafter: Any = DEFAULT_DRAFTER,
    k: int = 0,
    temperature: float = 0.0,
    measure: bool = True,
    peer: bool = False,
    report: Report = lambda done, total: None,
) -> Choice:
    """Choose the drafter if it is `DEFAULT_DRAFTER`, and the depth if `k` is 0; other values stay as given.

    If no depth is expected to save time, the depth is 1; "none" has depth 0. Unless `measure`, nothing is measured:
    drafters whose costs are unknown are left out. If all are, or none drafts, the first has the usual depth, as has a
    drafter that is an object. `adaptive` always measures its drafter. With `peer`, transformers has the default, too.
    """
    if not isinstance(drafter, str):
        return Choice(drafter, k or USUAL_K)
    if drafter == "none":
        return Choice(drafter, 0)
    if inner := family.wrapped(drafter):
        probe(family, inner, report)
        return Choice(drafter, k or USUAL_ADAPTIVE_K)
    if peer and drafter == DEFAULT_DRAFTER:
        drafter = usual_drafter(family)
    measurable = family.drafters if measure else family.costs
    if drafter == DEFAULT_DRAFTER:
        names = [name for name in ACCEPTANCE if name in family.drafters]
        choices = candidates(family, [name for name in names if name in measurable], k, temperature, report)
        usual = Choice(next(iter(names), family.default_drafter), k or USUAL_K)
        return max(choices, key=lambda choice: choice.speedup, default=usual)
    has_best_depth = not k and drafter in measurable and acceptance(family, drafter, temperature)
    return best_depth(family, drafter, 0, temperature, report) if has_best_depth else Choice(drafter, k or USUAL_K)


def candidates(family: Family, names: Iterable[str], k: int, temperature: float, report: Report) -> list[Choice]:
    """Return each of these drafters that drafts at all, at its best depth, up to the first that is fast enough."""
    choices = list[Choice]()
    for name in names:
        with contextlib.suppress(Refused):
            choices.append(best_depth(family, name, k, temperature, report))
            if choices[-1].speedup >= ENOUGH_SPEEDUP:
                break
    return choices


def best_depth(family: Family, name: str, k: int, temperature: float, report: Report) -> Choice:
    """Choose the shallowest depth that is nearly the fastest, if `k` is 0, or 1 if none saves time."""
    probe(family, name, report)
    choices = [expect(family, name, depth, temperature) for depth in ([k] if k else DEPTHS)]
    threshold = NEARLY_BEST * max(choice.speedup for choice in choices)
    best = next(choice for choice in choices if choice.speedup >= threshold)
    return best if k or best.speedup > 1.0 else choices[0]


def acceptance(family: Family, name: str, temperature: float) -> Sequence[float]:
    """Return the acceptance by position that training measured, or else that of its method; [] if neither is known."""
    method = find_method(name)
    assumed = [ACCEPTANCE[method.name]] if method is not None and method.name in ACCEPTANCE else []
    return family.trained.get(name, {}).get("overlap" if temperature else "agreement") or assumed


def expect(family: Family, name: str, depth: int, temperature: float) -> Choice:
    """Return this choice with its expected speed-up. The last known rate also counts for all later positions."""
    rates = acceptance(family, name, temperature)
    tokens = 1.0 + sum(accumulate([*rates, *[rates[-1]] * depth][:depth], mul))  # 1 + α₁ + α₁α₂ + …
    return Choice(name, depth, tokens / probe(family, name).at(temperature).cycle(depth))


def probe(family: Family, name: str, report: Report = lambda done, total: None) -> Costs:
    """Return the costs of drafting with `name`, in units of a plain decoding step, measured once on a machine."""
    if name not in family.costs:
        recall(family)  # what another process has measured by now
    if name not in family.costs:
        family.costs[name] = measure_costs(family, name, report)
        if not family.in_memory:
            store({key(family, name): asdict(family.costs[name])})
    return family.costs[name]


def measure_costs(family: Family, name: str, report: Report = lambda done, total: None, text: str = TEXT) -> Costs:
    """Measure the costs of drafting with `name` after a text: short runs of each depth, each followed by a plain run.

    Costs are medians over cycles or runs, so that one pause of the machine does not distort them. Raises Refused if
    `name` drafts nothing, or if a run fails.
    """
    for warm_up in (name, "none"):  # first calls are slow
        report(0, len(DEPTHS))
        events_of(family, warm_up, max(DEPTHS), text)
    comparisons, drafts, passes = list[Comparison](), dict[int, list[float]](), dict[int, list[float]]()
    for k in DEPTHS:
        report(k - 1, len(DEPTHS))
        run, plain = events_of(family, name, k, text), events_of(family, "none", 0, text)
        comparisons.append(Comparison(*(LaneStats.from_events(events, Task.lane) for events in (run, plain))))
        measured = cycles_of(run)
        # Some drafts are shallower than k, such as those near the end. Only cycles of the most frequent depth count.
        usual = mode(depth for depth, _, _ in measured) if measured else 0
        for depth, draft, verify in measured:
            if depth == usual:
                drafts.setdefault(usual, []).append(draft)
                passes.setdefault(usual, []).append(verify)
    if not drafts:
        raise Refused(f"{name} drafted nothing while its costs were measured, so its depth cannot be chosen")
    step = median(comparison.step for comparison in comparisons if comparison.step)
    draft_costs, pass_costs = ({k: median(s) / step for k, s in seconds.items()} for seconds in (drafts, passes))
    per_level, fixed = fit_line(draft_costs)
    deepest = max(drafts)
    run = events_of(family, name, deepest, text, SAMPLED)
    sampled = [draft for depth, draft, _ in cycles_of(run) if depth == deepest]
    sampling = median(sampled) / step - draft_costs[deepest] if sampled else 0.0
    return Costs(
        round(per_level, 4),
        tuple(round(cost, 4) for cost in interpolate(pass_costs)),
        round(median(comparison.overhead or 0.0 for comparison in comparisons), 4),
        round(max(0.0, sampling / deepest), 4),
        round(fixed, 4),
    )


def events_of(family: Family, name: str, k: int, text: str = TEXT, params: SamplingParams = GREEDY) -> list[Event]:
    prompt = family.encode(text)[: max(1, family.target.context - TOKENS)]
    target, drafter = family.new_drafter(name, len(prompt) + TOKENS)
    task = Task(target, prompt, params, drafter, k, details=False, resources=family.resources)
    return whole_run(run_task(task), name)


def whole_run(stream: Iterable[Event], name: str) -> list[Event]:
    """List the events of a run with the drafter `name`. Raises Refused if a draft or the run failed."""
    events = list(stream)
    if failed := next((event for event in events if isinstance(event, Failed)), None):
        raise Refused(f"the drafter {name} cannot be measured, as a run failed: {failed.reason}")
    return events


def cycles_of(events: Sequence[Event]) -> list[tuple[int, float, float]]:
    """List the cycles with a draft: its depth, the seconds of drafting, and those of the verification pass."""
    return [
        (cycle.tree.max_depth, draft.end - draft.start, verified.end - verified.start)
        for cycle in cycles(events)
        if cycle.committed.cycle and (draft := cycle.drafted) and (verified := cycle.verified)
    ]


def fit_line(drafts: dict[int, float]) -> tuple[float, float]:
    """Fit a line to the costs by depth. Return the cost per level and the fixed cost of a draft, both at least 0."""
    if len(drafts) == 1:
        ((depth, cost),) = drafts.items()
        return cost / depth, 0.0
    slope, fixed = linear_regression(list(drafts), list(drafts.values()))
    return max(0.0, slope), max(0.0, fixed)


def interpolate(passes: dict[int, float]) -> list[float]:
    """Return the costs of passes for depths 0, 1, …: interpolated between measured depths, constant beyond them.

    Depth 0, a plain decoding step, costs 1.0. No pass costs less than one for a shallower draft.
    """
    depths = sorted(passes)
    costs = np.interp([0, *DEPTHS], [0, *depths], [1.0, *(passes[depth] for depth in depths)])
    return np.maximum.accumulate(costs).tolist()  # type: ignore[no-any-return]


def file() -> Path:
    return folder() / "costs.json"


def key(family: Family, measured: str) -> str:
    """Return all that a measurement depends on. `measured` is a drafter, or "N threads"."""
    here, size = machine.describe(), getattr(family.drafters.get(measured), "parameters", 0)
    facts = [__version__, here.get("torch"), here["cpu"], here.get("gpu"), family.describe(), measured, size]
    return json.dumps(facts, sort_keys=True)


def fastest_threads(family: Family, spared_cores: int) -> int:
    """Tune the threads once on a machine, since costs belong to their number. A busy machine stores nothing."""
    place = key(family, f"{machine.cores() - spared_cores} threads")
    if family.in_memory or not isinstance(count := read_file().get(place), int):
        count = tune_threads(family, spared_cores)
        if not (family.in_memory or machine.busy()):
            store({place: count})
    return count


@torch.inference_mode()
def tune_threads(family: Family, spared_cores: int = 0, passes: int = 4) -> int:
    """Time short passes; return the fastest number of threads that leaves `spared_cores` to other programs."""
    most, limit = machine.cores() - spared_cores, os.environ.get("OMP_NUM_THREADS", "")
    most = max(1, min(most, int(limit)) if limit.isdecimal() else most)
    counts = sorted({count for count in (1, 2, most // 2, most) if 0 < count <= most})
    seconds: dict[int, list[float]] = {count: [] for count in counts}
    cache = family.target.new_cache(64)
    for count in counts * passes if len(counts) > 1 else ():  # in turn, as a short moment may be busy
        times = seconds[count]
        with torch_threads(count):
            for length in (1, 2, 5):
                start = time.perf_counter()
                family.target.forward([0] * length, cache, rows=length)
                times.append(time.perf_counter() - start)
                cache.keep(0)
    return min(seconds, key=lambda count: median(seconds[count] or [0.0]))


def recall(family: Family) -> None:
    """Add the costs of the family's drafters that were measured earlier."""
    stored = read_file()
    for name in () if family.in_memory else family.drafters:
        if name not in family.costs and (values := stored.get(key(family, name))):
            with contextlib.suppress(TypeError, KeyError):  # written by another version
                family.costs[name] = Costs(**{**values, "passes": tuple(values["passes"])})


def store(new: dict[str, Any]) -> None:
    """Write measurements beside the others. If the folder cannot be written, they are measured again."""
    with contextlib.suppress(OSError):
        write_whole(file(), json.dumps(read_file() | new))


def read_file() -> dict[str, Any]:
    with contextlib.suppress(OSError, ValueError):
        content = json.loads(file().read_text(encoding="utf-8"))
        return content if isinstance(content, dict) else {}
    return {}
