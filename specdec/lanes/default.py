"""The drafter and the depth of a run whose visitor left them open: what is expected to pay on this machine.

Expected is τ over the cost of a cycle (Leviathan et al. 2022, theorem 3.8): acceptance as it was measured when a draft
was trained, on text that was held out, and costs as a few short runs give them here, once for a family in a process.
"""

from __future__ import annotations

from typing import NamedTuple

from ..families.zoo import Family
from ..figures.theory import tokens_by_position
from ..methods import DEFAULT, is_wrapper, OPEN, QUANTISED
from .probe import measure

# How likely a token of each drafter is accepted, where its config.json does not say it. What copies is no candidate.
ACCEPTANCE = {DEFAULT: 0.6, "eagle3": 0.6, "early_exit": 0.5, QUANTISED: 0.95}
USUAL_K, MOST_K = 4, 8  # of what is not measured; of what chooses a depth of its own
DEPTHS, ROUNDS = (1, 3, 5, 7), 1
ENOUGH = 1.3  # where one drafter is expected to be so much faster, no other is measured
NEARLY = 0.95  # of the best: so good a shallower draft is preferred, for it loses less where a prompt is hard


class Choice(NamedTuple):
    """A drafter, its depth, and the speed-up that is expected of them; 0 where nothing was measured."""

    drafter: str
    k: int
    speedup: float = 0.0


def choose(family: Family, drafter: str = OPEN, k: int = 0, temperature: float = 0.0) -> Choice:
    """Fill in what is open: the drafter where it is `OPEN`, the depth where it is 0. What is given stays.

    Where nothing is expected to pay, one token is drafted.
    """
    names = [name for name in ACCEPTANCE if name in family.drafters and drafter in (OPEN, name)]
    if not names or (k and drafter != OPEN):
        usual = MOST_K if is_wrapper(drafter) else USUAL_K
        return Choice(family.default_drafter if drafter == OPEN else drafter, k or usual)
    best = Choice(names[0], 1)
    for name in names:
        if name not in family.brief_costs:
            family.brief_costs[name] = measure(family, name, DEPTHS, ROUNDS)
        costs = family.brief_costs[name].at(temperature)
        choices = [
            Choice(name, depth, expected_tokens(family, name, depth, temperature) / costs.cycle(depth))
            for depth in ([k] if k else range(1, max(DEPTHS) + 1))
        ]
        least = NEARLY * max(choice.speedup for choice in choices)
        shallow = next(choice for choice in choices if choice.speedup >= least)
        best = max(best, shallow, key=lambda choice: choice.speedup)
        if best.speedup >= ENOUGH:
            break
    return best if k or best.speedup > 1.0 else best._replace(k=1)


def expected_tokens(family: Family, name: str, depth: int, temperature: float) -> float:
    """Tokens of a cycle; beyond what training measured, tokens are accepted as at its last place."""
    measured = family.trained.get(name, {}).get("overlap" if temperature else "agreement") or [ACCEPTANCE[name]]
    return tokens_by_position([*measured, *[measured[-1]] * depth], depth)
