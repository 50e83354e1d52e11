"""Check that the recorded distributions of a cycle agree with the numbers of its decisions and draws.

A recorded distribution lists the likeliest tokens, and all tokens that the cycle drafted or drew. `rest` is the sum of
all other probabilities. A position's `target` and `draft` list the same tokens, but omit those of probability 0.
"""

from collections.abc import Iterator

from ..events import Distribution, Position
from ..messages import TranslatableText
from .cycle import AuditedCycle, BLOCK, label, REJECTION, ROUNDING


def masses(distribution: Distribution) -> dict[int, float]:
    return {candidate.token: candidate.prob for candidate in distribution.top}


def sums_to_one(distribution: Distribution) -> bool:
    every = [*masses(distribution).values(), distribution.rest]
    return min(every) >= 0.0 and abs(sum(every) - 1.0) <= ROUNDING * len(every)


def agree(a: Distribution, b: Distribution) -> bool:
    """Return whether `a` and `b` can be one distribution: what only one of them lists fits into the other's rest."""
    first, second = masses(a), masses(b)
    return (
        all(abs(first[token] - second[token]) <= 4 * ROUNDING for token in first.keys() & second.keys())
        and all(first[token] <= b.rest + 4 * ROUNDING for token in first.keys() - second.keys())
        and all(second[token] <= a.rest + 4 * ROUNDING for token in second.keys() - first.keys())
    )


def residual_mass(cycle: AuditedCycle, x: Position) -> float | None:
    """Return the residual's mass m = Σ max(0, w p − q) at `x`; None if the trace lacks it."""
    weight, h = cycle.weight_before(x), cycle.positions[x.node - 1].h  # of the prefix before x; if it is empty, w = 1
    if weight == 1.0:
        return None if x.overlap is None else 1.0 - x.overlap
    return None if h is None or h >= 1.0 else h * (1.0 - weight) / (1.0 - h)  # from h = m / (m + 1 - w)


def is_residual(residual: Distribution, cycle: AuditedCycle, x: Position) -> bool:
    """Return whether `residual` is max(0, w p − q) at `x`, normalised, or p if that sums to nearly 0."""
    mass = residual_mass(cycle, x)
    if mass is None or x.target is None or x.draft is None:
        return True
    if mass <= 2 * ROUNDING and agree(residual, x.target):
        return True
    weight, p, q = cycle.weight_before(x), masses(x.target), masses(x.draft)
    expected = {token: max(0.0, weight * p.get(token, 0.0) - q.get(token, 0.0)) for token in p.keys() | q.keys()}
    rest = weight * x.target.rest + 4 * ROUNDING
    return all(
        abs(prob * mass - expected[token]) <= 4 * ROUNDING if token in expected else prob * mass <= rest
        for token, prob in masses(residual).items()
    )


def check_distributions(cycle: AuditedCycle, rule: str) -> Iterator[TranslatableText]:
    """Check that each distribution sums to 1, and that p, q, the last h and the residuals follow from them."""
    for x in cycle.positions:
        for name, value, row in (("p", x.p, x.target), ("q", x.q, x.draft)):
            if row and not sums_to_one(row):
                yield TranslatableText("a distribution of {draft} does not sum to 1", draft=label(x))
                return
            if row and value is not None and abs(value - masses(row).get(x.token, 0.0)) > 2 * ROUNDING:
                yield wrong_value(name, value, x)
        if x.h is not None and x is cycle.positions[-1] and abs(x.h - cycle.weights[-1]) > 2 * ROUNDING:
            yield wrong_value("h", x.h, x)
        later_siblings = [node for node in cycle.tree.children(cycle.tree.parents[x.node]) if node > x.node]
        # In a tree, the next sibling is tried against the residual after x was rejected.
        next_row = cycle.positions[later_siblings[0]].target if later_siblings and x.u is not None else None
        if not all(is_residual(residual, cycle, x) for residual in (x.residual, next_row) if residual):
            yield TranslatableText("the residual of {draft} does not follow from p and q", draft=label(x))
    yield from check_own_token(cycle, rule)


def wrong_value(name: str, value: float, x: Position) -> TranslatableText:
    values = {"name": name, "value": value, "draft": label(x)}
    return TranslatableText("{name} = {value:.6g} of {draft} does not follow from its distributions", **values)


def check_own_token(cycle: AuditedCycle, rule: str) -> Iterator[TranslatableText]:
    """Check that the distribution of the target's own token follows from the verdict."""
    verified, target_token = cycle.verified, cycle.target_token
    if verified is None or verified.distribution is None or target_token is None:
        return
    distribution, rejected = verified.distribution, [cycle.positions[node] for node in cycle.tree.children(cycle.tip)]
    bonus = verified.bonus if len(cycle.path) == len(cycle.positions) else None
    row = rejected[0].target if rejected else bonus
    if not sums_to_one(distribution):
        yield TranslatableText("the distribution of the target's own token does not sum to 1")
    p = masses(row if row and rejected else distribution).get(target_token)  # the latter lists every token drawn
    if verified.p is not None and p is not None and abs(verified.p - p) > 2 * ROUNDING:
        yield TranslatableText("p = {p:.6g} of the target's own token does not follow from its row", p=verified.p)
    if row is None or not rule:
        return
    holds, last = agree(distribution, row), rejected[-1] if rejected and rule in (REJECTION, BLOCK) else None
    # Without a coin, the draw may also come from p: transformers judges prompt lookup in this way.
    if last and (last.u is not None or not holds):
        holds = is_residual(distribution, cycle, last)
    if not holds:
        yield TranslatableText("the target's own token was drawn from another distribution than the verdict requires")
