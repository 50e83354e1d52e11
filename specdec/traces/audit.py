"""Is a trace true to itself? Every decision and every draw of a run, done again from what its events tell.

A decision is done again exactly: p, q and u stand in the trace to the last bit. A law stands in it by its likeliest
tokens and the mass of all others, rounded to 1e-7: what hangs on it is held against the bounds that this leaves.
What a trace does not tell, because it is older or lighter, is counted as unchecked and never as good.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from ..events import Committed, Drafted, Event, Failed, Finished, Law, Position, Started, Verified
from ..types import Said, Status, TYPICAL_DELTA, TYPICAL_EPSILON

REJECTION, NOISE, BLOCK, TYPICAL = "rejection sampling", "shared noise", "block verification", "typical acceptance"
MAX_NODES = 256  # of one draft; the engine stays far below
MAX_SAID = 40  # characters of a name from the trace
LIKELIEST = 6  # tokens that every law lists, if it has so many
ROUNDING = 2e-6  # of a probability: written with seven digits, computed in float32
ENTROPY_ROUNDING = 1e-3  # nats, over a large vocabulary
CLOCK = 1e-9  # seconds


@dataclass(frozen=True)
class Fault:
    """Where a trace contradicts itself, and how."""

    lane: str
    cycle: int
    reason: Said

    def __str__(self) -> Said:
        told = {"cycle": self.cycle, "lane": self.lane[:MAX_SAID], "reason": self.reason}
        return Said("cycle {cycle} of the lane {lane}: {reason}", **told)


@dataclass
class LaneAudit:
    """What was done again of one lane. `unchecked` counts by name what the trace does not tell."""

    lane: str
    rule: str = ""
    lossless: bool = True
    cycles: int = 0
    tokens: int = 0
    decisions: int = 0
    draws: int = 0
    faults: list[Fault] = field(default_factory=list)
    unchecked: Counter[str] = field(default_factory=Counter)


NOTHING = Said("")


@dataclass(frozen=True)
class Ruling:
    """What should have become of a drafted token, and why; None where the trace does not tell enough."""

    status: Status | None
    why: Said = NOTHING


UNTOLD = Ruling(None)
NEVER = Ruling("discarded", Said("its turn never came"))


@dataclass(frozen=True)
class Cycle:
    drafted: Drafted | None
    verified: Verified | None
    committed: Committed

    @property
    def number(self) -> int:
        return self.committed.cycle

    @property
    def positions(self) -> tuple[Position, ...]:
        return self.verified.positions if self.verified else ()

    @property
    def parents(self) -> tuple[int, ...]:
        return self.drafted.parents if self.drafted else ()

    @property
    def path(self) -> list[int]:
        return [node for node, position in enumerate(self.positions) if position.status == "accepted"]

    @property
    def tip(self) -> int:
        return max(self.path, default=-1)

    def children(self, node: int) -> list[int]:
        return [child for child, parent in enumerate(self.parents) if parent == node]

    def to_root(self, node: int) -> list[int]:
        nodes = []
        while node >= 0:
            nodes.append(node)
            node = self.parents[node]
        return nodes

    @property
    def own(self) -> int | None:
        """The token that the target added; None if the text ended inside the draft."""
        return self.committed.tokens[-1] if len(self.committed.tokens) > self.committed.accepted else None

    @property
    def weights(self) -> list[float]:
        """Of the prefixes of a chain, the empty one first (`BlockVerification`)."""
        weights = [1.0]
        for position in self.positions:
            weights.append(min(1.0, weights[-1] * position.p / position.q))
        return weights


def audit(lanes: Sequence[str], events: Iterable[Event]) -> list[LaneAudit]:
    """One account a lane, in the header's order, and after them lanes that the header does not name."""
    readers: dict[str, LaneReader] = {lane: LaneReader(LaneAudit(lane)) for lane in lanes}
    for event in events:
        if event.lane not in readers:
            readers[event.lane] = LaneReader(LaneAudit(event.lane))
            readers[event.lane].fault(0, "the header names no such lane")
        readers[event.lane].take(event)
    return [reader.account for reader in readers.values()]


def holds(accounts: Iterable[LaneAudit]) -> bool:
    return not any(account.faults for account in accounts)


class LaneReader:
    """Takes a lane's events in their order; keeps its account."""

    def __init__(self, account: LaneAudit) -> None:
        self.account = account
        self.drafted: Drafted | None = None
        self.verified: Verified | None = None
        self.started = self.ended = self.finished = False
        self.total, self.at, self.text = 0, 0.0, ""

    def fault(self, cycle: int, reason: str, /, **values: Any) -> None:
        said = reason if isinstance(reason, Said) else Said(reason, **values)
        self.account.faults.append(Fault(self.account.lane, cycle, said))

    def take(self, event: Event) -> None:
        cycle = getattr(event, "cycle", self.account.cycles)
        if self.finished:
            self.fault(cycle, "something happens behind the end of the lane")
        if self.started == isinstance(event, Started):
            twice, early = Said("the lane starts twice"), Said("something happens before the lane starts")
            self.fault(cycle, twice if self.started else early)
        self.started = True
        if isinstance(event, Started):
            self.start(event)
        elif isinstance(event, Finished):
            self.finish(event)
        elif not isinstance(event, Failed) and cycle != self.account.cycles:
            self.fault(cycle, "it is the turn of cycle {number}", number=self.account.cycles)
            self.account.cycles = cycle
        if isinstance(event, Drafted):
            self.drafted = event
        elif isinstance(event, Verified):
            self.verified = event
        elif isinstance(event, Committed):
            self.commit(Cycle(self.drafted, self.verified, event))
            self.drafted = self.verified = None

    def start(self, event: Started) -> None:
        self.account.rule = event.rule or REJECTION  # older versions knew no other, and did not say it
        self.account.lossless = event.lossless
        if event.lossless and self.account.rule == TYPICAL:
            self.fault(0, "typical acceptance is lossy, and the trace calls it lossless")

    def finish(self, event: Finished) -> None:
        self.finished, last = True, max(0, self.account.cycles - 1)
        if event.tokens != self.total:
            told = {"ended": event.tokens, "joined": self.total}
            self.fault(last, "the lane ends with {ended} tokens, and {joined} joined the text", **told)
        if event.reason != "failed" and event.text != self.text:
            self.fault(last, "the lane ends with another text than its cycles wrote")

    def commit(self, cycle: Cycle) -> None:
        number, event = cycle.number, cycle.committed
        if self.ended:
            self.fault(number, "the text had ended in the cycle before")
        self.total, self.text = self.total + len(event.tokens), self.text + event.text
        if event.total != self.total:
            self.fault(number, "the text has {total} tokens, not {told}", total=self.total, told=event.total)
        if late := backwards(self.at, cycle):
            self.fault(number, late)
        self.at = event.at
        wrong = list(misshapen(cycle)) or list(self.contradictions(cycle))
        for reason in wrong:
            self.fault(number, reason)
        self.ended = len(event.tokens) <= len(cycle.path)
        self.account.cycles, self.account.tokens = number + 1, self.total

    def contradictions(self, cycle: Cycle) -> Iterator[Said]:
        yield from unsound_laws(cycle)
        if self.account.rule == BLOCK:
            yield from wrong_chances(cycle)
        yield from self.wrong_decisions(cycle)
        yield from self.wrong_draw(cycle)

    def wrong_decisions(self, cycle: Cycle) -> Iterator[Said]:
        if not cycle.positions:
            return
        judge = JUDGES.get(self.account.rule)
        if judge is None:
            self.account.unchecked[f"decisions by the rule {self.account.rule[:MAX_SAID]!r}"] += len(cycle.positions)
            return
        for position, ruling in zip(cycle.positions, judge(cycle), strict=True):
            if ruling.status is None:
                self.account.unchecked["decisions whose coin or law the trace does not tell"] += 1
                continue
            self.account.decisions += ruling is not NEVER
            if ruling.status != position.status:
                told = {"draft": named(position), "status": Said(position.status), "why": ruling.why}
                yield Said("{draft} was {status}, but {why}", **told)
                return  # what follows follows from it

    def wrong_draw(self, cycle: Cycle) -> Iterator[Said]:
        own, verified = cycle.own, cycle.verified
        if own is None:
            return
        if verified is None or verified.law is None:
            self.account.unchecked["draws whose law the trace does not tell"] += 1
            return
        piece, listed = cycle.committed.pieces[-1][:MAX_SAID], own in masses(verified.law)
        if not listed and (verified.law.rest <= ROUNDING or verified.p == 0.0):
            yield Said("the target added {piece!r}, which the law that it was drawn from does not hold", piece=piece)
        if not listed and verified.p is None:
            self.account.unchecked["draws whose mass the trace does not tell"] += 1
        else:
            self.account.draws += 1
        yield from wrong_law(cycle, verified, self.account.rule)
        sample = the_sample(cycle) if self.account.rule == NOISE else None
        if sample is not None and sample != own:
            yield Said("the target added {piece!r}, and its noise draws another token", piece=piece)


def named(x: Position) -> Said:
    return Said("draft {number} ({piece!r})", number=x.node + 1, piece=x.piece[:MAX_SAID])


# ---- what holds under any rule ----


def backwards(before: float, cycle: Cycle) -> Said:
    times = [before]
    times += [cycle.drafted.start, cycle.drafted.end] if cycle.drafted else []
    times += [cycle.verified.start, cycle.verified.end] if cycle.verified else []
    times.append(cycle.committed.at)
    return Said("the clock runs backwards") if any(b < a - CLOCK for a, b in pairwise(times)) else NOTHING


def misshapen(cycle: Cycle) -> Iterator[Said]:
    """A tree was drafted, all of it was checked, one path was accepted, and that path and one token joined the text."""
    drafted, event, path = cycle.drafted, cycle.committed, cycle.path
    tokens = drafted.tokens if drafted else ()
    if len(tokens) > MAX_NODES:
        yield Said("the draft holds more than {limit} tokens", limit=MAX_NODES)
        return
    if drafted and not len(tokens) == len(drafted.pieces) == len(drafted.parents):
        yield Said("the draft has not as many tokens as pieces and parents")
        return
    if any(not -1 <= parent < node for node, parent in enumerate(cycle.parents)):
        yield Said("the draft's parents are no tree")
        return
    if [(x.node, x.token) for x in cycle.positions] != list(enumerate(tokens)):
        yield Said("what was checked is not what was drafted")
        return
    for x in cycle.positions:
        if not (0.0 <= x.p <= 1.0 + ROUNDING and 0.0 < x.q <= 1.0 + ROUNDING and 0.0 <= (x.u or 0.0) < 1.0):
            told = {"draft": named(x), "p": x.p, "q": x.q, "u": x.u}
            yield Said("{draft} has p = {p:.6g}, q = {q:.6g}, u = {u}: no probabilities", **told)
            return
    if [cycle.parents[node] for node in path] != [-1, *path][: len(path)]:
        yield Said("the accepted tokens are no path")
    elif event.tokens[: event.accepted] != tuple(tokens[node] for node in path[: event.accepted]):
        yield Said("other tokens joined the text than were accepted")
    if event.accepted != min(len(path), len(event.tokens)):
        told = {"accepted": len(path), "joined": event.accepted}
        yield Said("{accepted} tokens were accepted, and {joined} of them are said to have joined the text", **told)
    if not 1 <= len(event.tokens) <= len(path) + 1 or len(event.pieces) != len(event.tokens):
        told = {"joined": len(event.tokens), "accepted": len(path)}
        yield Said("{joined} tokens joined the text; behind {accepted} accepted ones comes one of the target's", **told)
    if cycle.verified and (event.kind == "resampled") != bool(cycle.children(cycle.tip)):
        yield Said("the target's own token is called {kind}", kind=Said(event.kind))


# ---- decisions, rule by rule ----


def by_coins(cycle: Cycle) -> list[Ruling]:
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
    if x.status == "discarded":
        kept = x.u is None or x.u * x.q < x.p
        return Ruling("accepted" if kept else "rejected", Said("its turn had come"))
    if x.u is not None:
        kept = x.u * x.q < x.p
        why = Said("u·q = {uq:.6g} {sign} p = {p:.6g}", uq=x.u * x.q, sign="<" if kept else "≥", p=x.p)
        return Ruling("accepted" if kept else "rejected", why)
    # Without its coin: some are kept, and some rejected, whatever the coin.
    if x.p == 0.0:
        return Ruling("rejected", Said("p is 0"))
    return Ruling("accepted", Said("p is 1")) if x.p == 1.0 else UNTOLD


def by_block(cycle: Cycle) -> list[Ruling]:
    """The longest block whose coin falls below its h; coins are tossed from the end."""
    n = kept = len(cycle.positions)
    why = Said("the whole block stays")
    while kept:
        x = cycle.positions[kept - 1]
        if x.u is None or x.h is None:
            return [UNTOLD] * n
        told = {"u": x.u, "sign": "<" if x.u < x.h else "≥", "h": x.h, "number": kept}
        why = Said("u = {u:.6g} {sign} h = {h:.6g} of draft {number}", **told)
        if x.u < x.h:
            break
        kept -= 1
    return [Ruling("accepted" if i < kept else "rejected" if i == kept else "discarded", why) for i in range(n)]


def by_sample(cycle: Cycle) -> list[Ruling]:
    """What the noise draws from the target's row is kept."""
    rulings, node = [NEVER] * len(cycle.positions), -1
    while children := cycle.children(node):
        head = cycle.positions[children[0]].target
        if head is None or head.sample is None:
            for child in children:
                rulings[child] = UNTOLD
            following = [child for child in children if cycle.positions[child].status == "accepted"]
        else:
            why = Said("the noise draws {piece!r}", piece=head.sample.piece[:MAX_SAID])
            following = [child for child in children if cycle.positions[child].token == head.sample.token][:1]
            for child in following or children:
                rulings[child] = Ruling("accepted" if following else "rejected", why)
        if not following:
            break
        node = following[0]
    return rulings


def by_threshold(cycle: Cycle) -> list[Ruling]:
    """Of the paths whose every token the target finds plausible, the deepest."""
    plausible, why = [-1], []
    for x, parent in zip(cycle.positions, cycle.parents, strict=True):
        if x.target is None:
            return [UNTOLD] * len(cycle.positions)
        limit = min(TYPICAL_EPSILON, TYPICAL_DELTA * math.exp(-x.target.entropy))
        near = abs(x.p - limit) <= 1e-5 * limit  # the entropy is rounded
        why.append(Said("p = {p:.6g} and the limit is {limit:.6g}", p=x.p, limit=limit))
        if parent in plausible and (x.status == "accepted" if near else x.p >= limit):
            plausible.append(x.node)
    tip = max(plausible, key=lambda node: len(cycle.to_root(node)))
    path = cycle.to_root(tip)

    def ruling(node: int) -> Ruling:
        if node in path:
            return Ruling("accepted", why[node])
        return Ruling("rejected", why[node]) if cycle.parents[node] == tip else NEVER

    return [ruling(node) for node in range(len(cycle.positions))]


JUDGES: dict[str, Callable[[Cycle], list[Ruling]]] = {
    REJECTION: by_coins,
    NOISE: by_sample,
    BLOCK: by_block,
    TYPICAL: by_threshold,
}


# ---- laws ----


def masses(law: Law) -> dict[int, float]:
    return {candidate.token: candidate.prob for candidate in law.top}


def bounds(law: Law) -> Callable[[int], tuple[float, float]]:
    """What the law may give to a token: one that is not listed gets no more than the likeliest that are."""
    listed = masses(law)
    others = min([law.rest, *sorted(listed.values(), reverse=True)[LIKELIEST - 1 : LIKELIEST]])

    def of(token: int) -> tuple[float, float]:
        mass = listed.get(token)
        return (0.0, others + ROUNDING) if mass is None else (max(0.0, mass - ROUNDING), mass + ROUNDING)

    return of


def unsound_laws(cycle: Cycle) -> Iterator[Said]:
    """Each law is one, p and q are in it, and the overlap and the residual are what they make."""
    for x in cycle.positions:
        name = named(x)
        weight = cycle.weights[x.node] if x.h is not None else 1.0
        # Where nothing may be left of p, older versions told of block verification a residual that was no law.
        empty = x.h is not None and x.target and x.draft and surplus(weight, x.target, x.draft)[0] <= ROUNDING
        residual = None if empty else x.residual
        for law in (x.target, x.draft, residual):
            if law and (reason := unsound(law)):
                yield Said("a law of {draft} {reason}", draft=name, reason=reason)
                return
        for letter, prob, law in (("p", x.p, x.target), ("q", x.q, x.draft)):
            if law and not within(prob, bounds(law)(x.token)):
                told = {"letter": letter, "prob": prob, "draft": name}
                yield Said("{letter} = {prob:.6g} of {draft} is not what its law gives it", **told)
        if x.target and x.draft:
            low, high = surplus(1.0, x.target, x.draft)
            if x.overlap is not None and not within(1.0 - x.overlap, (low, high)):
                told = {"overlap": x.overlap, "draft": name}
                yield Said("the overlap {overlap:.6g} of {draft} is not that of its laws", **told)
            if residual and not is_residual(residual, weight, x.target, x.draft, x.overlap):
                yield Said("the residual of {draft} is not what p leaves of q", draft=name)
            younger = [y for y in cycle.positions[x.node + 1 :] if cycle.parents[y.node] == cycle.parents[x.node]]
            following = younger[0].target if younger and x.u is not None and x.h is None else None
            if following and not is_residual(following, 1.0, x.target, x.draft, x.overlap):
                yield Said("the sibling behind {draft} was not tried against the residual", draft=name)
    for law in (cycle.verified.law, cycle.verified.bonus) if cycle.verified else ():
        if law and (reason := unsound(law)):
            yield Said("the law of the target's own token {reason}", reason=reason)


def unsound(law: Law) -> Said:
    if len(masses(law)) != len(law.top):
        return Said("names a token twice")
    if not all(0.0 <= prob <= 1.0 + ROUNDING for prob in [*masses(law).values(), law.rest]):
        return Said("holds what is no probability")
    if len(law.top) < LIKELIEST and law.rest > LIKELIEST * ROUNDING:
        return Said("keeps its likeliest tokens to itself")
    total = sum(masses(law).values()) + law.rest
    if abs(total - 1.0) > ROUNDING * (1 + len(law.top)):
        return Said("sums to {total:.6g}", total=total)
    least = sum(-mass * math.log(mass) for mass in [*masses(law).values(), law.rest] if mass > 0.0)
    low = law.entropy < least - ENTROPY_ROUNDING
    return Said("cannot have an entropy of {entropy:.6g}", entropy=law.entropy) if low else NOTHING


def within(value: float, limits: tuple[float, float]) -> bool:
    return limits[0] - ROUNDING <= value <= limits[1] + ROUNDING


def surplus(weight: float, p: Law, q: Law, overlap: float | None = None) -> tuple[float, float]:
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


def is_residual(law: Law, weight: float, p: Law, q: Law, overlap: float | None = None) -> bool:
    """max(0, w p − q) over its own sum, token by token, as far as the three laws tell; p where nothing is left."""
    low, high = surplus(weight, p, q, overlap)
    if low <= ROUNDING and agree(law, p):
        return True
    of_p, of_q = bounds(p), bounds(q)
    for token, mass in masses(law).items():
        (p_low, p_high), (q_low, q_high) = of_p(token), of_q(token)
        least, most = max(0.0, weight * p_low - q_high), max(0.0, weight * p_high - q_low)
        if mass * low - ROUNDING > most or mass * high + ROUNDING < least:
            return False
    return True


def agree(a: Law, b: Law) -> bool:
    of_a, of_b, tokens = bounds(a), bounds(b), {*masses(a), *masses(b)}
    return all(of_a(x)[0] <= of_b(x)[1] and of_b(x)[0] <= of_a(x)[1] for x in tokens)


def wrong_chances(cycle: Cycle) -> Iterator[Said]:
    """h of block verification: w behind the whole block, else m / (m + 1 − w) with m = Σ max(0, w p − q)."""
    weights, n = cycle.weights, len(cycle.positions)
    for i, x in enumerate(cycle.positions, start=1):
        if x.h is None:
            continue
        low = high = weights[i]
        if i < n and weights[i] < 1.0:
            following = cycle.positions[i]
            if not (following.target and following.draft):
                continue
            sums = surplus(weights[i], following.target, following.draft)
            low, high = (mass / (mass + 1.0 - weights[i]) for mass in sums)
        if not within(x.h, (low, high)):
            told = {"h": x.h, "draft": named(x), "low": low, "high": high}
            yield Said("h = {h:.6g} of {draft} must lie between {low:.6g} and {high:.6g}", **told)


def wrong_law(cycle: Cycle, verified: Verified, rule: str) -> Iterator[Said]:
    """Is the law of the target's own token the one that the verdict leaves?"""
    law, own, tried = verified.law, cycle.own, [cycle.positions[node] for node in cycle.children(cycle.tip)]
    if law is None or own is None:
        return
    row = tried[0].target if tried else verified.bonus if len(cycle.path) == len(cycle.positions) else None
    if verified.p is not None and not within(verified.p, bounds(row or law)(own)) and (row or not tried):
        yield Said("p = {p:.6g} of the target's own token is not what its row gives it", p=verified.p)
    if row is None:
        return
    last = tried[0] if rule == BLOCK and tried else tried[-1] if tried else None
    if last is None or rule not in (REJECTION, BLOCK):
        if rule in JUDGES and not agree(law, row):
            yield Said("the target's own token was not drawn from its row")
        return
    weight = cycle.weights[cycle.tip + 1] if rule == BLOCK else 1.0
    if last.target is None or last.draft is None or is_residual(law, weight, last.target, last.draft, last.overlap):
        return
    # Matching a copied draft against the target's choice needs no coin and no residual: a peer does so.
    if last.u is not None or not agree(law, row):
        yield Said("the token behind the rejection was not drawn from the residual")


def the_sample(cycle: Cycle) -> int | None:
    """What the noise draws where the target adds its token, if the trace tells."""
    children, verified = cycle.children(cycle.tip), cycle.verified
    law = cycle.positions[children[0]].target if children else None
    if not children and verified and len(cycle.path) == len(cycle.positions):
        law = verified.bonus
    return law.sample.token if law and law.sample else None
