"""Distributions as a trace tells them, by their likeliest tokens and the mass of all others: what they allow, and what
not.

Masses are rounded to 1e-7, so whatever hangs on them is held against bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

from ..events import Distribution, Event, Verified
from ..types import TranslatableText
from .cycle import AuditedCycle, chances, MAX_SAID, named, NOTHING
from .rulings import BLOCK, JUDGES, REJECTION

LIKELIEST = 6  # tokens that every distribution lists, unless it has fewer
ROUNDING = 2e-6  # of a probability: written with seven digits, computed in float32
ENTROPY_ROUNDING = 1e-3  # nats, over a large vocabulary
VOCABULARY = 2**20  # tokens; none is larger


def masses(distribution: Distribution) -> dict[int, float]:
    return {candidate.token: candidate.prob for candidate in distribution.top}


def bounds(distribution: Distribution) -> Callable[[int], tuple[float, float]]:
    """What the distribution may give to a token: one that is not listed gets no more than the likeliest that are."""
    listed = masses(distribution)
    others = min([distribution.rest, *sorted(listed.values(), reverse=True)[LIKELIEST - 1 : LIKELIEST]])

    def of(token: int) -> tuple[float, float]:
        mass = listed.get(token)
        return (0.0, others + ROUNDING) if mass is None else (max(0.0, mass - ROUNDING), mass + ROUNDING)

    return of


def lists_what_was_chosen(events: Iterable[Event]) -> bool:
    """Whether the distributions name what was drafted and drawn, however unlikely. The first versions named the
    likeliest only; they told neither examples nor the row after a chain."""
    return any(
        event.bonus is not None or any(x.target and x.target.sample for x in event.positions)
        for event in events
        if isinstance(event, Verified)
    )


def check_distributions(cycle: AuditedCycle, lists: bool) -> Iterator[TranslatableText]:
    """Each distribution sums to one, p and q are in it, and the overlap and the residual are what they make.

    `lists`: whether every distribution names its drafted token (`lists_what_was_chosen`).
    """
    for x in cycle.positions:
        name = named(x)
        weight, parent = cycle.weights[x.node] if x.h is not None else 1.0, cycle.tree.parents[x.node]
        # Where nothing may be left of p, older versions told of block verification a residual that was no distribution.
        empty = x.h is not None and x.target and x.draft and surplus(weight, x.target, x.draft)[0] <= ROUNDING
        residual = None if empty else x.residual
        for distribution in (x.target, x.draft, residual):
            if distribution and (reason := check_distribution(distribution)):
                yield TranslatableText("a distribution of {draft} {reason}", draft=name, reason=reason)
                return
        for letter, prob, distribution in zip("pq", chances(x), (x.target, x.draft), strict=True):
            if distribution and (
                not is_within(prob, bounds(distribution)(x.token))
                or (lists and prob > ROUNDING and x.token not in masses(distribution))
            ):
                told = {"letter": letter, "prob": prob, "draft": name}
                yield TranslatableText("{letter} = {prob:.6g} of {draft} is not what its distribution gives it", **told)
        if x.target and x.draft:
            low, high = surplus(1.0, x.target, x.draft)
            if x.overlap is not None and not is_within(1.0 - x.overlap, (low, high)):
                told = {"overlap": x.overlap, "draft": name}
                yield TranslatableText("the overlap {overlap:.6g} of {draft} is not that of its distributions", **told)
            if residual and not is_residual(residual, weight, x.target, x.draft, x.overlap):
                yield TranslatableText("the residual of {draft} is not what p leaves of q", draft=name)
            younger = cycle.next_sibling.get(x.node) if x.u is not None and x.h is None else None
            following = None if younger is None else cycle.positions[younger].target
            if following and not is_residual(following, 1.0, x.target, x.draft, x.overlap):
                yield TranslatableText("the sibling after {draft} was not tried against the residual", draft=name)
        eldest = cycle.positions[cycle.children(parent)[0]].target
        if x.row is not None and eldest and not is_within(x.row, bounds(eldest)(x.token)):
            yield TranslatableText(
                "p = {p:.6g} of {draft} before its elder siblings is not what its row gives it", p=x.row, draft=name
            )
    for distribution in (cycle.verified.distribution, cycle.verified.bonus) if cycle.verified else ():
        if distribution and (reason := check_distribution(distribution)):
            yield TranslatableText("the distribution of the target's own token {reason}", reason=reason)


def check_distribution(distribution: Distribution) -> TranslatableText:
    if len(masses(distribution)) != len(distribution.top):
        return TranslatableText("names a token twice")
    if not all(0.0 <= prob <= 1.0 + ROUNDING for prob in [*masses(distribution).values(), distribution.rest]):
        return TranslatableText("holds what is no probability")
    if len(distribution.top) < LIKELIEST and distribution.rest > LIKELIEST * ROUNDING:
        return TranslatableText("keeps its likeliest tokens to itself")
    total = sum(masses(distribution).values()) + distribution.rest
    if abs(total - 1.0) > ROUNDING * (1 + len(distribution.top)):
        return TranslatableText("sums to {total:.6g}", total=total)
    if distribution.sample and not is_within(distribution.sample.prob, bounds(distribution)(distribution.sample.token)):
        return TranslatableText(
            "gives its example {piece!r} another probability", piece=distribution.sample.piece[:MAX_SAID]
        )
    low, high = entropies(distribution)
    if not low - ENTROPY_ROUNDING <= distribution.entropy <= high + ENTROPY_ROUNDING:
        return TranslatableText("cannot have an entropy of {entropy:.6g}", entropy=distribution.entropy)
    return NOTHING


def entropies(distribution: Distribution) -> tuple[float, float]:
    """Bounds in nats: the rest may be spread over a whole vocabulary, or over as few tokens as could stay unlisted."""
    listed = sorted(masses(distribution).values(), reverse=True)
    told = sum(-mass * math.log(mass) for mass in [*listed, distribution.rest] if mass > 0.0)
    likely = min([distribution.rest, *listed[LIKELIEST - 1 : LIKELIEST]]) + ROUNDING
    least = distribution.rest * max(0.0, math.log(max(distribution.rest, ROUNDING) / likely))
    return told + least, told + (distribution.rest + ROUNDING) * math.log(VOCABULARY)


def is_within(value: float, limits: tuple[float, float]) -> bool:
    return limits[0] - ROUNDING <= value <= limits[1] + ROUNDING


def surplus(weight: float, p: Distribution, q: Distribution, overlap: float | None = None) -> tuple[float, float]:
    """Bounds of Σ max(0, w p − q): exact over the tokens whose p and q are both known, open over the rest."""
    if overlap is not None and weight == 1.0:
        return max(0.0, 1.0 - overlap - ROUNDING), 1.0 - overlap + ROUNDING
    P, Q = masses(p), masses(q)
    known = {x for x in {*P, *Q} if (x in P or p.rest < ROUNDING) and (x in Q or q.rest < ROUNDING)}
    total = sum(max(0.0, weight * P.get(x, 0.0) - Q.get(x, 0.0)) for x in known)
    left_p = weight * max(0.0, 1.0 - sum(P.get(x, 0.0) for x in known))
    left_q = max(0.0, 1.0 - sum(Q.get(x, 0.0) for x in known))
    slack = ROUNDING * (1 + len(known))
    return max(0.0, total + max(0.0, left_p - left_q) - slack), total + left_p + slack


def is_residual(
    distribution: Distribution, weight: float, p: Distribution, q: Distribution, overlap: float | None = None
) -> bool:
    """max(0, w p − q) over its own sum, token by token, as far as the three distributions tell; p where nothing is
    left.
    """
    low, high = surplus(weight, p, q, overlap)
    if low <= ROUNDING and agree(distribution, p):
        return True
    of_p, of_q = bounds(p), bounds(q)
    for token, mass in masses(distribution).items():
        (p_low, p_high), (q_low, q_high) = of_p(token), of_q(token)
        least, most = max(0.0, weight * p_low - q_high), max(0.0, weight * p_high - q_low)
        if mass * low - ROUNDING > most or mass * high + ROUNDING < least:
            return False
    return True


def agree(a: Distribution, b: Distribution) -> bool:
    of_a, of_b, tokens = bounds(a), bounds(b), {*masses(a), *masses(b)}
    return all(of_a(x)[0] <= of_b(x)[1] and of_b(x)[0] <= of_a(x)[1] for x in tokens)


def check_block_chances(cycle: AuditedCycle) -> Iterator[TranslatableText]:
    """h of block verification: w after the whole block, else m / (m + 1 − w) with m = Σ max(0, w p − q).

    Where another rule judged a chain, `block` says what h would be.
    """
    weights, n = cycle.weights, len(cycle.positions)
    for i, x in enumerate(cycle.positions, start=1):
        h = x.block if x.h is None else x.h
        if h is None:
            continue
        low = high = weights[i]
        if i < n and weights[i] < 1.0:
            following = cycle.positions[i]
            if not (following.target and following.draft):
                continue
            sums = surplus(weights[i], following.target, following.draft)
            low, high = (mass / (mass + 1.0 - weights[i]) for mass in sums)
        if not is_within(h, (low, high)):
            told = {"h": h, "draft": named(x), "low": low, "high": high}
            yield TranslatableText("h = {h:.6g} of {draft} must lie between {low:.6g} and {high:.6g}", **told)


def check_own_distribution(cycle: AuditedCycle, verified: Verified, rule: str) -> Iterator[TranslatableText]:
    """Whether the distribution of the target's own token is the one that the verdict leaves."""
    distribution, own, tried = (
        verified.distribution,
        cycle.own,
        [cycle.positions[node] for node in cycle.children(cycle.tip)],
    )
    if distribution is None or own is None:
        return
    row = tried[0].target if tried else verified.bonus if len(cycle.path) == len(cycle.positions) else None
    if verified.p is not None and not is_within(verified.p, bounds(row or distribution)(own)) and (row or not tried):
        yield TranslatableText("p = {p:.6g} of the target's own token is not what its row gives it", p=verified.p)
    if row is None:
        return
    last = tried[0] if rule == BLOCK and tried else tried[-1] if tried else None
    if last is None or rule not in (REJECTION, BLOCK):
        if rule in JUDGES and not agree(distribution, row):
            yield TranslatableText("the target's own token was not drawn from its row")
        return
    weight = cycle.weights[cycle.tip + 1] if rule == BLOCK else 1.0
    if (
        last.target is None
        or last.draft is None
        or is_residual(distribution, weight, last.target, last.draft, last.overlap)
    ):
        return
    # Matching a copied draft against the target's choice needs no coin and no residual: a peer does so.
    if last.u is not None or not agree(distribution, row):
        yield TranslatableText("the token after the rejection was not drawn from the residual")


def the_sample(cycle: AuditedCycle) -> int | None:
    """What the noise draws where the target adds its token, if the trace tells."""
    children, verified = cycle.children(cycle.tip), cycle.verified
    distribution = cycle.positions[children[0]].target if children else None
    if not children and verified and len(cycle.path) == len(cycle.positions):
        distribution = verified.bonus
    return distribution.sample.token if distribution and distribution.sample else None
