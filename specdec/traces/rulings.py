"""Each rule's decisions, done again from p, q, u and what the distributions tell: what should have become of every
draft.

An independent check of `rules.py` and `verify.py`: written from the papers, without their code.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ..events import Position
from ..types import Status, TranslatableText, TYPICAL_DELTA, TYPICAL_EPSILON
from .cycle import AuditedCycle, chances, MAX_SAID, NOTHING

REJECTION, MATCH, NOISE = "rejection sampling", "sample and match", "shared noise"
BLOCK, TYPICAL = "block verification", "typical acceptance"


@dataclass(frozen=True)
class Ruling:
    """What should have become of a drafted token, and why; None where the trace does not tell enough."""

    status: Status | None
    why: TranslatableText = NOTHING


NOT_REPORTED = Ruling(None)
NEVER = Ruling("discarded", TranslatableText("its turn never came"))


def by_coins(cycle: AuditedCycle) -> list[Ruling]:
    """Child by child: kept while u·q < p."""
    rulings, node = [NEVER] * len(cycle.positions), -1
    while True:
        for child in cycle.children(node):
            position = cycle.positions[child]
            rulings[child] = by_coin(position)
            if (rulings[child].status or position.status) == "accepted":
                node = child
                break
        else:
            return rulings


def by_coin(x: Position) -> Ruling:
    p, q = chances(x)
    if x.status == "discarded":
        kept = x.u is None or x.u * q < p
        return Ruling("accepted" if kept else "rejected", TranslatableText("its turn had come"))
    if x.u is not None:
        kept = x.u * q < p
        why = TranslatableText("u·q = {uq:.6g} {sign} p = {p:.6g}", uq=x.u * q, sign="<" if kept else "≥", p=p)
        return Ruling("accepted" if kept else "rejected", why)
    # Without its coin: some are kept, and some rejected, whatever the coin.
    if p == 0.0:
        return Ruling("rejected", TranslatableText("p is 0"))
    return Ruling("accepted", TranslatableText("p is 1")) if p == 1.0 else NOT_REPORTED


def by_block(cycle: AuditedCycle) -> list[Ruling]:
    """The longest block whose coin falls below its h; coins are tossed from the end."""
    n = kept = len(cycle.positions)
    why = TranslatableText("the whole block stays")
    while kept:
        x = cycle.positions[kept - 1]
        if x.u is None or x.h is None:
            return [NOT_REPORTED] * n
        told = {"u": x.u, "sign": "<" if x.u < x.h else "≥", "h": x.h, "number": kept}
        why = TranslatableText("u = {u:.6g} {sign} h = {h:.6g} of draft {number}", **told)
        if x.u < x.h:
            break
        kept -= 1
    return [Ruling("accepted" if i < kept else "rejected" if i == kept else "discarded", why) for i in range(n)]


def by_match(cycle: AuditedCycle) -> list[Ruling]:
    """The target draws a token at each place, and it joins the text there: a draft is kept if it is that token."""
    rulings, node = [NEVER] * len(cycle.positions), -1
    for token, piece in zip(cycle.committed.tokens, cycle.committed.pieces, strict=True):
        why = TranslatableText("the target draws {piece!r}", piece=piece[:MAX_SAID])
        children = cycle.children(node)
        following = [child for child in children if cycle.positions[child].token == token][:1]
        for child in following or children:
            rulings[child] = Ruling("accepted" if following else "rejected", why)
        if not following:
            return rulings
        node = following[0]
    for child in cycle.children(node):  # the text ended first
        rulings[child] = NOT_REPORTED
    return rulings


def by_sample(cycle: AuditedCycle) -> list[Ruling]:
    """What the noise draws from the target's row is kept."""
    rulings, node = [NEVER] * len(cycle.positions), -1
    while children := cycle.children(node):
        head = cycle.positions[children[0]].target
        if head is None or head.sample is None:
            for child in children:
                rulings[child] = NOT_REPORTED
            following = [child for child in children if cycle.positions[child].status == "accepted"]
        else:
            why = TranslatableText("the noise draws {piece!r}", piece=head.sample.piece[:MAX_SAID])
            following = [child for child in children if cycle.positions[child].token == head.sample.token][:1]
            for child in following or children:
                rulings[child] = Ruling("accepted" if following else "rejected", why)
        if not following:
            break
        node = following[0]
    return rulings


def by_threshold(cycle: AuditedCycle) -> list[Ruling]:
    """Of the paths whose every token the target finds plausible, the deepest."""
    plausible, depths, why = [-1], cycle.tree.depths(), []
    for x, parent in zip(cycle.positions, cycle.tree.parents, strict=True):
        if x.target is None:
            return [NOT_REPORTED] * len(cycle.positions)
        p, limit = chances(x)[0], min(TYPICAL_EPSILON, TYPICAL_DELTA * math.exp(-x.target.entropy))
        near = abs(p - limit) <= 1e-5 * limit  # the entropy is rounded
        why.append(TranslatableText("p = {p:.6g} and the limit is {limit:.6g}", p=p, limit=limit))
        if parent in plausible and (x.status == "accepted" if near else p >= limit):
            plausible.append(x.node)
    tip = max(plausible, key=lambda node: depths[node] if node >= 0 else 0)
    path = set(cycle.tree.path(tip))

    def ruling(node: int) -> Ruling:
        if node in path:
            return Ruling("accepted", why[node])
        return Ruling("rejected", why[node]) if cycle.tree.parents[node] == tip else NEVER

    return [ruling(node) for node in range(len(cycle.positions))]


JUDGES: dict[str, Callable[[AuditedCycle], list[Ruling]]] = {
    REJECTION: by_coins,
    MATCH: by_match,
    NOISE: by_sample,
    BLOCK: by_block,
    TYPICAL: by_threshold,
}
