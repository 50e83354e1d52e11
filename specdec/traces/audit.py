"""Audit a trace: recompute every decision and check every draw of a run from the recorded events.

The engine's own rules recompute the decisions (`replay.py`). The recorded probabilities are compared with the recorded
distributions, and the tokens with the text. A decision is unchecked if its numbers are missing, as in a server's trace.

A recorded distribution lists the likeliest tokens, and all tokens that the cycle drafted or drew. `rest` is the sum of
all other probabilities. A position's `target` and `draft` list the same tokens, but omit those of probability 0.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from ..events import Committed, Distribution, Event, Finished, Position, Started, UNNAMED, Verified
from ..messages import TranslatableText
from ..types import MAX_DRAFT_TOKENS
from .cycle import BLOCK_RULE, CycleEvents, cycles, is_lossless, lost_drafts, NOISE, REJECTION, RULE_LOSSLESS, start_of
from .file import printable

CLOCK_ROUNDING = 1e-6  # seconds; sums of a lane's times are rounded
MAX_NAME = 40  # messages quote at most this many characters of a name from a trace
NOT_IN_TEXT = re.compile("<.*>|\\[.*\\]", re.DOTALL)  # pieces that may not be in the text: bytes, control tokens
ROUNDING = 2e-6  # largest error of a recorded probability, computed in float32 and rounded to 7 decimals


def one_line(name: str) -> str:
    """Return a name from a trace as one line without control characters."""
    return printable(" ".join(name[:MAX_NAME].split()))


def draft_label(x: Position) -> TranslatableText:
    return TranslatableText("draft {number} ({piece!r})", number=x.node + 1, piece=x.piece[:MAX_NAME])


@dataclass(frozen=True)
class Fault:
    lane: str
    cycle: int
    reason: TranslatableText

    def __str__(self) -> TranslatableText:
        values = {"cycle": self.cycle, "lane": one_line(self.lane), "reason": self.reason}
        return TranslatableText("cycle {cycle} of the lane {lane}: {reason}", **values)


@dataclass
class LaneAudit:
    """The result for one lane. `lossless` is None if the rule is not one of ours, or if `lost_drafts` counts any."""

    lane: str
    rule: str = ""
    server: str = ""  # that computed the lane, if any
    lossless: bool | None = None
    cycles: int = 0
    tokens: int = 0
    decisions: int = 0
    draws: int = 0
    faults: list[Fault] = field(default_factory=list)
    unchecked: Counter[TranslatableText] = field(default_factory=Counter)  # what could not be checked -> how often

    def fault(self, cycle: int, reason: str, /, **values: Any) -> None:
        self.faults.append(Fault(self.lane, cycle, TranslatableText(reason, **values)))

    def not_reported(self, what: str, /, count: int = 1, **values: Any) -> None:
        if count:
            self.unchecked[TranslatableText(what, **values)] += count


def audit(lanes: Sequence[str], events: Iterable[Event]) -> list[LaneAudit]:
    """Audit the header's lanes in order, then all others. Raises ValueError for a draft that forms no tree."""
    by_lane: dict[str, list[Event]] = {lane: [] for lane in lanes}
    for event in (events := list(events)):
        by_lane.setdefault(event.lane, []).append(event)
    complete, audits = are_complete(events), list[LaneAudit]()
    for lane, lane_events in by_lane.items():
        audits.append(result := LaneAudit(lane))
        if lane not in lanes:
            result.fault(0, "the header names no such lane")
        if lane_events:
            audit_lane(result, lane_events, complete)
        else:
            result.not_reported("lanes of which the trace holds no event")
        result.faults.sort(key=lambda fault: fault.cycle)
    return audits


def faultless(audits: Iterable[LaneAudit]) -> bool:
    return not any(result.faults for result in audits)


def are_complete(events: Iterable[Event]) -> bool:
    """Whether distributions list every token that was drafted or drawn. Those of the first versions do not."""
    checks = [event for event in events if isinstance(event, Verified)]
    return any(event.bonus or any(x.target and x.target.sample for x in event.positions) for event in checks)


def audit_lane(result: LaneAudit, events: Sequence[Event], complete: bool) -> None:
    """Audit the events of one lane. `complete` comes from `are_complete`."""
    started = start_of(events, result.lane)
    if started:
        result.server = started.server
        # A server does not report its rule. The first traces lack theirs: it was always rejection sampling.
        result.rule = "" if result.server else started.rule or REJECTION
        result.lossless = is_lossless(events, result.lane) if result.rule in RULE_LOSSLESS else None
        if started.guided:
            result.not_reported("texts decoded under a grammar, which is not checked")
        if started.lossless != RULE_LOSSLESS.get(result.rule, started.lossless):
            result.fault(0, "the trace calls a lossy rule lossless, or a lossless one lossy")
        if result.rule in RULE_LOSSLESS and result.lossless is None:
            result.not_reported("drafts that were lost because the drafter failed", lost_drafts(events, result.lane))
        if not 0 <= started.k <= MAX_DRAFT_TOKENS:
            result.fault(0, "K must lie between 0 and {limit}, not {k}", limit=MAX_DRAFT_TOKENS, k=started.k)
    times = [getattr(event, name) for event in events for name in ("start", "end", "at") if hasattr(event, name)]
    if any(later < earlier - CLOCK_ROUNDING for earlier, later in pairwise([0.0, *times])):
        result.fault(0, "the times of the lane run backwards")
    committed = list[Committed]()
    for expected, cycle in enumerate(cycles(events, result.lane)):
        number, event = cycle.committed.cycle, cycle.committed
        committed.append(event)
        if number != expected:
            result.fault(number, "cycle {number} was expected here", number=expected)
        result.cycles, result.tokens = number + 1, result.tokens + len(event.tokens)
        if event.total != result.tokens:
            result.fault(number, "the text has {total} tokens, not {other}", total=result.tokens, other=event.total)
        contradicted = contradiction(cycle)
        for reason in [contradicted] if contradicted else check_cycle(result, cycle, started, complete):
            result.faults.append(Fault(result.lane, number, reason))
    check_lane_text(result, committed, started, next((event for event in events if isinstance(event, Finished)), None))


def check_cycle(
    result: LaneAudit, cycle: CycleEvents, started: Started | None, complete: bool
) -> Iterator[TranslatableText]:
    if started and not result.server and cycle.tree.max_depth > started.k:
        yield TranslatableText("the draft is deeper than K = {k}", k=started.k)
    if result.server:
        judged = sum(x.status != "discarded" for x in cycle.positions)
        added = cycle.target_token is not None
        unnamed = sum(x.token == UNNAMED and not x.piece for x in cycle.positions)
        result.not_reported("drafts whose token the server does not report", unnamed)
        result.not_reported("decisions whose q and coin the server does not report", judged)
        result.not_reported("draws whose whole distribution the server does not report", added)
        return
    if complete or not cycle.positions:
        yield from check_distributions(cycle, result.rule if result.rule in RULE_LOSSLESS else "")
    yield from check_decisions(result, cycle)
    yield from check_draw(result, cycle, complete)


def check_decisions(result: LaneAudit, cycle: CycleEvents) -> Iterator[TranslatableText]:
    if not cycle.positions:
        return
    from .replay import replay_statuses  # imported late: it imports torch, which the page does not have

    statuses, rule = replay_statuses(cycle, result.rule), result.rule[:MAX_NAME]
    if statuses is None:
        result.not_reported("decisions by the rule {rule!r}", len(cycle.positions), rule=rule)
        return
    result.not_reported("decisions whose coin or distribution the trace does not hold", statuses.count(None))
    for x, status in zip(cycle.positions, statuses, strict=True):
        result.decisions += status in ("accepted", "rejected")
        if status not in (None, x.status):
            values = {"draft": draft_label(x), "status": TranslatableText(x.status), "other": TranslatableText(status)}
            yield TranslatableText("{draft} is recorded as {status}, but by its rule it is {other}", **values)
            return  # later decisions may differ because of this one


def check_draw(result: LaneAudit, cycle: CycleEvents, complete: bool) -> Iterator[TranslatableText]:
    target_token, verified, children = cycle.target_token, cycle.verified, cycle.tree.children(cycle.tip)
    if target_token is None:
        return
    distribution = verified.distribution if verified else None
    listed = distribution is not None and target_token in masses(distribution)
    if distribution is None or not (listed or complete or distribution.rest <= ROUNDING):
        result.not_reported("draws whose distribution the trace does not hold")
        return
    result.draws += 1
    bonus = verified.bonus if verified and len(cycle.path) == len(cycle.positions) else None
    row = cycle.positions[children[0]].target if children else bonus
    drawn = row.sample.token if row and row.sample and result.rule == NOISE else target_token
    if not listed or target_token != drawn:
        piece = cycle.committed.pieces[-1][:MAX_NAME]
        yield TranslatableText("the target's own token {piece!r} is not the token drawn there", piece=piece)


def check_lane_text(
    result: LaneAudit, committed: Sequence[Committed], started: Started | None, finished: Finished | None
) -> None:
    last, pieces = max(0, result.cycles - 1), [piece for event in committed for piece in event.pieces]
    end = pieces.pop() if pieces and finished and finished.reason == "end" else ""  # it may not be in the text
    if not (started and started.params.stop) and not any(map(NOT_IN_TEXT.fullmatch, pieces)):
        for event in committed:
            text = "".join(event.pieces)
            if event.text != text and (event is not committed[-1] or event.text + end != text):
                result.fault(event.cycle, "the text differs from the text of the tokens")
    count = finished.tokens if finished else result.tokens
    if count != result.tokens or (started and result.tokens > started.params.max_tokens):
        result.fault(last, "the lane's final number of tokens is not that of its cycles, or exceeds max_tokens")
    if finished is None:
        result.not_reported("lanes whose end the trace does not hold")
        return
    if finished.reason != "failed" and finished.text != "".join(event.text for event in committed):
        result.fault(last, "the lane's final text differs from the text of its cycles")


def contradiction(cycle: CycleEvents) -> TranslatableText | None:
    """Return how the events of a cycle contradict each other, None if they do not."""
    event, path, tokens = cycle.committed, cycle.path, cycle.drafted.tokens if cycle.drafted else ()
    if [(x.node, x.token) for x in cycle.positions] != list(enumerate(tokens)):
        return TranslatableText("the verified tokens are not the drafted tokens")
    for x in cycle.positions:
        p, q = (1.0 if value is None else value for value in (x.p, x.q))  # only a server's lane has None
        if not (0.0 <= p <= 1.0 + ROUNDING and 0.0 < q <= 1.0 + ROUNDING and 0.0 <= (x.u or 0.0) < 1.0):
            return TranslatableText("p, q or u of {draft} is no probability", draft=draft_label(x))
    if [cycle.tree.parents[node] for node in path] != [-1, *path][: len(path)]:
        return TranslatableText("the accepted tokens do not form a path")
    # The path and one token of the target have to be committed, or as much of the path as ends the text.
    accepted = tuple(tokens[node] for node in path)
    target_tokens = len(event.tokens) - event.accepted
    if event.tokens[: event.accepted] != accepted[: event.accepted] or not (
        (target_tokens == 1 and event.accepted == len(path)) or target_tokens == 0 < event.accepted <= len(path)
    ):
        return TranslatableText("the committed tokens are not the accepted tokens and one token of the target")
    if cycle.verified and (event.kind == "resampled") != bool(cycle.tree.children(cycle.tip)):
        return TranslatableText("the target's own token is wrongly called {kind}", kind=TranslatableText(event.kind))
    return None


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


def residual_mass(cycle: CycleEvents, x: Position) -> float | None:
    """Return the residual's mass m = Σ max(0, w p - q) at `x`; None if the trace lacks it."""
    weight = cycle.weight_before(x)  # of the prefix before x; if it is empty, w = 1
    if weight == 1.0:
        return None if x.overlap is None else 1.0 - x.overlap
    h = cycle.positions[x.node - 1].h
    return None if h is None or h >= 1.0 else h * (1.0 - weight) / (1.0 - h)  # from h = m / (m + 1 - w)


def is_residual(residual: Distribution, cycle: CycleEvents, x: Position) -> bool:
    """Return whether `residual` is max(0, w p - q) at `x`, normalised, or p if that sums to nearly 0."""
    if x.target is None or x.draft is None:
        return True
    weight, p, q = cycle.weight_before(x), masses(x.target), masses(x.draft)
    expected = {token: max(0.0, weight * p.get(token, 0.0) - q.get(token, 0.0)) for token in p.keys() | q.keys()}
    rest = weight * x.target.rest + 4 * ROUNDING  # the most that the tokens without an entry can add to the mass
    least, most = sum(expected.values()) - 4 * ROUNDING, sum(expected.values()) + rest
    if (mass := residual_mass(cycle, x)) is not None:
        if not least <= mass <= most:
            return False
        least = most = mass
    if least <= 2 * ROUNDING and agree(residual, x.target):
        return True
    for token, prob in masses(residual).items():
        largest = expected[token] + 4 * ROUNDING if token in expected else rest
        if prob * least > largest or prob * most < expected.get(token, 0.0) - 4 * ROUNDING:
            return False
    return True


def check_distributions(cycle: CycleEvents, rule: str) -> Iterator[TranslatableText]:
    """Check that each distribution sums to 1, and that p, q, the last h and the residuals follow from them."""
    for x in cycle.positions:
        is_last = x is cycle.positions[-1]
        after_draft = cycle.verified.bonus if cycle.verified and is_last else None
        if not all(sums_to_one(row) for row in (x.target, x.draft, x.residual, after_draft) if row):
            yield TranslatableText("a distribution of {draft} does not sum to 1", draft=draft_label(x))
            return
        for name, value, row in (("p", x.p, x.target), ("q", x.q, x.draft)):
            if row and value is not None and abs(value - masses(row).get(x.token, 0.0)) > 2 * ROUNDING:
                yield wrong_value(name, value, x)
        if x.h is not None and is_last and abs(x.h - cycle.weights[-1]) > 2 * ROUNDING:
            yield wrong_value("h", x.h, x)
        later_siblings = [node for node in cycle.tree.children(cycle.tree.parents[x.node]) if node > x.node]
        # In a tree, the next sibling is tried against the residual after x was rejected.
        next_row = cycle.positions[later_siblings[0]].target if later_siblings and x.u is not None else None
        if not all(is_residual(residual, cycle, x) for residual in (x.residual, next_row) if residual):
            yield TranslatableText("the residual of {draft} does not follow from p and q", draft=draft_label(x))
    yield from check_own_token(cycle, rule)


def wrong_value(name: str, value: float, x: Position) -> TranslatableText:
    values = {"name": name, "value": value, "draft": draft_label(x)}
    return TranslatableText("{name} = {value:.6g} of {draft} does not follow from its distributions", **values)


def check_own_token(cycle: CycleEvents, rule: str) -> Iterator[TranslatableText]:
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
    holds = agree(distribution, row)
    last = rejected[-1] if rejected and rule in (REJECTION, BLOCK_RULE) else None
    # Without a coin, the draw may also come from p: transformers judges prompt lookup in this way.
    if last and (last.u is not None or not holds):
        holds = is_residual(distribution, cycle, last)
    if not holds:
        yield TranslatableText("the target's own token was drawn from another distribution than the verdict requires")
