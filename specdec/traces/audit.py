"""Is a trace true to itself? Every decision and every draw of a run, computed again from its events.

A decision is computed exactly, by the engine's own rules (`replay.py`); what depends on a distribution is held against
bounds (`distributions.py`). Settings, text and seed must fit what was done. What a trace does not hold, because it is
older, lighter or cut, is counted as unchecked and never as good; so are a server's decisions, without q and coin.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Any

from ..events import Committed, Event, Failed, Finished, Started, Verified
from ..types import TranslatableText
from .cycle import (
    AuditedCycle,
    BLOCK,
    contradiction,
    cycles,
    is_unnamed,
    MATCH,
    MAX_SAID,
    named,
    NOISE,
    REJECTION,
    ROUNDING,
    TYPICAL,
)
from .distributions import check_distributions, masses
from .pieces import Pieces, Text

LOSSLESS = {REJECTION: True, MATCH: True, NOISE: True, BLOCK: True, TYPICAL: False}  # by rule
ORDER = re.compile("S(f*D?V?C)*f*D?V?f*F?")  # of events by their first letters; f: Failed
CLOCK_S = 1e-9
SUM_S = 1e-6  # of many times
SPARE_NUMBERS = 64  # that a run may have drawn beyond three a drafted token and eight a cycle


def shown(name: str) -> str:
    """A name from a trace, on one line and without control characters."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name[:MAX_SAID])


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
    """What was done again of one lane. `unchecked` counts by name what the trace does not hold.

    `lossless` is None where the rule is not known; `coins` is how many were found to come from the seed. `server` is
    whose lane it is, if it was watched from outside.
    """

    lane: str
    rule: str = ""
    server: str = ""
    lossless: bool | None = None
    cycles: int = 0
    tokens: int = 0
    decisions: int = 0
    draws: int = 0
    coins: int = 0
    faults: list[Fault] = field(default_factory=list)
    unchecked: Counter[TranslatableText] = field(default_factory=Counter)

    def fault(self, cycle: int, reason: str, /, **values: Any) -> None:
        reason = reason if isinstance(reason, TranslatableText) else TranslatableText(reason, **values)
        self.faults.append(Fault(self.lane, cycle, reason))

    def not_reported(self, what: str, /, count: int = 1, **values: Any) -> None:
        if count:
            self.unchecked[TranslatableText(what, **values)] += count


def audit(lanes: Sequence[str], events: Iterable[Event]) -> list[LaneAudit]:
    """One account a lane, in the header's order, and after them lanes that the header does not name.

    `events` are those of a trace that was read, or of an engine: ValueError where a draft is no tree (`shape.py`).
    """
    by_lane: dict[str, list[Event]] = {lane: [] for lane in lanes}
    for event in (events := list(events)):
        by_lane.setdefault(event.lane, []).append(event)
    pieces, lists, accounts = Pieces(events), lists_what_was_chosen(events), list[LaneAudit]()
    starts = {event.lane: event for event in reversed(events) if isinstance(event, Started)}
    settings = [(event.params, event.prompt_tokens) for event in events if isinstance(event, Started)]
    for lane, own in by_lane.items():
        accounts.append(account := LaneAudit(lane))
        if lane not in lanes:
            account.fault(0, "the header names no such lane")
        if lane in starts and settings[0] != (starts[lane].params, starts[lane].prompt_tokens):
            account.fault(0, "this lane was started with other settings than the first")
        if own:
            Auditor(account, starts.get(lane), pieces, lists).run(own)
        else:
            account.not_reported("lanes of which the trace holds nothing")
        account.faults.sort(key=lambda fault: fault.cycle)
    return accounts


def holds(accounts: Iterable[LaneAudit]) -> bool:
    return not any(account.faults for account in accounts)


def lists_what_was_chosen(events: Iterable[Event]) -> bool:
    """Whether distributions list what was drafted and drawn, however unlikely. The first versions listed the likeliest
    only; they wrote neither examples nor the row after a chain.
    """
    checks = [event for event in events if isinstance(event, Verified)]
    return any(event.bonus or any(x.target and x.target.sample for x in event.positions) for event in checks)


class Auditor:
    """Of one lane; writes its account."""

    def __init__(self, account: LaneAudit, started: Started | None, pieces: Pieces, lists: bool) -> None:
        self.account, self.started, self.pieces, self.lists = account, started, pieces, lists
        account.server, self.guided = (started.server, started.guided) if started else ("", False)
        if started and not started.server:  # which does not report its rule
            account.rule = started.rule or REJECTION  # older versions knew no other, and did not name it
            account.lossless = started.lossless if account.rule in LOSSLESS else None
        if self.guided:
            account.not_reported("texts under a grammar, which is no longer checked")

    def run(self, events: list[Event]) -> None:
        account, started, text = self.account, self.started, Text()
        if account.lossless not in (None, LOSSLESS.get(account.rule)):
            account.fault(0, "the trace calls a lossy rule lossless, or a lossless one lossy")
        self.check_order(events)
        at = ended = 0.0
        finished = next((event for event in events if isinstance(event, Finished)), None)
        joined = finished is not None and finished.counted == "totals"  # several cycles of a server became one
        every = list(cycles(events, account.lane))
        for cycle in every:
            number, event = cycle.number, cycle.committed
            if ended:
                account.fault(number, "the text had ended in the cycle before")
            account.cycles, account.tokens = number + 1, account.tokens + len(event.tokens)
            text.cycles.append(event)
            if event.total != account.tokens:
                account.fault(number, "the text has {total} tokens, not {told}", total=account.tokens, told=event.total)
            if any(later < earlier - CLOCK_S for earlier, later in pairwise([at, *times(cycle)])):
                account.fault(number, "the clock runs backwards")
            wrong = contradiction(cycle, bool(account.server))
            for reason in [wrong] if wrong else self.check(cycle, joined):
                account.fault(number, reason)
            at, ended = event.at, len(event.tokens) <= len(cycle.path)
        if finished is None:
            account.not_reported("lanes whose end the trace does not hold")
        else:
            for reason in self.check_end(finished, text, every):
                account.fault(max(0, account.cycles - 1), reason)
        whole = finished is not None and finished.reason != "failed"
        if (first := text.first_wrong(bool(started and started.params.stop), whole)) is not None:
            account.fault(first, "the text is not that of the tokens")
        if started:
            self.check_coins(started.params.seed, every)

    def check_order(self, events: list[Event]) -> None:
        turn, kinds = 0, ""
        for event in events:
            kinds += "f" if isinstance(event, Failed) else type(event).__name__[0]
            if not isinstance(event, Failed) and (number := getattr(event, "cycle", turn)) != turn:
                self.account.fault(number, "it is the turn of cycle {number}", number=turn)
                turn = number
            turn += isinstance(event, Committed)
        if not ORDER.fullmatch(kinds):
            self.account.fault(turn, "the lane's events are not in the order of a run")

    def check(self, cycle: AuditedCycle, joined: bool) -> Iterator[TranslatableText]:
        account, started = self.account, self.started
        if started and not (joined or (account.server and not started.k)):
            yield from check_depth(started, cycle)
        yield from self.pieces.check(cycle)
        if account.server:
            judged = sum(x.status != "discarded" for x in cycle.positions)
            unnamed = sum(map(is_unnamed, cycle.positions))
            account.not_reported("drafts whose token the server does not report", unnamed)
            account.not_reported("decisions whose q and coin the server does not report", judged)
            account.not_reported("draws whose whole distribution the server does not report", cycle.own is not None)
            return
        if started:
            yield from check_filters(started, cycle)
        if self.lists or not cycle.positions:
            yield from check_distributions(cycle, account.rule if account.rule in LOSSLESS else "")
        yield from self.check_decisions(cycle)
        yield from self.check_draw(cycle)

    def check_decisions(self, cycle: AuditedCycle) -> Iterator[TranslatableText]:
        if not cycle.positions:
            return
        from .replay import judged  # and with it torch, which a page that only plays traces does without

        statuses, rule = judged(cycle, self.account.rule), self.account.rule[:MAX_SAID]
        if statuses is None:
            self.account.not_reported("decisions by the rule {rule!r}", len(cycle.positions), rule=rule)
            return
        what = "decisions whose coin or distribution the trace does not hold"
        self.account.not_reported(what, statuses.count(None))
        for x, status in zip(cycle.positions, statuses, strict=True):
            self.account.decisions += status in ("accepted", "rejected")
            if status not in (None, x.status):
                values = {"draft": named(x), "status": TranslatableText(x.status), "other": TranslatableText(status)}
                yield TranslatableText("{draft} was {status}, and its rule makes it {other}", **values)
                return  # later errors follow from it

    def check_draw(self, cycle: AuditedCycle) -> Iterator[TranslatableText]:
        own, verified, children = cycle.own, cycle.verified, cycle.tree.children(cycle.tip)
        if own is None:
            return
        distribution = verified.distribution if verified else None
        listed = distribution is not None and own in masses(distribution)
        if distribution is None or not (listed or self.lists or distribution.rest <= ROUNDING):
            self.account.not_reported("draws whose distribution the trace does not hold")
            return
        self.account.draws += 1
        bonus = verified.bonus if verified and len(cycle.path) == len(cycle.positions) else None
        row = cycle.positions[children[0]].target if children else bonus
        drawn = row.sample.token if row and row.sample and self.account.rule == NOISE else own
        if not listed or own != drawn:
            piece = cycle.committed.pieces[-1][:MAX_SAID]
            yield TranslatableText("the target added {piece!r}, which was not drawn there", piece=piece)

    def check_coins(self, seed: int, every: Sequence[AuditedCycle]) -> None:
        """A run on a CPU draws all from one generator, so its coins are among that one's numbers, in their order.

        Lanes most of whose coins are not there drew elsewhere: on a GPU, or in another engine.
        """
        source, block = Random(seed), self.account.rule == BLOCK  # which tosses from the end of the draft
        most = SPARE_NUMBERS + sum(3 * len(cycle.positions) + 8 for cycle in every)
        places = {source.random(): place for place in range(most)}
        drafts = [(cycle.number, x) for cycle in every for x in cycle.positions[:: -1 if block else 1]]
        coins = [(number, x.u) for number, x in drafts if x.u is not None]
        known = [(coin, places[coin[1]]) for coin in coins if coin[1] in places]
        if not known or 2 * len(known) < len(coins):
            return
        foreign = [coin for coin in coins if coin[1] not in places]
        foreign += [coin for (_, before), (coin, place) in pairwise(known) if place <= before]
        self.account.coins = len(coins) - len(foreign)
        for number, u in foreign:
            self.account.fault(number, "the seed does not give the coin u = {u:.6g} at this place", u=u)

    def check_end(self, event: Finished, text: Text, every: Sequence[AuditedCycle]) -> Iterator[TranslatableText]:
        total, reason, params = self.account.tokens, event.reason, self.started.params if self.started else None
        if event.tokens != total:
            yield TranslatableText(
                "the lane ends with {ended} tokens, and {joined} joined the text", ended=event.tokens, joined=total
            )
        if reason == "failed":
            return
        if event.text != text.written:
            yield TranslatableText("the lane ends with another text than its cycles wrote")
        if params:
            short, limit = total < params.max_tokens, params.max_tokens
            if total > limit or (reason == "length" and short) or (reason == "context" and total == limit):
                yield TranslatableText("the lane ended with {total} tokens of {limit}", total=total, limit=limit)
            if (reason == "stop" and not params.stop) or (reason == "end" and params.ignore_end and not self.guided):
                yield TranslatableText("the lane ended in a way that its settings exclude")
            if any(stop in event.text for stop in params.stop):
                yield TranslatableText("a stop string stands in the text")
        # Verification is what the cycles say; drafting is at least that: cycles that found nothing to draft do not.
        later = [cycle for cycle in every if cycle.number]
        draft = sum(cycle.drafted.end - cycle.drafted.start for cycle in later if cycle.drafted)
        verify = sum(cycle.verified.end - cycle.verified.start for cycle in later if cycle.verified)
        other = max(0.0, event.at - event.prefill - event.draft - event.verify)
        sums = abs(event.verify - verify) <= SUM_S and event.draft >= draft - SUM_S
        last = every[-1].committed.at if every else 0.0
        if event.at < last - CLOCK_S or not sums or abs(event.other - other) > SUM_S:
            yield TranslatableText("the lane's seconds are not those of its cycles")


def times(cycle: AuditedCycle) -> list[float]:
    """Of a cycle, in the order in which they must come."""
    drafted, verified = cycle.drafted, cycle.verified
    begun = [drafted.start, *drafted.step_ends, drafted.end] if drafted else []
    return [*begun, *([verified.start, verified.end] if verified else []), cycle.committed.at]


def check_depth(started: Started, cycle: AuditedCycle) -> Iterator[TranslatableText]:
    if (deepest := max(cycle.tree.depths(), default=0)) > started.k:
        yield TranslatableText("the draft is {depth} deep, and K is {k}", depth=deepest, k=started.k)


def check_filters(started: Started, cycle: AuditedCycle) -> Iterator[TranslatableText]:
    """Temperature 0 and top-k against the target's distributions."""
    params, verified = started.params, cycle.verified
    most = 1 if params.temperature == 0.0 else params.top_k
    distributions = [x.target for x in cycle.positions]
    distributions += [verified.distribution, verified.bonus] if verified else []
    for one in filter(None, distributions):
        if 0 < most < sum(it.prob > ROUNDING for it in one.top) + (one.rest > len(one.top) * ROUNDING):
            yield TranslatableText("a distribution holds more than the {k} tokens of its settings", k=most)
            return
