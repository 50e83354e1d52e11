"""Speed measured in pairs: a speculative run and a plain run of one prompt, side by side, again and again.

Machines are noisy and drift; a ratio of neighbours holds. Medians everywhere. Events take their light form.
"""

from __future__ import annotations

import gc
import json
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ..engine import Task
from ..events import Event, to_dict
from ..families.zoo import Family
from ..figures.stats import account, Comparison, interval, LaneStats, middle, repetition, spread, summary
from ..gpu.lane import generate
from ..lanes.race import SPECULATIVE, tasks
from ..types import SamplingParams
from .prompts import TASKS

Row = dict[str, object]


@dataclass(frozen=True)
class Setting:
    """One line of the table."""

    drafter: str
    domain: str
    temperature: float
    k: int

    def params(self, tokens: int, seed: int) -> SamplingParams:
        """Texts are equally long, but for tasks: what a target writes after their end is no longer what was asked."""
        return replace(params_for(self.temperature, tokens, seed), ignore_end=self.domain not in TASKS)


@dataclass(frozen=True)
class Neighbours:
    """Two neighbouring runs of one prompt."""

    prompt: int
    comparison: Comparison


def run(task: Task) -> LaneStats:
    return LaneStats.of(list(generate(task)), task.lane)


def params_for(temperature: float, tokens: int, seed: int) -> SamplingParams:
    return SamplingParams(temperature, max_tokens=tokens, seed=seed, ignore_end=True)


def pairs(
    family: Family, prompts: tuple[str, ...], settings: list[Setting], tokens: int, repeats: int,
    tick: Callable[[], object] = lambda: None, seed: int = 0,
) -> dict[Setting, list[Neighbours]]:  # fmt: skip
    """Every setting against plain decoding; all settings of a prompt follow each other before the next repeat.

    A plain run stands on either side of each speculative one; the faster of the two is its baseline. The rounds take
    the seeds from `seed` on, the one that warms up included.
    """
    collected: dict[Setting, list[Neighbours]] = {setting: [] for setting in settings}
    for repeat in range(repeats + 1):  # the first round warms up and is thrown away
        for index, prompt in enumerate(prompts):
            gc.collect()
            before = plain(family, prompt, settings[0].params(tokens, seed + repeat))
            for setting in settings:
                params = setting.params(tokens, seed + repeat)
                task = tasks(family, prompt, setting.drafter, setting.k, params, details=False)[SPECULATIVE]
                speculative = run(task)
                after = plain(family, prompt, params)
                faster = min(before, after, key=lambda stats: stats.decode_seconds)
                if repeat:
                    collected[setting].append(Neighbours(index, Comparison(speculative, faster)))
                before = after
                tick()
    return collected


def plain(family: Family, prompt: str, params: SamplingParams) -> LaneStats:
    return run(tasks(family, prompt, "none", 0, params, details=False)["plain"])


def seconds_per_step(run: Callable[[int], int], tokens: int, device: str = "cpu") -> float:
    """Wall clock of a run of `tokens` less that of one of 2, over the steps that `run` counts between them.

    So what setting up and prefilling cost is not counted.
    """
    times, steps = [], []
    for count in (2, tokens):
        start = time.perf_counter()
        steps.append(run(count))
        if device != "cpu":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return (times[1] - times[0]) / max(1, steps[1] - steps[0])


def write(family: Family, setting: Setting, prompt: str, tokens: int) -> list[int]:
    """One run with all its events, as a reader gets them; its ids."""
    params = setting.params(tokens, 0)
    return run(tasks(family, prompt, setting.drafter, setting.k, params, details=False)[SPECULATIVE]).ids


def telling(family: Family, setting: Setting, prompt: str, tokens: int) -> float:
    """The share of a run's wall clock in which its events are described and written down, as for the page.

    The lane's own clock rests meanwhile.
    """
    task = tasks(family, prompt, setting.drafter, setting.k, setting.params(tokens, 0), details=True)
    events: list[Event] = []
    start = time.perf_counter()
    for event in generate(task[SPECULATIVE]):
        json.dumps(to_dict(event))
        events.append(event)
    return 1.0 - LaneStats.of(events, SPECULATIVE).seconds / (time.perf_counter() - start)


def host_syncs(family: Family, setting: Setting, prompt: str, tokens: int) -> float:
    """How often a cycle reads numbers off the device, where a GPU's host has to wait: in captured graphs once."""
    task = tasks(family, prompt, setting.drafter, setting.k, setting.params(tokens, 0), details=False)
    events: list[Event] = []
    reads = host_reads(lambda: events.extend(generate(task[SPECULATIVE])))
    lane = LaneStats.of(events, SPECULATIVE)
    in_graphs = family.target.device.startswith("cuda") and lane.eager is None
    return round(reads / (lane.cycles + 1) + in_graphs, 2)


def row(setting: Setting, measured: list[Neighbours], extra_parameters: int) -> Row:
    """One line: medians over all pairs; acceptance pooled over all cycles."""
    comparisons = [pair.comparison for pair in measured]
    by_prompt: dict[int, list[float | None]] = {}
    for pair in measured:
        by_prompt.setdefault(pair.prompt, []).append(pair.comparison.measured_speedup)
    worst = min(by_prompt.values(), key=lambda speedups: middle(speedups) or math.inf)
    greedy = setting.temperature == 0.0
    return {
        "drafter": setting.drafter,
        "domain": setting.domain,
        "temperature": setting.temperature,
        "k": setting.k,
        **summary(comparisons),
        "measured_speedup_interval": interval(c.measured_speedup for c in comparisons),
        "measured_speedup_spread": spread(c.measured_speedup for c in comparisons),
        "worst_prompt_speedup": middle(worst),
        "worst_prompt_interval": interval(worst),
        "predicted_speedup": middle(predicted(measured, prompt) for prompt in by_prompt),
        "identical_to_plain": all(c.speculative.ids == c.plain.ids for c in comparisons) if greedy else None,
        "repetition": middle(repetition(c.plain.ids) for c in comparisons),
        "extra_parameters": extra_parameters,
        "eager_because": comparisons[0].speculative.eager,
    }


def predicted(measured: list[Neighbours], prompt: int) -> float | None:
    """What the other prompts' acceptance and costs predict for this one (leave one prompt out)."""
    return account([pair.comparison for pair in measured if pair.prompt != prompt])


# What float(x), x.item(), bool(x) and results of unknown size become. In inference mode `item` stays what it is.
WAITS = {
    "_local_scalar_dense", "item", "is_nonzero", "equal", "allclose", "nonzero", "argwhere", "masked_select",
    "_unique2", "unique_dim", "unique_consecutive", "bincount",
}  # fmt: skip


class HostRead(AssertionError):
    """The host would have to wait here."""


class HostReads(TorchDispatchMode):
    """Counts such operations, or refuses them."""

    def __init__(self, refuse: bool) -> None:
        super().__init__()
        self.refuse, self.count = refuse, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.overloadpacket.__name__ in WAITS:
            self.count += 1
            if self.refuse:
                raise HostRead(f"{func} makes the host wait")
        return func(*args, **(kwargs or {}))


@contextmanager
def no_host_reads() -> Iterator[None]:
    with HostReads(refuse=True):
        yield


def host_reads(body: Callable[[], object]) -> int:
    with HostReads(refuse=False) as watch:
        body()
    return watch.count
