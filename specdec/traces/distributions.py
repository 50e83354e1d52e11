"""Distributions as a trace holds them, by their likeliest tokens and the mass of all others: what they allow.

Each lists every token that the cycle was about, however unlikely. Masses are rounded to 1e-7, so whatever depends on
them is held against bounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from ..events import Distribution
from ..types import TranslatableText
from .cycle import AuditedCycle, BLOCK, MAX_SAID, named, REJECTION, ROUNDING

LIKELIEST = 6  # tokens that every distribution lists, unless it has fewer
ENTROPY_ROUNDING = 1e-3  # nats, over a large vocabulary
VOCABULARY = 2**20  # tokens; none is larger

Bounds = tuple[float, float]


def masses(distribution: Distribution) -> dict[int, float]:
    return {candidate.token: candidate.prob for candidate in distribution.top}


def is_within(value: float, bounds: Bounds) -> bool:
    return bounds[0] - 2 * ROUNDING <= value <= bounds[1] + 2 * ROUNDING


def bounds(distribution: Distribution, token: int) -> Bounds:
    """What it may give to a token: one that is not listed gets no more than the likeliest ones that are."""
    listed = masses(distribution)
    if token in listed:
        return listed[token], listed[token]
    return 0.0, min([distribution.rest, *sorted(listed.values(), reverse=True)[LIKELIEST - 1 : LIKELIEST]])


def agree(a: Distribution, b: Distribution) -> bool:
    pairs = [(bounds(a, token), bounds(b, token)) for token in {*masses(a), *masses(b)}]
    return all(one[0] - 2 * ROUNDING <= other[1] and other[0] - 2 * ROUNDING <= one[1] for one, other in pairs)


def surplus(weight: float, p: Distribution, q: Distribution, overlap: float | None = None) -> Bounds:
    """Bounds of Σ max(0, w p − q): exact over the listed tokens, open over the rest, unless Σ min(p, q) is known."""
    if overlap is not None and weight == 1.0:
        return max(0.0, 1.0 - overlap - ROUNDING), 1.0 - overlap + ROUNDING
    P, Q = masses(p), masses(q)
    listed, slack = sum(max(0.0, weight * P.get(x, 0.0) - Q.get(x, 0.0)) for x in {*P, *Q}), ROUNDING * len({*P, *Q})
    return max(0.0, listed + max(0.0, weight * p.rest - q.rest) - slack), listed + weight * p.rest + slack


def is_residual(left: Distribution, weight: float, p: Distribution, q: Distribution, overlap: float | None) -> bool:
    """Whether `left` is max(0, w p − q) over its sum, as far as the three are listed; p where nothing is left."""
    low, high = surplus(weight, p, q, overlap)
    if low <= ROUNDING and agree(left, p):
        return True
    for token, mass in masses(left).items():
        (p_low, p_high), (q_low, q_high) = bounds(p, token), bounds(q, token)
        least, most = max(0.0, weight * p_low - q_high), max(0.0, weight * p_high - q_low)
        if mass * low - 2 * ROUNDING > most or mass * high + 2 * ROUNDING < least:
            return False
    return True


def why_none(distribution: Distribution) -> TranslatableText | None:
    """Why it is no distribution."""
    every, sample = [*(candidate.prob for candidate in distribution.top), distribution.rest], distribution.sample
    if min(every) < 0.0 or abs(sum(every) - 1.0) > ROUNDING * len(every):
        return TranslatableText("sums to {total:.6g}", total=sum(every))
    if sample and not is_within(sample.prob, bounds(distribution, sample.token)):
        return TranslatableText("gives its example {piece!r} another probability", piece=sample.piece[:MAX_SAID])
    least = sum(-mass * math.log(mass) for mass in every if mass > 0.0)
    most = least + (distribution.rest + ROUNDING) * math.log(VOCABULARY)
    if not least - ENTROPY_ROUNDING <= distribution.entropy <= most + ENTROPY_ROUNDING:
        return TranslatableText("cannot have an entropy of {entropy:.6g}", entropy=distribution.entropy)
    return None


def check_distributions(cycle: AuditedCycle, rule: str) -> Iterator[TranslatableText]:
    """Each is one; and p, q, overlap, h and residuals are what they make."""
    for x in cycle.positions:
        weight, residual = cycle.weights[x.node] if x.h is not None else 1.0, x.residual
        if x.h is not None and x.target and x.draft and surplus(weight, x.target, x.draft)[0] <= ROUNDING:
            residual = None  # older versions wrote one that was no distribution where nothing is left of p
        for distribution in filter(None, (x.target, x.draft, residual)):
            if reason := why_none(distribution):
                yield TranslatableText("a distribution of {draft} {reason}", draft=named(x), reason=reason)
                return
        for name, value, limits in figures(cycle, x.node):
            if not is_within(value, limits):
                yield TranslatableText(
                    "{name} = {value:.6g} of {draft} is not what its distributions make it",
                    name=name,
                    value=value,
                    draft=named(x),
                )
        younger = [node for node in cycle.tree.children(cycle.tree.parents[x.node]) if node > x.node]
        following = cycle.positions[younger[0]].target if younger and x.u is not None and x.h is None else None
        for left in filter(None, (residual, following)):
            if x.target and x.draft and not is_residual(left, weight, x.target, x.draft, x.overlap):
                yield TranslatableText("the residual of {draft} is not what p leaves of q", draft=named(x))
    yield from check_own_token(cycle, rule)


def figures(cycle: AuditedCycle, node: int) -> Iterator[tuple[str, float, Bounds]]:
    """Numbers of a draft, each with what its distributions make it."""
    x, following = cycle.positions[node], next(iter(cycle.positions[node + 1 : node + 2]), None)
    for name, value, row in (("p", x.p, x.target), ("q", x.q, x.draft)):
        if row and value is not None:
            yield name, value, (masses(row).get(x.token, 0.0),) * 2
    if x.target and x.draft and x.overlap is not None:
        low, high = surplus(1.0, x.target, x.draft)
        yield "overlap", x.overlap, (1.0 - high, 1.0 - low)
    h, weight = x.block if x.h is None else x.h, cycle.weights[node + 1]
    if h is not None and (following is None or weight >= 1.0):
        yield "h", h, (weight, weight)
    elif h is not None and following and following.target and following.draft:
        low, high = (m / (m + 1.0 - weight) for m in surplus(weight, following.target, following.draft))
        yield "h", h, (low, high)


def check_own_token(cycle: AuditedCycle, rule: str) -> Iterator[TranslatableText]:
    """Whether the distribution of the target's own token is the one that the verdict leaves."""
    verified, own, tried = cycle.verified, cycle.own, [cycle.positions[node] for node in cycle.tree.children(cycle.tip)]
    if verified is None or verified.distribution is None or own is None:
        return
    distribution = verified.distribution
    for one in filter(None, (distribution, verified.bonus)):
        if reason := why_none(one):
            yield TranslatableText("the distribution of the target's own token {reason}", reason=reason)
            return
    bonus = verified.bonus if len(cycle.path) == len(cycle.positions) else None
    row = tried[0].target if tried else bonus
    if verified.p is not None and (row or not tried) and not is_within(verified.p, bounds(row or distribution, own)):
        yield TranslatableText("p = {p:.6g} of the target's own token is not what its row gives it", p=verified.p)
    last = tried[0 if rule == BLOCK else -1] if tried and rule in (REJECTION, BLOCK) else None
    if row is None or (last is not None and not (last.target and last.draft)):
        return
    holds = agree(distribution, row)
    if last and last.target and last.draft and (last.u is not None or not holds):
        # Matching a copied draft against the target's choice needs no coin and no residual: a peer does so.
        weight = cycle.weights[cycle.tip + 1] if rule == BLOCK else 1.0
        holds = is_residual(distribution, weight, last.target, last.draft, last.overlap)
    if not holds and rule:
        yield TranslatableText("the target's own token was not drawn from what the verdict leaves")
