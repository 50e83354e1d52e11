"""One cycle of a lane as the audit sees it: what was drafted, checked and committed, and whether these fit together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from ..events import Committed, Drafted, Event, Position, UNNAMED, Verified
from ..types import TranslatableText, Tree

MAX_SAID = 40  # characters of a name from the trace
NOTHING = TranslatableText("")


@dataclass(frozen=True)
class AuditedCycle:
    drafted: Drafted | None
    verified: Verified | None
    committed: Committed

    @property
    def number(self) -> int:
        return self.committed.cycle

    @property
    def positions(self) -> tuple[Position, ...]:
        return self.verified.positions if self.verified else ()

    @cached_property
    def tree(self) -> Tree:
        return Tree(self.drafted.parents if self.drafted else ())

    @cached_property
    def path(self) -> list[int]:
        return [node for node, position in enumerate(self.positions) if position.status == "accepted"]

    @property
    def tip(self) -> int:
        return max(self.path, default=-1)

    @cached_property
    def families(self) -> dict[int, list[int]]:
        """Children by parent."""
        families: dict[int, list[int]] = {}
        for node, parent in enumerate(self.tree.parents):
            families.setdefault(parent, []).append(node)
        return families

    @cached_property
    def next_sibling(self) -> dict[int, int]:
        return {a: b for nodes in self.families.values() for a, b in pairwise(nodes)}

    def children(self, node: int) -> list[int]:
        return self.families.get(node, [])

    @property
    def own(self) -> int | None:
        """The token that the target added; None if the text ended inside the draft."""
        return self.committed.tokens[-1] if len(self.committed.tokens) > self.committed.accepted else None

    def shown(self) -> Iterator[tuple[str, str, Position | None]]:
        """What people see of it, in order: each draft and then the target's own token, as piece, status, position.

        The status is "" where nothing was drafted. Drafts after the end of the text are left out.
        """
        left, whole = self.committed.accepted, self.own is not None
        for x in self.positions:
            left -= x.status == "accepted"
            if left < 0 or (left == 0 and not whole and x.status != "accepted"):
                break
            yield x.piece, x.status, x
        if whole:
            yield self.committed.pieces[-1], self.committed.kind if self.positions else "", None

    @cached_property
    def weights(self) -> list[float]:
        """Of the prefixes of a chain, the empty one first (`BlockVerification`)."""
        weights = [1.0]
        for position in self.positions:
            p, q = chances(position)
            weights.append(min(1.0, weights[-1] * p / q))
        return weights


def cycles(events: Iterable[Event], lane: str) -> Iterator[AuditedCycle]:
    """A lane's cycles in their order, the prefill first."""
    drafted: Drafted | None = None
    verified: Verified | None = None
    for event in events:
        if event.lane != lane:
            continue
        if isinstance(event, Drafted):
            drafted = event
        elif isinstance(event, Verified):
            verified = event
        elif isinstance(event, Committed):
            yield AuditedCycle(drafted, verified, event)
            drafted = verified = None


def chances(x: Position) -> tuple[float, float]:
    """p and q of a draft of our own engine, which tells them always (`shape.py`, `check_shape`)."""
    assert x.p is not None and x.q is not None, "only a server leaves them untold"
    return x.p, x.q


def is_unnamed(x: Position) -> bool:
    """Whether nobody told which token it was, neither its id nor its piece."""
    return x.token == UNNAMED and not x.piece


def named(x: Position) -> TranslatableText:
    return TranslatableText("draft {number} ({piece!r})", number=x.node + 1, piece=x.piece[:MAX_SAID])


def check_shape(cycle: AuditedCycle, server: bool = False) -> Iterator[TranslatableText]:
    """All of the draft was checked, one path of it was accepted, and that path and one token joined the text.

    A `server` need not tell p and q.
    """
    event, path, parents = cycle.committed, cycle.path, cycle.tree.parents
    tokens = cycle.drafted.tokens if cycle.drafted else ()
    if [(x.node, x.token) for x in cycle.positions] != list(enumerate(tokens)):
        yield TranslatableText("what was checked is not what was drafted")
        return
    for x in cycle.positions:
        p, q = (1.0 if server and chance is None else chance for chance in (x.p, x.q))
        if p is None or q is None:
            yield TranslatableText("{draft} lacks p or q", draft=named(x))
            return
        if not (0.0 <= p <= 1.0 + SLACK and 0.0 < q <= 1.0 + SLACK and 0.0 <= (x.u or 0.0) < 1.0):
            told = {"draft": named(x), "p": p, "q": q, "u": x.u}
            yield TranslatableText("{draft} has p = {p:.6g}, q = {q:.6g}, u = {u}: no probabilities", **told)
            return
    if [parents[node] for node in path] != [-1, *path][: len(path)]:
        yield TranslatableText("the accepted tokens are no path")
    elif event.tokens[: event.accepted] != tuple(tokens[node] for node in path[: event.accepted]):
        yield TranslatableText("other tokens joined the text than were accepted")
    if event.accepted != min(len(path), len(event.tokens)):
        told = {"accepted": len(path), "joined": event.accepted}
        yield TranslatableText(
            "{accepted} tokens were accepted, and {joined} of them are said to have joined the text", **told
        )
    if not 1 <= len(event.tokens) <= len(path) + 1:
        told = {"joined": len(event.tokens), "accepted": len(path)}
        yield TranslatableText(
            "{joined} tokens joined the text; after {accepted} accepted ones comes one of the target's", **told
        )
    if cycle.verified and (event.kind == "resampled") != bool(cycle.children(cycle.tip)):
        yield TranslatableText("the target's own token is called {kind}", kind=TranslatableText(event.kind))


SLACK = 2e-6  # probabilities are computed in float32
