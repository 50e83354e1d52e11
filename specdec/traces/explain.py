"""Explain one decision of a run in plain words: what was drafted, p, q and the coin, what became of it, and why.

Only what the trace holds is stated; whether it is right says the audit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..events import Position, Started
from ..types import Status
from .cycle import AuditedCycle, chances, contradiction, cycles, MAX_NAME, REJECTION
from .file import Trace


@dataclass(frozen=True)
class Decision:
    """A drafted token and what became of it. `cycle` and `position` count from 1; `said` is a paragraph.

    `p` and `q` are the probabilities in the test; `u` is None where no coin was tossed. What a server does not report
    is None, and its `rule` is "".
    """

    cycle: int
    position: int
    drafted: int
    token: str
    status: Status
    rule: str
    p: float | None
    q: float | None
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
    places = [(one, x) for one in chosen for x in one.positions if position in (0, x.node + 1)]
    if not places:
        raise ValueError(f"There is no draft {position}. Choose one from 1 to {len(chosen[0].positions)}.")
    one, x = next((place for place in places if place[1].status == "rejected"), places[0])
    server = started.server if started else ""
    if wrong := contradiction(one):
        raise ValueError(f"Cycle {one.number} of this trace contradicts itself: {wrong}.")
    place = (one.number, x.node + 1, len(one.positions), x.piece, x.status)
    if server:
        return Decision(*place, "", x.p, None, None, " ".join(by_server(x, server)))
    rule = (started and started.rule) or REJECTION
    p, q = chances(x)
    said = " ".join([*verdict(one, x, rule), *outcome(one, x)])
    return Decision(*place, rule, p, q, x.u, said)


def by_server(x: Position, server: str) -> Iterator[str]:
    """What a server reports of one draft: its fate, perhaps its token and p, and never the reason."""
    yield f"Draft {x.node + 1} is {quoted(x.piece) if x.piece else 'a token that it does not report'}."
    if x.p is not None:
        yield f"The target gave it p = {x.p:.4g}."
    yield f"It was {x.status}, says {server[:MAX_NAME]}, which reports neither q nor the coin."


def verdict(cycle: AuditedCycle, x: Position, rule: str) -> Iterator[str]:
    p, q = chances(x)
    yield f"Draft {x.node + 1} is {quoted(x.piece)}: the drafter gave it q = {q:.4g}, the target p = {p:.4g}."
    if x.status == "discarded":
        parent = cycle.tree.parents[x.node]
        why = "another draft for the same place was accepted" if parent in (-1, *cycle.path) else "of what comes before"
        yield f"It was discarded without being judged, because {why}."
    elif x.h is not None and x.u is not None:
        sign = "<" if x.u < x.h else "≥"
        yield f"It was {x.status}, because the coin fell on u = {x.u:.4g} {sign} h = {x.h:.4g}."
    elif x.u is not None:
        sign = "<" if x.u * q < p else "≥"
        yield f"The rule keeps it with chance min(1, p/q) = {min(1.0, p / q):.4g}."
        yield f"It was {x.status}, because the coin fell on u = {x.u:.4g}, and u·q = {x.u * q:.6g} {sign} p = {p:.6g}."
    else:
        yield f"It was {x.status} by {rule[:MAX_NAME]}, which tosses no coin for it."


def outcome(cycle: AuditedCycle, x: Position) -> Iterator[str]:
    """What the cycle wrote after the draft, where that depends on it."""
    children = cycle.tree.children(cycle.tip)
    if cycle.own is not None and children and x.node == children[-1]:
        source = "from the residual, max(0, p − q) scaled to one" if x.u is not None else "from its own distribution"
        yield f"In its place the target drew a token {source}: {quoted(cycle.committed.pieces[-1])}."
    elif cycle.own is not None and x.node == cycle.tip and not children:
        yield f"Nothing was drafted after it, so the target added a bonus token: {quoted(cycle.committed.pieces[-1])}."
    yield f"In all, {cycle.committed.accepted} of {len(cycle.positions)} drafts joined the text in this cycle."


def quoted(piece: str) -> str:
    """With its spaces and line breaks in sight, on one line."""
    return repr(piece[:MAX_NAME])
