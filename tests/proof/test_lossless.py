"""Prove that the shipped loop's output distribution is the target's, and that these tests can fail."""

import contextlib
import random
from typing import Any

import pytest

from specdec.proof.enumeration import JointDistribution, output_distribution, TooManyPaths, total_variation
from specdec.proof.mistakes import MISTAKES
from specdec.proof.prove import CycleCase, distance
from specdec.proof.toys import cases, LoopCase, PARAMS, run_loop
from specdec.rules import RULES
from specdec.types import SamplingParams

MAX_VARIATION = 1e-12


def shipped_error(case: LoopCase, limit: int = 100_000, rule: str = "rejection") -> float:
    """Return the total variation between the shipped loop's distribution and the target's."""
    distribution, _ = output_distribution(run_loop(lambda: case.task(RULES[rule]())), limit)
    return total_variation(distribution, case.exact_distribution())


def proved(sample: list[LoopCase], paths: int, record_property: Any, rule: str = "rejection") -> list[LoopCase]:
    errors: dict[LoopCase, float] = {}
    for case in sample:
        with contextlib.suppress(TooManyPaths):
            errors[case] = shipped_error(case, paths, rule)
            assert errors[case] <= MAX_VARIATION, case
    record_property("joint distributions enumerated", len(errors))
    record_property("largest total variation", max(errors.values()))
    return [*errors]


def test_every_random_path_gives_the_targets_distribution(record_property) -> None:
    few = [case for case in cases() if case.params.temperature == 0.0 or case.vocabulary ** (case.length + 1) <= 60]
    walked = proved(random.Random(1).sample([case for case in few if case.k > 0], 200), 60, record_property)
    assert len(walked) >= 150
    for drafter in ("model", "point", "sampled", "without replacement", "top"):
        assert sum(case.drafter == drafter for case in walked) >= 20
    assert all(sum(case.params == params for case in walked) >= 10 for params in PARAMS)
    assert all(sum(case.k == k for case in walked) >= 25 for k in (1, 2, 3))
    assert sum(case.end for case in walked) >= 50


@pytest.mark.parametrize("key", MISTAKES)
def test_enumeration_catches_the_mistake_and_the_first_token_where_it_shows(key: str, record_property) -> None:
    mistake = MISTAKES[key]
    if mistake.rule and mistake.least_k > 2:
        assert distance(CycleCase(2, mistake.least_k, tuple(range(mistake.least_k))), mistake.rule())[0] > 1e-5
    else:
        case = LoopCase(3 if key == "block_residual" else 2, 2, 3, SamplingParams(temperature=0.7), seed=1)
        distribution, _ = output_distribution(run_loop(lambda: mistake.apply(case.task(), case.models()[1])))
        first, exact = (of_two_tokens(one) for one in (distribution, case.exact_distribution()))
        assert (total_variation(first, exact) > 1e-9) == mistake.first_token_shows
        assert total_variation(distribution, case.exact_distribution()) > 1e-5
    record_property("planted mistakes caught", key)


def of_two_tokens(distribution: JointDistribution) -> JointDistribution:
    """That of the prefill's, and of the first that a draft had a part in."""
    marginal: JointDistribution = {}
    for tokens, chance in distribution.items():
        marginal[tokens[:2]] = marginal.get(tokens[:2], 0.0) + chance
    return marginal
