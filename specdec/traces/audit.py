"""Check a trace against itself: compute every decision and every draw of a run again from its events.

Decisions are computed by the engine's own rules (`replay.py`); their numbers are compared with the distributions
(`distributions.py`) and the text. What a trace does not hold, because it is older, lighter or
cut, counts as unchecked and never as good; so do the decisions of a server, which reports neither q nor coin.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..events import Event, Finished, Started, Verified
from ..types import TranslatableText
from .cycle import (
    AuditedCycle,
    BLOCK,
    contradiction,
    cycles,
    is_unnamed,
    label,
    MATCH,
    MAX_NAME,
    NOISE,
    REJECTION,
    ROUNDING,
    TYPICAL,
)
from .distributions import check_distributions, masses

LOSSLESS = {REJECTION: True, MATCH: True, NOISE: True, BLOCK: True, TYPICAL: False}  # by rule
UNWRITTEN = re.compile("<.*>|\\[.*\\]", re.DOTALL)  # a byte of a character or a control token: not the text itself


def shown(name: str) -> str:
    """A name from a trace, on one line and without control characters."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name[:MAX_NAME])


@dataclass(frozen=True)
class Fault:
    """Where a trace contradicts itself, and how."""

    lane: str
    cycle: int
    reason: TranslatableText

    def __str__(self) -> TranslatableText:
        values = {"cycle": self.cycle, "lane": shown(self.lane), "reason": self.reason}
        return TranslatableText("cycle {cycle} of the lane {lane}: {reason}", **values)


@dataclass
class LaneAudit:
    """The result for one lane: how much was computed again, the faults, and what could not be checked.

    `lossless` is None if the rule is not one of ours. `server` names the server of a lane that was watched from
    outside. `unchecked` counts what the trace does not hold, by its name.
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
    """Audit each lane, in the header's order, then lanes that the header does not name.

    `events` are those of a trace that was opened, or of an engine: ValueError where a draft is no tree (`shape.py`).
    """
    by_lane: dict[str, list[Event]] = {lane: [] for lane in lanes}
    for event in (events := list(events)):
        by_lane.setdefault(event.lane, []).append(event)
    complete, accounts = are_complete(events), list[LaneAudit]()
    for lane, own in by_lane.items():
        accounts.append(account := LaneAudit(lane))
        if lane not in lanes:
            account.fault(0, "the header names no such lane")
        if own:
            Auditor(account, own, complete).run()
        else:
            account.not_reported("lanes of which the trace holds nothing")
        account.faults.sort(key=lambda fault: fault.cycle)
    return accounts


def holds(accounts: Iterable[LaneAudit]) -> bool:
    return not any(account.faults for account in accounts)


def are_complete(events: Iterable[Event]) -> bool:
    """Whether distributions list every token that was drafted or drawn. The first versions listed the likeliest only;
    they wrote neither examples nor the row after a chain.
    """
    checks = [event for event in events if isinstance(event, Verified)]
    return any(event.bonus or any(x.target and x.target.sample for x in event.positions) for event in checks)


class Auditor:
    """Audits one lane and fills in its account. `complete`: distributions list every token that was drawn."""

    def __init__(self, account: LaneAudit, events: Sequence[Event], complete: bool) -> None:
        self.account, self.complete = account, complete
        self.started = next((event for event in events if isinstance(event, Started)), None)
        self.finished = next((event for event in events if isinstance(event, Finished)), None)
        self.cycles = list(cycles(events, account.lane))
        if self.started:
            account.server = self.started.server
            # A server does not report its rule. The first traces, all by rejection sampling, did not name it.
            account.rule = "" if account.server else self.started.rule or REJECTION
            account.lossless = self.started.lossless if account.rule in LOSSLESS else None
            if self.started.guided:
                account.not_reported("texts under a grammar, which is no longer checked")

    def run(self) -> None:
        account = self.account
        if account.lossless not in (None, LOSSLESS.get(account.rule)):
            account.fault(0, "the trace calls a lossy rule lossless, or a lossless one lossy")
        for turn, cycle in enumerate(self.cycles):
            number, event = cycle.number, cycle.committed
            if number != turn:
                account.fault(number, "it is the turn of cycle {number}", number=turn)
            account.cycles, account.tokens = number + 1, account.tokens + len(event.tokens)
            if event.total != account.tokens:
                account.fault(
                    number, "the text has {total} tokens, not {other}", total=account.tokens, other=event.total
                )
            wrong = contradiction(cycle)
            for reason in [wrong] if wrong else self.check(cycle):
                account.fault(number, reason)
        self.check_text()

    def check(self, cycle: AuditedCycle) -> Iterator[TranslatableText]:
        account = self.account
        if account.server:
            judged = sum(x.status != "discarded" for x in cycle.positions)
            unnamed = sum(map(is_unnamed, cycle.positions))
            account.not_reported("drafts whose token the server does not report", unnamed)
            account.not_reported("decisions whose q and coin the server does not report", judged)
            account.not_reported("draws whose whole distribution the server does not report", cycle.own is not None)
            return
        if self.complete or not cycle.positions:
            yield from check_distributions(cycle, account.rule if account.rule in LOSSLESS else "")
        yield from self.check_decisions(cycle)
        yield from self.check_draw(cycle)

    def check_decisions(self, cycle: AuditedCycle) -> Iterator[TranslatableText]:
        if not cycle.positions:
            return
        from .replay import judged  # here, since it imports torch, and a page that only plays traces needs none

        statuses, rule = judged(cycle, self.account.rule), self.account.rule[:MAX_NAME]
        if statuses is None:
            self.account.not_reported("decisions by the rule {rule!r}", len(cycle.positions), rule=rule)
            return
        what = "decisions whose coin or distribution the trace does not hold"
        self.account.not_reported(what, statuses.count(None))
        for x, status in zip(cycle.positions, statuses, strict=True):
            self.account.decisions += status in ("accepted", "rejected")
            if status not in (None, x.status):
                values = {"draft": label(x), "status": TranslatableText(x.status), "other": TranslatableText(status)}
                yield TranslatableText("{draft} was {status}, and its rule makes it {other}", **values)
                return  # later errors follow from it

    def check_draw(self, cycle: AuditedCycle) -> Iterator[TranslatableText]:
        own, verified, children = cycle.own, cycle.verified, cycle.tree.children(cycle.tip)
        if own is None:
            return
        distribution = verified.distribution if verified else None
        listed = distribution is not None and own in masses(distribution)
        if distribution is None or not (listed or self.complete or distribution.rest <= ROUNDING):
            self.account.not_reported("draws whose distribution the trace does not hold")
            return
        self.account.draws += 1
        bonus = verified.bonus if verified and len(cycle.path) == len(cycle.positions) else None
        row = cycle.positions[children[0]].target if children else bonus
        drawn = row.sample.token if row and row.sample and self.account.rule == NOISE else own
        if not listed or own != drawn:
            piece = cycle.committed.pieces[-1][:MAX_NAME]
            yield TranslatableText("the target added {piece!r}, which was not drawn there", piece=piece)

    def check_text(self) -> None:
        account, finished, started = self.account, self.finished, self.started
        committed, last = [cycle.committed for cycle in self.cycles], max(0, account.cycles - 1)
        pieces = [piece for event in committed for piece in event.pieces]
        if not (started and started.params.stop) and not any(map(UNWRITTEN.fullmatch, pieces)):
            for event in committed:
                if event.text != "".join(event.pieces):
                    account.fault(event.cycle, "the text is not that of the tokens")
        if finished is None:
            account.not_reported("lanes whose end the trace does not hold")
            return
        if finished.reason != "failed" and finished.text != "".join(event.text for event in committed):
            account.fault(last, "the lane ends with another text than its cycles wrote")
        if finished.tokens != account.tokens or (started and account.tokens > started.params.max_tokens):
            account.fault(last, "the lane ends with another number of tokens than joined the text, or with too many")
