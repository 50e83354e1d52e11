"""Speed measured in pairs: a speculative run and a plain run of one prompt, side by side, again and again.

Machines are noisy and drift, but two adjacent runs drift alike, so their ratio can be trusted. All averages are
medians. Runs record no distributions (`details=False`).
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
Pairs = list[tuple[int, Comparison]]  # of neighbouring runs, each with the place of its prompt


@dataclass(frozen=True)
class Case:
    """What is measured: one line of the table."""

    drafter: str
    domain: str
    temperature: float
    k: int

    def params(self, tokens: int, seed: int) -> SamplingParams:
        """Texts go on after the end token, so that all are equally long. Answers to questions stop there."""
        return replace(params_for(self.temperature, tokens, seed), ignore_end=self.domain not in QUESTIONS)


def run(task: Task) -> LaneStats:
    return LaneStats.from_events(list(generate(task)), task.lane)


def params_for(temperature: float, tokens: int, seed: int) -> SamplingParams:
    return SamplingParams(temperature, max_tokens=tokens, seed=seed, ignore_end=True)


def measure_pairs(
    family: Family,
    prompts: tuple[str, ...],
    cases: list[Case],
    tokens: int,
    repeats: int,
    tick: Callable[[], object] = lambda: None,
    seed: int = 0,
) -> dict[Case, Pairs]:
    """Measure every case against plain decoding. A round runs all cases of a prompt one after the other.

    A plain run stands on either side of each speculative one; the faster of the two is its baseline. Each round has
    its own seed, from `seed` on, which is the seed of the round that warms up.
    """
    collected: dict[Case, Pairs] = {case: [] for case in cases}
    for repeat in range(repeats + 1):  # the first round warms up and is thrown away
        for index, prompt in enumerate(prompts):
            gc.collect()
            before = plain(family, prompt, cases[0].params(tokens, seed + repeat))
            for case in cases:
                params = case.params(tokens, seed + repeat)
                task = tasks(family, prompt, case.drafter, case.k, params, details=False)[SPECULATIVE]
                speculative = run(task)
                after = plain(family, prompt, params)
                faster = min(before, after, key=lambda stats: stats.decode_seconds)
                if repeat:
                    collected[case].append((index, Comparison(speculative, faster)))
                before = after
                tick()
    return collected


def plain(family: Family, prompt: str, params: SamplingParams) -> LaneStats:
    return run(tasks(family, prompt, "none", 0, params, details=False)["plain"])


def row(case: Case, measured: Pairs, extra_parameters: int) -> Row:
    """Make one line of the table: medians over all pairs; acceptance pooled over all cycles."""
    comparisons = [comparison for _, comparison in measured]
    by_prompt: dict[int, list[float | None]] = {}
    for prompt, comparison in measured:
        by_prompt.setdefault(prompt, []).append(comparison.measured_speedup)
    worst = min(by_prompt.values(), key=lambda speedups: middle(speedups) or math.inf)
    greedy = case.temperature == 0.0
    return {
        "drafter": case.drafter,
        "domain": case.domain,
        "temperature": case.temperature,
        "k": case.k,
        **summary(comparisons),
        "measured_speedup_interval": interval(c.measured_speedup for c in comparisons),
        "worst_prompt_speedup": middle(worst),
        "identical_to_plain": all(c.speculative.ids == c.plain.ids for c in comparisons) if greedy else None,
        "repetition": middle(repetition(c.plain.ids) for c in comparisons),
        "extra_parameters": extra_parameters,
        "eager_because": comparisons[0].speculative.eager,
    }
