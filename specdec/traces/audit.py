"""Audit a trace: recompute every decision and check every draw of a run from the recorded events.

The engine's own rules recompute the decisions (`replay.py`). The recorded probabilities are compared with the recorded
distributions (`distributions.py`), and the tokens with the text. A decision is unchecked if its numbers are missing, as
in a server's trace.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from ..events import Event, Finished, Started, UNNAMED, Verified
from ..messages import TranslatableText
from ..types import MAX_DRAFT_TOKENS
from .cycle import (
    AuditedCycle,
    contradiction,
    cycles,
    is_lossless,
    label,
    LOSSLESS,
    lost_drafts,
    MAX_NAME,
    NOISE,
    REJECTION,
    ROUNDING,
)
from .distributions import check_distributions, masses
from .drawn import printable

CLOCK_ROUNDING = 1e-6  # seconds; sums of a lane's times are rounded
NOT_IN_TEXT = re.compile("<.*>|\\[.*\\]", re.DOTALL)  # pieces that may not be in the text: bytes, control tokens


def shown(name: str) -> str:
    """Return a name from a trace as one line without control characters."""
    return printable(" ".join(name[:MAX_NAME].split()))


@dataclass(frozen=True)
class Fault:
    lane: str
    cycle: int
    reason: TranslatableText

    def __str__(self) -> TranslatableText:
        values = {"cycle": self.cycle, "lane": shown(self.lane), "reason": self.reason}
        return TranslatableText("cycle {cycle} of the lane {lane}: {reason}", **values)


@dataclass
class LaneAudit:
    """The result for one lane: how much was recomputed, the faults, and what could not be checked.

    `lossless` is None if the rule is not one of ours, or if drafts were lost (`lost_drafts`).
    `server` names the server that computed the lane, if any.
    `unchecked` counts the items that could not be checked, by their description.
    """

    lane: str
    rule: str = ""
    server: str = ""
    lossless: bool | None = None
    cycles: int = 0
    tokens: int = 0
    decisions: int = 0
    draws: int = 0
    faults: list[Fault] = field(default_factory=list)
    unchecked: Counter[TranslatableText] = field(default_factory=Counter)

    def fault(self, cycle: int, reason: str, /, **values: Any) -> None:
        reason = reason if isinstance(reason, TranslatableText) else TranslatableText(reason, **values)
        self.faults.append(Fault(self.lane, cycle, reason))

    def not_reported(self, what: str, /, count: int = 1, **values: Any) -> None:
        if count:
            self.unchecked[TranslatableText(what, **values)] += count


def audit(lanes: Sequence[str], events: Iterable[Event]) -> list[LaneAudit]:
    """Audit the lanes in the header's order, then lanes that the header does not name.

    `events` come from `Trace.load`, which has checked them, or from the engine. Raises ValueError if the `parents` of
    a cycle's draft form no tree.
    """
    by_lane: dict[str, list[Event]] = {lane: [] for lane in lanes}
    for event in (events := list(events)):
        by_lane.setdefault(event.lane, []).append(event)
    complete, audits = are_complete(events), list[LaneAudit]()
    for lane, lane_events in by_lane.items():
        audits.append(result := LaneAudit(lane))
        if lane not in lanes:
            result.fault(0, "the header names no such lane")
        if lane_events:
            Auditor(result, lane_events, complete).run()
        else:
            result.not_reported("lanes of which the trace holds no event")
        result.faults.sort(key=lambda fault: fault.cycle)
    return audits


def faultless(audits: Iterable[LaneAudit]) -> bool:
    return not any(result.faults for result in audits)


def are_complete(events: Iterable[Event]) -> bool:
    """Whether distributions list every token that was drafted or drawn.

    Traces of the first versions list only the likeliest tokens, and have neither samples nor `Verified.bonus`.
    """
    checks = [event for event in events if isinstance(event, Verified)]
    return any(event.bonus or any(x.target and x.target.sample for x in event.positions) for event in checks)


class Auditor:
    """Audits one lane and fills in `result`. `complete` comes from `are_complete`."""

    def __init__(self, result: LaneAudit, events: Sequence[Event], complete: bool) -> None:
        self.result, self.complete = result, complete
        self.started = next((event for event in events if isinstance(event, Started)), None)
        self.finished = next((event for event in events if isinstance(event, Finished)), None)
        self.cycles = list(cycles(events, result.lane))
        moments = ("start", "end", "at")
        self.times = [getattr(event, name) for event in events for name in moments if hasattr(event, name)]
        self.lost = lost_drafts(events, result.lane)
        if self.started:
            result.server = self.started.server
            # A server does not report its rule. The first traces lack theirs: it was always rejection sampling.
            result.rule = "" if result.server else self.started.rule or REJECTION
            result.lossless = is_lossless(events, result.lane) if result.rule in LOSSLESS else None
            if self.started.guided:
                result.not_reported("texts decoded under a grammar, which is not checked")

    def run(self) -> None:
        result = self.result
        if self.started and self.started.lossless != LOSSLESS.get(result.rule, self.started.lossless):
            result.fault(0, "the trace calls a lossy rule lossless, or a lossless one lossy")
        if result.rule in LOSSLESS and result.lossless is None:
            result.not_reported("drafts that were lost because the drafter failed", self.lost)
        if self.started and not 0 <= self.started.k <= MAX_DRAFT_TOKENS:
            result.fault(0, "K must lie between 0 and {limit}, not {k}", limit=MAX_DRAFT_TOKENS, k=self.started.k)
        if any(later < earlier - CLOCK_ROUNDING for earlier, later in pairwise([0.0, *self.times])):
            result.fault(0, "the times of the lane run backwards")
        for expected, cycle in enumerate(self.cycles):
            number, event = cycle.number, cycle.committed
            if number != expected:
                result.fault(number, "cycle {number} was expected here", number=expected)
            result.cycles, result.tokens = number + 1, result.tokens + len(event.tokens)
            if event.total != result.tokens:
                result.fault(number, "the text has {total} tokens, not {other}", total=result.tokens, other=event.total)
            contradicted = contradiction(cycle)
            for reason in [contradicted] if contradicted else self.check(cycle):
                result.fault(number, reason)
        self.check_text()

    def check(self, cycle: AuditedCycle) -> Iterator[TranslatableText]:
        result = self.result
        if self.started and not result.server and cycle.tree.parents and max(cycle.tree.depths()) > self.started.k:
            yield TranslatableText("the draft is deeper than K = {k}", k=self.started.k)
        if result.server:
            judged = sum(x.status != "discarded" for x in cycle.positions)
            added = cycle.target_token is not None
            unnamed = sum(x.token == UNNAMED and not x.piece for x in cycle.positions)
            result.not_reported("drafts whose token the server does not report", unnamed)
            result.not_reported("decisions whose q and coin the server does not report", judged)
            result.not_reported("draws whose whole distribution the server does not report", added)
            return
        if self.complete or not cycle.positions:
            yield from check_distributions(cycle, result.rule if result.rule in LOSSLESS else "")
        yield from self.check_decisions(cycle)
        yield from self.check_draw(cycle)

    def check_decisions(self, cycle: AuditedCycle) -> Iterator[TranslatableText]:
        if not cycle.positions:
            return
        from .replay import replay_statuses  # imported late: it imports torch, which the page does not have

        statuses, rule = replay_statuses(cycle, self.result.rule), self.result.rule[:MAX_NAME]
        if statuses is None:
            self.result.not_reported("decisions by the rule {rule!r}", len(cycle.positions), rule=rule)
            return
        what = "decisions whose coin or distribution the trace does not hold"
        self.result.not_reported(what, statuses.count(None))
        for x, status in zip(cycle.positions, statuses, strict=True):
            self.result.decisions += status in ("accepted", "rejected")
            if status not in (None, x.status):
                values = {"draft": label(x), "status": TranslatableText(x.status), "other": TranslatableText(status)}
                yield TranslatableText("{draft} is recorded as {status}, but by its rule it is {other}", **values)
                return  # later decisions may differ because of this one

    def check_draw(self, cycle: AuditedCycle) -> Iterator[TranslatableText]:
        target_token, verified, children = cycle.target_token, cycle.verified, cycle.tree.children(cycle.tip)
        if target_token is None:
            return
        distribution = verified.distribution if verified else None
        listed = distribution is not None and target_token in masses(distribution)
        if distribution is None or not (listed or self.complete or distribution.rest <= ROUNDING):
            self.result.not_reported("draws whose distribution the trace does not hold")
            return
        self.result.draws += 1
        bonus = verified.bonus if verified and len(cycle.path) == len(cycle.positions) else None
        row = cycle.positions[children[0]].target if children else bonus
        drawn = row.sample.token if row and row.sample and self.result.rule == NOISE else target_token
        if not listed or target_token != drawn:
            piece = cycle.committed.pieces[-1][:MAX_NAME]
            yield TranslatableText("the target's own token {piece!r} is not the token drawn there", piece=piece)

    def check_text(self) -> None:
        result, finished, started = self.result, self.finished, self.started
        committed, last = [cycle.committed for cycle in self.cycles], max(0, result.cycles - 1)
        pieces = [piece for event in committed for piece in event.pieces]
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
