"""Every random path of the shipped loop, and of the loop with known mistakes in it, single and in pairs."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import replace

from specdec.engine import Task
from specdec.proof.cycles import distance, groups
from specdec.proof.enumeration import JointDistribution, output_distribution, TooManyPaths, total_variation
from specdec.proof.mistakes import Mistake, MISTAKES
from specdec.proof.toys import Case, cases, cycle_distribution, deep_cases, largest_error, run_loop, shipped_error
from specdec.rules import RULES
from specdec.types import SamplingParams
from specdec.verify import RejectionSampling, Rule

from .figures import all_of, at_least, at_most, Figure

SHOWN = 1e-6  # a total variation above it is no rounding
WARM = SamplingParams(temperature=0.7)


def count(long: bool) -> list[Figure]:
    errors = list(proved(64, 90)) + list(cycles()) if not long else list(proved(500, 400)) + list(cycles())
    single = [shows((mistake,)) for mistake in MISTAKES.values()]
    double = [shows(two) for two in (random.Random(1).sample(pairs(), 60) if not long else pairs())]
    return [
        at_least("joint distributions enumerated", len(errors), 300),
        at_most("largest error of a text's probability", max(errors), 1e-12),
        all_of("planted mistakes caught", sum(single), len(single), len(MISTAKES)),
        all_of("pairs of mistakes caught", sum(double), len(double), 200 if long else 60),
    ]


def proved(paths: int, toys: int) -> Iterator[float]:
    """Largest errors of the lossless rules, each on a sample of the toys with so few paths."""
    for key in (key for key, rule in RULES.items() if rule.lossless):
        few = [case for case in cases(key) if case.k and case.vocabulary ** (case.length + 1) <= paths]
        for case in random.Random(3).sample(few, min(toys, len(few))):
            try:
                yield shipped_error(case, paths, key)[0]
            except TooManyPaths:
                continue


def cycles() -> Iterator[float]:
    """Of single cycles, rule by rule; of the deep, large and wide ones a tenth. Total variation is the larger error."""
    for key, rule in ((key, rule) for key, rule in RULES.items() if rule.lossless):
        for case in deep_cases():
            yield largest_error(cycle_distribution(case, RULES[key]())[0], case.exact_distribution())
        if key != "shared_noise":  # it judges as sample and match does
            for cycles in groups(rule.trees).values():
                yield from (distance(cycle, rule())[0] for cycle in cycles[::10])


# ---- mistakes ----


def shows(planted: tuple[Mistake, ...]) -> bool:
    """Whether enumeration tells the loop with these mistakes from the target, on one of a few toys."""
    drafter = "point" if any(mistake.needs_point_mass for mistake in planted) else "model"
    depth = max(mistake.least_k for mistake in planted)
    for vocabulary, length in ((2, 3), (3, 2), (3, 3)):
        if depth > 2:
            case = Case(vocabulary, depth, depth + 1, WARM, drafter, seed=1)
            distribution = one_cycle(case, planted)
        else:
            case = Case(vocabulary, 2, length, WARM, drafter, seed=1)
            distribution = output_distribution(run_loop(lambda case=case: with_all(planted, case)))[0]  # type: ignore[misc]
        if total_variation(distribution, case.exact_distribution()) > SHOWN:
            return True
    return False


def with_all(planted: tuple[Mistake, ...], case: Case) -> Task:
    task = case.task()
    for mistake in planted:
        task = mistake.apply(task, case.models()[1])
    rules = [mistake.rule for mistake in planted if mistake.rule]
    return replace(task, rule=both(*rules)) if len(rules) == 2 else task


def one_cycle(case: Case, planted: tuple[Mistake, ...]) -> JointDistribution:
    task = with_all(planted, case)
    target = task.target
    assert not any(mistake.target for mistake in planted), target
    return cycle_distribution(case, task.rule, lambda: with_all(planted, case).drafter)[0]


def both(first: type[Rule], second: type[Rule]) -> Rule:
    """One rule with the seams that each of the two breaks."""
    return type("Both", (first, second), {"name": f"{first.name} and {second.name}"})()


SEAMS = {name for name in vars(RejectionSampling) if name in ("verify", "row", "accept", "residual", "own_token")}


def broken(mistake: Mistake) -> set[str]:
    """Which seams of the shipped code it replaces."""
    if mistake.target:
        return {"target"}
    if mistake.drafter:
        return {"drafter"}
    assert mistake.rule is not None
    return SEAMS & vars(mistake.rule).keys()  # type: ignore[arg-type]


def pairs() -> list[tuple[Mistake, Mistake]]:
    """Those that can be planted together: they break different seams of the same walk."""
    fit = [m for m in MISTAKES.values() if m.rule is None or issubclass(m.rule, RejectionSampling)]  # type: ignore[arg-type]
    return [
        (one, other)
        for one, other in itertools.combinations(fit, 2)
        if not broken(one) & broken(other)
        and not (drafts(one) and drafts(other))
        and not (max(one.least_k, other.least_k) > 2 and "target" in broken(one) | broken(other))
    ]


def drafts(mistake: Mistake) -> bool:
    """It decides what drafts."""
    return bool(mistake.drafter) or mistake.needs_point_mass
