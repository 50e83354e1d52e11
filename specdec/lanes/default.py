"""Choose the drafter and the depth of a run whose visitor left them open, by what is expected to pay on this machine.

The expected speed-up is τ over the cost of a cycle (Leviathan et al. 2022, theorem 3.8). Acceptance was measured on
held-out text when the draft was trained. Costs are measured here by a few short runs, once for each family.
"""

from __future__ import annotations

from typing import NamedTuple

from ..families.zoo import Family
from ..figures.theory import tokens_by_position
from ..methods import adapted, DEFAULT_DRAFTER, DRAFT_MODEL, QUANTISED
from .probe import DEPTHS, probe

# The chance that a drafted token is accepted, where the drafter's config.json does not say it. Drafters that copy from
# the text are no candidates.
ACCEPTANCE = {DRAFT_MODEL: 0.6, "eagle3": 0.6, "early_exit": 0.5, QUANTISED: 0.95}
USUAL_K = 4  # for drafters whose costs are not measured
USUAL_ADAPTIVE_K = 8  # the most for drafters that choose their depth in every cycle
ENOUGH_SPEEDUP = 1.3  # no other drafter is measured once one is expected to reach this
# A shallower draft that reaches this share of the best speed-up is preferred: it loses less where a prompt is hard.
NEARLY_BEST = 0.95


class Choice(NamedTuple):
    """A drafter, its depth, and the speed-up that is expected of them; 0 where nothing was measured."""

    drafter: str
    k: int
    speedup: float = 0.0


def candidates(family: Family, drafter: str, k: int) -> list[str]:
    """The drafters whose costs decide; none where nothing is open, or nothing of it is measured."""
    if k and drafter != DEFAULT_DRAFTER:
        return []
    return [name for name in ACCEPTANCE if name in family.drafters and drafter in (DEFAULT_DRAFTER, name)]


def has_to_measure(family: Family, drafter: str, k: int) -> bool:
    """Whether `choose` begins with a measurement, which takes seconds."""
    first = [family.wrapped(drafter)] if adapted(drafter) else candidates(family, drafter, k)[:1]
    return any(name not in family.costs for name in first)


def choose(family: Family, drafter: str = DEFAULT_DRAFTER, k: int = 0, temperature: float = 0.0) -> Choice:
    """Fill in what is open: the drafter where it is `DEFAULT_DRAFTER`, the depth where it is 0. What is given stays.

    Where nothing is expected to pay, one token is drafted.
    """
    names = candidates(family, drafter, k)
    if adapted(drafter):
        probe(family, family.wrapped(drafter))
    if not names:
        usual = USUAL_ADAPTIVE_K if adapted(drafter) else USUAL_K
        return Choice(family.default_drafter if drafter == DEFAULT_DRAFTER else drafter, k or usual)
    best = Choice(names[0], 1)
    for name in names:
        costs = probe(family, name).at(temperature)
        choices = [
            Choice(name, depth, expected_tokens(family, name, depth, temperature) / costs.cycle(depth))
            for depth in ([k] if k else DEPTHS)
        ]
        least = NEARLY_BEST * max(choice.speedup for choice in choices)
        shallow = next(choice for choice in choices if choice.speedup >= least)
        best = max(best, shallow, key=lambda choice: choice.speedup)
        if best.speedup >= ENOUGH_SPEEDUP:
            break
    return best if k or best.speedup > 1.0 else best._replace(k=1)


def expected_tokens(family: Family, name: str, depth: int, temperature: float) -> float:
    """Tokens of a cycle; beyond what training measured, tokens are accepted as at its last place."""
    measured = family.trained.get(name, {}).get("overlap" if temperature else "agreement") or [ACCEPTANCE[name]]
    return tokens_by_position([*measured, *[measured[-1]] * depth], depth)
