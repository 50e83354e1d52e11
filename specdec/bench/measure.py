"""Speed measured in pairs: a speculative run and a plain run of one prompt, side by side, again and again.

Machines are noisy and drift; a ratio of neighbours holds. Medians everywhere. Events take their light form.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from ..engine import Task
from ..families.zoo import Family
from ..figures.stats import Comparison, interval, LaneStats, middle, repetition, summary
from ..gpu.lane import generate
from ..lanes.race import SPECULATIVE, tasks
from ..types import SamplingParams
from .prompts import QUESTIONS

Row = dict[str, object]


@dataclass(frozen=True)
class Setting:
    """One line of the table."""

    drafter: str
    domain: str
    temperature: float
    k: int

    def params(self, tokens: int, seed: int) -> SamplingParams:
        """Texts are equally long, but for answers: what a target writes after their end is no longer what was asked."""
        return replace(params_for(self.temperature, tokens, seed), ignore_end=self.domain not in QUESTIONS)


@dataclass(frozen=True)
class Neighbours:
    """Two neighbouring runs of one prompt."""

    prompt: int
    comparison: Comparison


def run(task: Task) -> LaneStats:
    return LaneStats.from_events(list(generate(task)), task.lane)


def params_for(temperature: float, tokens: int, seed: int) -> SamplingParams:
    return SamplingParams(temperature, max_tokens=tokens, seed=seed, ignore_end=True)


def pairs(
    family: Family,
    prompts: tuple[str, ...],
    settings: list[Setting],
    tokens: int,
    repeats: int,
    tick: Callable[[], object] = lambda: None,
    seed: int = 0,
) -> dict[Setting, list[Neighbours]]:
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
        "worst_prompt_speedup": middle(worst),
        "identical_to_plain": all(c.speculative.ids == c.plain.ids for c in comparisons) if greedy else None,
        "repetition": middle(repetition(c.plain.ids) for c in comparisons),
        "extra_parameters": extra_parameters,
        "eager_because": comparisons[0].speculative.eager,
    }
