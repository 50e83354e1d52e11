"""Every random path of the shipped loop, and of the loop with each known mistake in it."""

from __future__ import annotations

import random
from collections.abc import Iterator

from specdec.proof.cycles import Cycle, distance, groups
from specdec.proof.enumeration import output_distribution, TooManyPaths, total_variation
from specdec.proof.mistakes import Mistake, MISTAKES
from specdec.proof.toys import Case, cases, run_loop, shipped_error
from specdec.rules import RULES
from specdec.types import SamplingParams

from .figures import all_of, at_least, at_most, Figure

SHOWN = 1e-6  # a total variation above it is no rounding
WARM = SamplingParams(temperature=0.7)


def count() -> list[Figure]:
    errors = [*proved(64, 90), *cycles()]
    caught = [shows(mistake) for mistake in MISTAKES.values()]
    return [
        at_least("joint distributions enumerated", len(errors), 300),
        at_most("largest error of a text's probability", max(errors), 1e-12),
        all_of("planted mistakes caught", sum(caught), len(caught), len(MISTAKES)),
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
    """Of single cycles, rule by rule; a tenth. Total variation is the larger error."""
    for key, rule in ((key, rule) for key, rule in RULES.items() if rule.lossless):
        if key != "shared_noise":  # it judges as sample and match does
            for cycles in groups(rule.trees).values():
                yield from (distance(cycle, rule())[0] for cycle in cycles[::10])


def shows(mistake: Mistake) -> bool:
    """Whether enumeration tells the loop with this mistake from the target, on one of a few toys."""
    drafter = "point" if mistake.needs_point_mass else "model"
    for vocabulary, length in ((2, 3), (3, 2), (3, 3)):
        if mistake.rule and mistake.least_k > 2:
            free = tuple(range(mistake.least_k))
            return distance(Cycle(vocabulary, mistake.least_k, free), mistake.rule())[0] > SHOWN
        case = Case(vocabulary, 2, length, WARM, drafter, seed=1)
        distribution = output_distribution(
            run_loop(lambda case=case: mistake.apply(case.task(), case.models()[1]))  # type: ignore[misc]
        )[0]
        if total_variation(distribution, case.exact_distribution()) > SHOWN:
            return True
    return False
