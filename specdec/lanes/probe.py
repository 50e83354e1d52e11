"""What drafting costs on this machine, from a second of real decoding: the figures that `adaptive` weighs."""

from __future__ import annotations

from statistics import median

from ..engine import generate, Task
from ..families.zoo import Family
from ..figures.stats import Comparison, LaneStats
from ..types import Costs, SamplingParams

DEPTHS, TOKENS, ROUNDS = (1, 3, 7), 25, 3


def probe(family: Family, name: str) -> Costs:
    """Costs of drafting with `name`, in plain steps. Measured once, then frozen for this family.

    Medians of single passes: one hiccup of the machine must not make a depth look dear for ever.
    """
    if name not in family.costs:
        compare(family, name, max(DEPTHS))  # first calls are slow ones
        seen: dict[int, list[Comparison]] = {depth: [] for depth in DEPTHS}
        for _ in range(ROUNDS):
            for depth, runs in seen.items():
                runs.append(compare(family, name, depth))
        everything = [run for runs in seen.values() for run in runs]
        step = median(run.step or 0.0 for run in everything)
        checks = {depth: [s for run in runs for s in run.speculative.verify_seconds] for depth, runs in seen.items()}
        passes = {depth + 1: median(seconds) / step for depth, seconds in checks.items() if seconds}
        if not passes:
            raise ValueError(f"{name} drafted nothing while its costs were measured, so there is nothing to adapt")
        family.costs[name] = Costs(
            round(median(run.draft_cost or 0.0 for run in everything), 4),
            tuple(round(value, 4) for value in interpolated(passes, max(DEPTHS) + 1)),
            round(median(run.overhead or 0.0 for run in everything), 4),
        )
    return family.costs[name]


def compare(family: Family, name: str, k: int) -> Comparison:
    """One short speculative run of fixed depth, and a plain one beside it."""
    prompt = family.encode("\n")
    lanes = []
    for drafter_name, depth in (("none", 0), (name, k)):
        target, drafter = family.lane(drafter_name, len(prompt) + TOKENS)
        params = SamplingParams(max_tokens=TOKENS, ignore_end=True)
        task = Task(target, prompt, params, drafter, depth, details=False)
        lanes.append(LaneStats.of(list(generate(task)), task.lane))
    return Comparison(speculative=lanes[1], plain=lanes[0])


def interpolated(passes: dict[int, float], most: int) -> list[float]:
    """The cost of a pass over 1, 2, … `most` rows; 1.0 for one row, straight lines between what was measured."""
    known = {1: 1.0} | passes
    rows = sorted(known)
    costs: list[float] = []
    for n in range(1, most + 1):
        low = max(row for row in rows if row <= n)
        high = min((row for row in rows if row >= n), default=low)
        share = (n - low) / (high - low) if high > low else 0.0
        costs.append(max(costs[-1] if costs else 0.0, known[low] + share * (known[high] - known[low])))
    return costs
