"""Is a trace true to itself? Every decision and every draw of a run, recomputed from its events.

A decision is recomputed exactly: p, q and u are in the trace to the last bit (`rulings.py`). A distribution stands in
it by its likeliest tokens and the mass of all others: what hangs on it is held against bounds (`distributions.py`).
Settings and text must fit what was done (`settings.py`, `pieces.py`). What a trace does not tell,
because it is older, lighter or cut, is counted as unchecked and never as good; so are a server's decisions: it tells
neither q nor coin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from ..events import Committed, Drafted, Event, Failed, Finished, Started, Verified
from ..types import TranslatableText
from .cycle import AuditedCycle, check_shape, is_unnamed, MAX_SAID, named, NOTHING
from .distributions import (
    check_block_chances,
    check_distributions,
    check_own_distribution,
    lists_what_was_chosen,
    masses,
    ROUNDING,
    the_sample,
)
from .pieces import Pieces, Text
from .rulings import BLOCK, JUDGES, NEVER, NOISE, REJECTION
from .settings import check_claim, check_depth, check_ending, check_limits, Coins

CLOCK = 1e-9  # seconds
SUMS = 1e-6  # seconds, of many


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
        told = {"cycle": self.cycle, "lane": shown(self.lane), "reason": self.reason}
        return TranslatableText("cycle {cycle} of the lane {lane}: {reason}", **told)


@dataclass
class LaneAudit:
    """What was done again of one lane. `unchecked` counts by name what the trace does not tell.

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


def audit(lanes: Sequence[str], events: Iterable[Event]) -> list[LaneAudit]:
    """One account a lane, in the header's order, and after them lanes that the header does not name.

    `events` are those of a trace that was read, or of an engine: ValueError where a draft is no tree (`shape.py`).
    """
    events = list(events)
    pieces, lists = Pieces(events), lists_what_was_chosen(events)
    readers: dict[str, LaneReader] = {lane: LaneReader(LaneAudit(lane), pieces, lists) for lane in lanes}
    for event in events:
        if event.lane not in readers:
            readers[event.lane] = LaneReader(LaneAudit(event.lane), pieces, lists)
            readers[event.lane].fault(0, "the header names no such lane")
        readers[event.lane].take(event)
    for reader in readers.values():
        reader.close()
    starts = [reader.started for reader in readers.values() if reader.started]
    for reader in readers.values():
        one = reader.started
        if one and (one.params, one.prompt_tokens) != (starts[0].params, starts[0].prompt_tokens):
            reader.fault(0, "this lane was started with other settings than the first")
        reader.account.faults.sort(key=lambda fault: fault.cycle)
    return [reader.account for reader in readers.values()]


def holds(accounts: Iterable[LaneAudit]) -> bool:
    return not any(account.faults for account in accounts)


class LaneReader:
    """Takes a lane's events in their order; keeps its account."""

    def __init__(self, account: LaneAudit, pieces: Pieces, lists: bool) -> None:
        self.account, self.pieces, self.lists = account, pieces, lists
        self.drafted: Drafted | None = None
        self.verified: Verified | None = None
        self.started: Started | None = None
        self.finished: Finished | None = None
        self.begun = self.ended = False
        self.total, self.at = 0, 0.0
        self.spent = {"draft": 0.0, "verify": 0.0}
        self.text, self.coins = Text(), Coins()
        self.deep = list[
            tuple[int, TranslatableText]
        ]()  # drafts of a server that are deeper than it says, unless they are joined

    def fault(self, cycle: int, reason: str, /, **values: Any) -> None:
        said = reason if isinstance(reason, TranslatableText) else TranslatableText(reason, **values)
        self.account.faults.append(Fault(self.account.lane, cycle, said))

    def not_reported(self, what: str, /, count: int = 1, **values: Any) -> None:
        self.account.unchecked[TranslatableText(what, **values)] += count

    def take(self, event: Event) -> None:
        cycle = getattr(event, "cycle", self.account.cycles)
        if self.finished:
            self.fault(cycle, "something happens after the end of the lane")
        if self.begun == isinstance(event, Started):
            twice, early = (
                TranslatableText("the lane starts twice"),
                TranslatableText("something happens before the lane starts"),
            )
            self.fault(cycle, twice if self.begun else early)
        self.begun = True
        if isinstance(event, Started):
            self.start(event)
        elif isinstance(event, Finished):
            self.finished = event
        elif not isinstance(event, Failed) and cycle != self.account.cycles:
            self.fault(cycle, "it is the turn of cycle {number}", number=self.account.cycles)
            self.account.cycles = cycle
        if isinstance(event, Drafted):
            self.drafted = event
        elif isinstance(event, Verified):
            self.verified = event
        elif isinstance(event, Committed):
            self.commit(AuditedCycle(self.drafted, self.verified, event))
            self.drafted = self.verified = None

    def start(self, event: Started) -> None:
        self.started = event
        self.account.server = event.server
        if event.guided:
            self.not_reported("texts under a grammar, which is no longer checked")
        if event.server:
            return  # what its rule is, it does not say
        self.account.rule = event.rule or REJECTION  # older versions knew no other, and did not say it
        self.account.lossless = event.lossless if self.account.rule in JUDGES else None
        for reason in check_claim(event, self.account.rule):
            self.fault(0, reason)

    def commit(self, cycle: AuditedCycle) -> None:
        number, event = cycle.number, cycle.committed
        if self.ended:
            self.fault(number, "the text had ended in the cycle before")
        self.total += len(event.tokens)
        self.text.take(event)
        if event.total != self.total:
            self.fault(number, "the text has {total} tokens, not {told}", total=self.total, told=event.total)
        if late := backwards(self.at, cycle):
            self.fault(number, late)
        self.at = event.at
        for reason in list(check_shape(cycle, bool(self.account.server))) or list(self.contradictions(cycle)):
            self.fault(number, reason)
        self.ended = len(event.tokens) <= len(cycle.path)
        self.account.cycles, self.account.tokens = number + 1, self.total
        if number > 0:
            self.spent["draft"] += cycle.drafted.end - cycle.drafted.start if cycle.drafted else 0.0
            self.spent["verify"] += cycle.verified.end - cycle.verified.start if cycle.verified else 0.0
        self.coins.take(cycle, self.account.rule == BLOCK)

    def close(self) -> None:
        """The lane is complete."""
        if not self.begun:
            self.not_reported("lanes of which the trace holds nothing")
            return
        if self.finished is None:
            self.not_reported("lanes whose end the trace does not hold")
        else:
            self.finish(self.finished)
        whole = self.finished is not None and self.finished.reason != "failed"
        stops = bool(self.started and self.started.params.stop)
        if (wrong := self.text.check(stops, whole)) is not None:
            self.fault(wrong, "the text is not that of the tokens")
        foreign = self.coins.foreign(self.started.params.seed) if self.started else None
        self.account.coins = 0 if foreign is None else len(self.coins.tossed) - len(foreign)
        for number, u in foreign or ():
            self.fault(number, "the seed does not give the coin u = {u:.6g} at this place", u=u)

    def finish(self, event: Finished) -> None:
        last = max(0, self.account.cycles - 1)
        for number, reason in self.deep if event.counted != "totals" else ():
            self.fault(number, reason)
        if event.tokens != self.total:
            told = {"ended": event.tokens, "joined": self.total}
            self.fault(last, "the lane ends with {ended} tokens, and {joined} joined the text", **told)
        if event.reason == "failed":
            return
        if event.text != self.text.written:
            self.fault(last, "the lane ends with another text than its cycles wrote")
        for reason in check_ending(self.started, event, self.total, event.text) if self.started else ():
            self.fault(last, reason)
        if event.at < self.at - CLOCK or not self.adds_up(event):
            self.fault(last, "the lane's seconds are not those of its cycles")

    def adds_up(self, event: Finished) -> bool:
        """Verification is what the cycles tell; drafting is at least that: what found nothing to draft is not told."""
        other = max(0.0, event.at - event.prefill - event.draft - event.verify)
        verify = abs(event.verify - self.spent["verify"]) <= SUMS
        return verify and event.draft >= self.spent["draft"] - SUMS and abs(event.other - other) <= SUMS

    def contradictions(self, cycle: AuditedCycle) -> Iterator[TranslatableText]:
        if wrong := self.pieces.check(cycle):
            yield wrong
        if self.account.server:
            self.told_by_server(cycle)
            return
        if self.started:
            yield from check_limits(self.started, cycle)
        yield from check_distributions(cycle, self.lists)
        yield from check_block_chances(cycle)
        yield from self.check_decisions(cycle)
        yield from self.check_draw(cycle)

    def told_by_server(self, cycle: AuditedCycle) -> None:
        """No draft deeper than K, where a server tells it and its cycles; the rest is between its models."""
        if self.started and self.started.k:
            self.deep += [(cycle.number, reason) for reason in check_depth(self.started, cycle)]
        if unnamed := sum(map(is_unnamed, cycle.positions)):
            self.not_reported("drafts whose token the server does not report", unnamed)
        if judged := sum(x.status != "discarded" for x in cycle.positions):
            self.not_reported("decisions whose q and coin the server does not report", judged)
        if cycle.own is not None:
            self.not_reported("draws whose whole distribution the server does not report")

    def check_decisions(self, cycle: AuditedCycle) -> Iterator[TranslatableText]:
        if not cycle.positions:
            return
        judge = JUDGES.get(self.account.rule)
        if judge is None:
            self.not_reported("decisions by the rule {rule!r}", len(cycle.positions), rule=self.account.rule[:MAX_SAID])
            return
        for position, ruling in zip(cycle.positions, judge(cycle), strict=True):
            if ruling.status is None:
                self.not_reported("decisions whose coin or distribution the trace does not hold")
                continue
            self.account.decisions += ruling is not NEVER
            if ruling.status != position.status:
                told = {"draft": named(position), "status": TranslatableText(position.status), "why": ruling.why}
                yield TranslatableText("{draft} was {status}, but {why}", **told)
                return  # later errors follow from it

    def check_draw(self, cycle: AuditedCycle) -> Iterator[TranslatableText]:
        own, verified = cycle.own, cycle.verified
        if own is None:
            return
        if verified is None or verified.distribution is None:
            self.not_reported("draws whose distribution the trace does not hold")
            return
        listed = own in masses(verified.distribution)
        if not listed and not self.lists and verified.distribution.rest > ROUNDING:
            self.not_reported("draws whose mass the trace does not hold")
            return
        if not listed:
            piece = cycle.committed.pieces[-1][:MAX_SAID]
            yield TranslatableText(
                "the target added {piece!r}, which the distribution that it was drawn from does not hold", piece=piece
            )
        self.account.draws += 1
        yield from check_own_distribution(cycle, verified, self.account.rule)
        sample = the_sample(cycle) if self.account.rule == NOISE else None
        if sample is not None and sample != own:
            piece = cycle.committed.pieces[-1][:MAX_SAID]
            yield TranslatableText("the target added {piece!r}, and its noise draws another token", piece=piece)


def backwards(before: float, cycle: AuditedCycle) -> TranslatableText:
    times = [before]
    if cycle.drafted:
        times += [cycle.drafted.start, *cycle.drafted.step_ends, cycle.drafted.end]
    times += [cycle.verified.start, cycle.verified.end] if cycle.verified else []
    times.append(cycle.committed.at)
    return TranslatableText("the clock runs backwards") if any(b < a - CLOCK for a, b in pairwise(times)) else NOTHING
