"""Choose the drafter and draft depth of a run that leaves them open: those with the highest expected speed-up.

The expected speed-up is a cycle's tokens divided by its cost (Leviathan et al. 2022, theorem 3.8). The acceptance rate
is read from the drafter's config.json, if training wrote it there. Costs are measured in short runs, once per drafter.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..families.zoo import Family
from ..figures.theory import tokens_by_position
from ..messages import Refused
from ..methods import ACCEPTANCE, Choice, DEFAULT_DRAFTER, find_method, inner_drafter
from .probe import DEPTHS, probe, Report
from .transformers import usual_drafter

# For drafters whose costs are not measured, or whose acceptance is unknown, so that no depth can be expected to be the
# best: that of drafters that copy depends on the text; trees, and heads of others, come without a figure.
USUAL_K = 4
USUAL_ADAPTIVE_K = 8  # the greatest depth that an adaptive drafter may choose
ENOUGH_SPEEDUP = 1.3  # once a drafter is expected to reach this, no further drafter is measured
# A shallower draft is preferred if it reaches this share of the best speed-up, as it loses less on a hard prompt.
NEARLY_BEST = 0.95


def choose(
    family: Family,
    drafter: Any = DEFAULT_DRAFTER,
    k: int = 0,
    temperature: float = 0.0,
    measure: bool = True,
    peer: bool = False,
    report: Report = lambda done, total: None,
) -> Choice:
    """Choose the drafter if it is `DEFAULT_DRAFTER`, and the depth if `k` is 0; other values stay as given.

    If no depth is expected to save time, the depth is 1; "none" has depth 0. Unless `measure`, nothing is measured:
    drafters whose costs are unknown are left out. If all are, or none drafts, the first has the usual depth, which is
    that of a drafter that is an object, too. `adaptive` always measures its drafter. With `peer`, the default is a
    drafter that transformers has, too.
    """
    if not isinstance(drafter, str):
        return Choice(drafter, k or USUAL_K)
    if drafter == "none":
        return Choice(drafter, 0)
    if inner_drafter(drafter):
        probe(family, family.wrapped(drafter), report)
        return Choice(drafter, k or USUAL_ADAPTIVE_K)
    if peer and drafter == DEFAULT_DRAFTER:
        drafter = usual_drafter(family)
    if drafter == DEFAULT_DRAFTER:
        names = [name for name in ACCEPTANCE if name in family.drafters]
    else:
        names = [drafter] if not k and drafter in family.drafters and acceptance(family, drafter, temperature) else []
    measured_names = names if measure else [name for name in names if name in family.costs]
    choices = list[Choice]()
    for name in measured_names:
        try:
            costs = probe(family, name, report).at(temperature)
        except Refused:  # it drafts nothing, so it cannot be the default
            if drafter != DEFAULT_DRAFTER:
                raise
            continue
        depths = [
            Choice(name, depth, expected_tokens(family, name, depth, temperature) / costs.cycle(depth))
            for depth in ([k] if k else DEPTHS)
        ]
        threshold = NEARLY_BEST * max(choice.speedup for choice in depths)
        choices.append(next(choice for choice in depths if choice.speedup >= threshold))
        if choices[-1].speedup >= ENOUGH_SPEEDUP:
            break
    if not choices:
        first = next(iter(names), family.default_drafter) if drafter == DEFAULT_DRAFTER else drafter
        return Choice(first, k or USUAL_K)
    best = max(choices, key=lambda choice: choice.speedup)
    return best if k or best.speedup > 1.0 else replace(best, k=1)


def acceptance(family: Family, name: str, temperature: float) -> Sequence[float]:
    """Return the acceptance by position that training measured, or else that of its method; [] if neither is known."""
    method = find_method(name)
    assumed = [ACCEPTANCE[method.name]] if method is not None and method.name in ACCEPTANCE else []
    return family.trained.get(name, {}).get("overlap" if temperature else "agreement") or assumed


def expected_tokens(family: Family, name: str, depth: int, temperature: float) -> float:
    """Return the expected tokens per cycle. The last known rate also counts for all later positions."""
    rates = acceptance(family, name, temperature)
    return tokens_by_position([*rates, *[rates[-1]] * depth], depth)
