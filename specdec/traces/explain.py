"""One decision of a run in plain words: what was drafted, p, q and the coin, what became of the draft, and why.

The engine's own rule judges it again (`replay.py`); nothing is said that the trace does not hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..events import Position, Started
from ..types import Status
from .cycle import AuditedCycle, BLOCK, chances, contradiction, cycles, is_unnamed, MATCH, MAX_SAID, NOISE, REJECTION
from .file import Trace


@dataclass(frozen=True)
class Decision:
    """A drafted token and what became of it. `cycle` and `position` count from 1; `said` is a paragraph.

    `p` and `q` are the probabilities in the test, `chance` is min(1, p/q); `u` is None where no coin was tossed. What a
    server does not report is None, and its `rule` is "".
    """

    cycle: int
    position: int
    drafted: int
    token: str
    status: Status
    rule: str
    p: float | None
    q: float | None
    ratio: float | None
    chance: float | None
    u: float | None
    said: str


def explain(trace: Trace, cycle: int = 0, position: int = 0) -> Decision:
    """The decision about the draft at `position` of `cycle`; 0 is the first one that was rejected, or else drafted.

    ValueError says what the run holds instead.
    """
    lane = trace.header.lanes[0]
    started = next((event for event in trace.events if isinstance(event, Started) and event.lane == lane), None)
    drafting = {one.number: one for one in cycles(trace.events, lane) if one.positions}
    if not drafting:
        raise ValueError("This run drafted nothing, so there is no decision to explain.")
    if cycle not in (0, *drafting):
        raise ValueError(f"Cycle {cycle} drafted nothing. Choose one from {min(drafting)} to {max(drafting)}.")
    chosen = [drafting[cycle]] if cycle else list(drafting.values())
    if position and all(position > len(one.positions) for one in chosen):
        raise ValueError(f"There is no draft {position}. Choose one from 1 to {len(chosen[0].positions)}.")
    places = [(one, x) for one in chosen for x in one.positions if position in (0, x.node + 1)]
    one, x = next((place for place in places if place[1].status == "rejected"), places[0])
    server = started.server if started else ""
    if wrong := contradiction(one, bool(server)):
        raise ValueError(f"Cycle {one.number} of this trace contradicts itself: {wrong}.")
    place = (one.number, x.node + 1, len(one.positions), x.piece, x.status)
    if server:
        return Decision(*place, "", x.p, None, None, None, None, " ".join(by_server(one, x, server)))
    rule = (started and started.rule) or REJECTION
    greedy = started is not None and started.params.temperature == 0.0
    said = [*setting(one, x, greedy), *verdict(one, x, rule), *outcome(one, x, rule)]
    p, q = chances(x)
    return Decision(*place, rule, p, q, p / q, min(1.0, p / q), x.u, " ".join(said))


def by_server(cycle: AuditedCycle, x: Position, server: str) -> Iterator[str]:
    """What a server reports of one draft: its fate, perhaps its token and p, and never the reason."""
    yield f"Cycle {cycle.number} drafted {count(len(cycle.positions), 'token')}, says {server[:MAX_SAID]}."
    yield f"Draft {x.node + 1} is {'a token that it does not tell' if is_unnamed(x) else quoted(x.piece)}."
    if x.p is not None:
        yield f"The target gave it p = {x.p:.4g}."
    yield f"It was {x.status}. The server tells neither q nor the coin, so the decision cannot be done again."
    if cycle.own is not None:
        yield f"The target's own token of this cycle is {quoted(cycle.committed.pieces[-1])}."


def setting(cycle: AuditedCycle, x: Position, greedy: bool) -> Iterator[str]:
    p, q = chances(x)
    drafts = ", ".join(quoted(one.piece) for one in cycle.positions[:16]) + ", …" * (len(cycle.positions) > 16)
    yield f"Cycle {cycle.number} drafted {count(len(cycle.positions), 'token')}: {drafts}."
    yield f"Draft {x.node + 1} is {quoted(x.piece)}: the drafter gave it q = {q:.4g}, the target p = {p:.4g}."
    if q == 1.0:
        yield "q is 1 because the drafter chose it outright, without a coin of its own."
    if greedy:
        yield "At temperature 0 the target's p is 1 for its own choice and 0 for every other token."


def verdict(cycle: AuditedCycle, x: Position, rule: str) -> Iterator[str]:
    from .replay import judged  # and with it torch, which a page that explains nothing does without

    status = (judged(cycle, rule) or [None] * len(cycle.positions))[x.node]
    if status == x.status == "discarded":
        yield f"It was discarded without being judged: {turn(cycle, x, rule)}."
        return
    (p, q), compared = chances(x), None
    if rule == REJECTION:
        yield f"The rule keeps it with chance min(1, p/q) = {min(1.0, p / q):.4g}."
    if x.u is not None:
        yield f"The coin fell on u = {x.u:.4g}."
        compared = ("u", x.u, "h", x.h) if x.h is not None else ("u·q", x.u * q, "p", p)
    if status is None:
        yield f"It was {x.status}; the trace does not tell enough to do the decision of {rule[:MAX_SAID]} again."
    elif status != x.status:
        yield f"The trace says that it was {x.status}, but the rule makes it {status}: the trace contradicts itself."
    elif compared:
        name, value, other, limit = compared
        yield f"It was {x.status}, because {name} = {value:.6g} {'<' if value < limit else '≥'} {other} = {limit:.6g}."
    elif rule in (MATCH, NOISE):
        drawn = cycle.committed.pieces[min(cycle.tree.depth(x.node), len(cycle.committed.pieces)) - 1]
        yield f"It was {x.status}, because the target draws {quoted(drawn)}."
    elif rule == BLOCK:
        yield f"It was {x.status}, because a longer block was kept."
    else:
        yield f"It was {x.status}, because its p = {p:.6g}."


def turn(cycle: AuditedCycle, x: Position, rule: str) -> str:
    """Why it was never judged."""
    parent = cycle.tree.parents[x.node]
    if rule == BLOCK:
        return "block verification kept a shorter block, which ends before it"
    if parent in (-1, *cycle.path):
        return "a draft for the same place was accepted before its turn came"
    return f"draft {parent + 1}, which it follows, was not kept, and after another token its odds are others"


def outcome(cycle: AuditedCycle, x: Position, rule: str) -> Iterator[str]:
    """What the cycle wrote after the draft, where that depends on it."""
    siblings, own = cycle.tree.children(cycle.tree.parents[x.node]), cycle.own
    if x.status == "rejected" and x.node != siblings[-1] and rule == REJECTION:
        yield "Then the next draft for the same place had its turn, against what p leaves of q."
    elif own is None:
        yield "The text ended inside the draft, so the target added no token of its own."
    elif x.status == "rejected":
        coin = rule in (REJECTION, BLOCK) and x.u is not None
        source = "from the residual, max(0, p − q) scaled to one" if coin else "from its own distribution"
        yield f"In its place the target drew a token {source}: {quoted(cycle.committed.pieces[-1])}."
    elif x.node == cycle.tip and not cycle.tree.children(x.node):
        yield f"Nothing was drafted after it, so the target added a bonus token: {quoted(cycle.committed.pieces[-1])}."
    accepted = cycle.committed.accepted
    yield f"In all, {accepted} of {count(len(cycle.positions), 'draft')} joined the text in this cycle."


def quoted(piece: str) -> str:
    """With its spaces and line breaks in sight, on one line."""
    return repr(piece[:MAX_SAID])


def count(n: int, what: str) -> str:
    return f"{n} {what}{'s' * (n != 1)}"
