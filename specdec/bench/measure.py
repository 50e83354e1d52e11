"""Measure the speed-up: run a prompt speculatively and plainly, one right after the other, and compare the times.

The speed of a machine changes over time, but hardly between two adjacent runs, so their ratio can be trusted.
"""

import gc
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..engine import Engine
from ..events import SPECULATIVE
from ..figures.stats import Comparison, interval, LaneStats, pooled_tau, repetition, rounded_median, summary
from ..lanes.probe import whole_run
from ..types import Costs, SamplingParams

Row = dict[str, Any]
Pairs = list[tuple[int, Comparison]]  # index of the prompt, and the comparison of two adjacent runs


@dataclass(frozen=True)
class Case:
    drafter: str
    domain: str
    temperature: float
    k: int
    ignore_end: bool = True  # False: texts may end before they have all their tokens

    def params(self, tokens: int, seed: int) -> SamplingParams:
        return SamplingParams(self.temperature, max_tokens=tokens, seed=seed, ignore_end=self.ignore_end)


def run(engine: Engine, prompt: str, drafter: str, k: int, params: SamplingParams) -> LaneStats:
    events = engine.stream(prompt, drafter, k, params=params)
    return LaneStats.from_events(whole_run(events, drafter), SPECULATIVE)


def measure_pairs(
    engine: Engine,
    prompts: tuple[str, ...],
    cases: list[Case],
    tokens: int,
    repeats: int,
    tick: Callable[[], object] = lambda: None,
    seed: int = 0,
) -> dict[Case, Pairs]:
    """Measure cases of one domain and temperature against plain decoding. A round runs all cases on all prompts.

    The baseline of a speculative run is the faster of two plain runs, one before and one after it. Round i uses the
    seed `seed` + i; round 0 is a warm-up with the first prompt alone. `tick` is called after each pair.
    """
    collected: dict[Case, Pairs] = {case: [] for case in cases}
    for repeat in range(repeats + 1) if cases else ():
        for index, prompt in enumerate(prompts if repeat else prompts[:1]):
            gc.collect()
            before = run(engine, prompt, "none", 0, cases[0].params(tokens, seed + repeat))
            for case in cases:
                params = case.params(tokens, seed + repeat)
                speculative = run(engine, prompt, case.drafter, case.k, params)
                after = run(engine, prompt, "none", 0, params)
                faster = min(before, after, key=lambda stats: stats.seconds_per_token or math.inf)
                if repeat:
                    collected[case].append((index, Comparison(speculative, faster)))
                before = after
                tick()
    return collected


def row(case: Case, measured: Pairs, extra_parameters: int) -> Row:
    """Make one line of the table: medians over all pairs; α and τ are pooled over all cycles."""
    comparisons = [comparison for _, comparison in measured]
    by_prompt: dict[int, list[float | None]] = {}
    for prompt, comparison in measured:
        by_prompt.setdefault(prompt, []).append(comparison.measured_speedup)
    worst = min(by_prompt.values(), key=lambda speedups: rounded_median(speedups) or math.inf)
    greedy = case.temperature == 0.0
    return {
        "drafter": case.drafter,
        "domain": case.domain,
        "temperature": case.temperature,
        "k": case.k,
        **summary(comparisons),
        "measured_speedup_interval": interval(c.measured_speedup for c in comparisons),
        "worst_prompt_speedup": rounded_median(worst),
        "identical_to_plain": all(c.speculative.ids == c.plain.ids for c in comparisons) if greedy else None,
        "repetition": rounded_median(repetition(c.plain.ids) for c in comparisons),
        "extra_parameters": extra_parameters,
        "eager_because": comparisons[0].speculative.eager,
    }


def prediction(measured: Pairs, costs: Costs | None) -> Row:
    """Compare what half of the prompts and the probed `costs` predict for the others with what those measured.

    `measured` are runs of one kind of text at one temperature. The halves are drawn, since a list that somebody wrote
    may alternate between easy and hard. A speed-up is tokens over plain steps, each summed over runs. As all figures
    are per cycle, `seen_cycles` and `unseen_cycles` are the weights with which rows add up to a drafter's figures over
    all kinds. A prediction misses by as much as the others' τ differs, and by what the probe does not measure.
    """
    half = seen_half({prompt for prompt, _ in measured})
    seen = [comparison.speculative for prompt, comparison in measured if prompt in half]
    unseen = [comparison for prompt, comparison in measured if prompt not in half and comparison.measured_speedup]
    cycles, unseen_cycles = (sum(lane.cycles for lane in lanes) for lanes in (seen, [c.speculative for c in unseen]))
    predicted = predict(seen, costs)
    tokens = sum(comparison.speculative.tokens - comparison.speculative.first for comparison in unseen)
    steps = sum(comparison.speculative.decode_seconds / (comparison.step or 1.0) for comparison in unseen)
    return {
        "predicted_speedup": predicted and round(predicted[0] / predicted[1], 4),
        "predicted_tau": predicted and round(predicted[0], 4),
        "seen_cycles": cycles,
        "unseen_speedup": round(tokens / steps, 4) if unseen else None,
        "unseen_tau": round(tokens / unseen_cycles, 4) if unseen else None,
        "unseen_cycles": unseen_cycles,
    }


def seen_half(prompts: set[int]) -> set[int]:
    """Draw half of the prompts, always the same."""
    return set(random.Random(0).sample(sorted(prompts), (len(prompts) + 1) // 2))


def predict(seen: Sequence[LaneStats], costs: Costs | None) -> tuple[float, float] | None:
    """Predict τ, and a cycle's mean cost in plain steps, of other prompts of the same kind.

    `seen` are speculative runs. They say how many tokens a cycle has, how deep its draft is, and if it has one.
    `costs` come from `lanes/probe.py`, at the temperature of the runs, and say what a draft of each depth costs.
    A cycle without a draft costs a plain step. Returns None if there is no cycle, or no costs.
    """
    cycles = sum(lane.cycles for lane in seen)
    if not cycles or costs is None:
        return None
    depths = [depth for lane in seen for depth in lane.depths]
    return pooled_tau(seen), (sum(map(costs.cycle, depths)) + (cycles - len(depths)) * costs.cycle(0)) / cycles
