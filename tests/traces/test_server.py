"""A server's lane: what it does not tell is neither invented nor held against it, and only it may leave things out."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from specdec.cli.judges import audit_lines
from specdec.events import Committed, Drafted, Event, UNNAMED, Verified
from specdec.figures.stats import Comparison, summary
from specdec.traces.audit import audit, faultless
from specdec.traces.file import Trace, TraceError
from tests import toyrun


def edited(trace: Trace, kind: type, cycle: int, change: Callable[[Any], Event]) -> Trace:
    def chosen(event: Event) -> bool:
        return isinstance(event, kind) and getattr(event, "cycle", 0) == cycle

    return replace(trace, events=tuple(change(event) if chosen(event) else event for event in trace.events))


def position(at: int, **changes: Any) -> Callable[[Verified], Verified]:
    def change(event: Verified) -> Verified:
        judged = [replace(x, **changes) if i == at else x for i, x in enumerate(event.positions)]
        return replace(event, positions=tuple(judged))

    return change


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside a plain server"])
@pytest.mark.parametrize("counted", ["exact", "merged", "totals", None])
def test_it_is_read_and_its_audit_says_what_it_could_not_check(counted: Any, beside: bool) -> None:
    trace = toyrun.server_trace(counted, beside)
    read = Trace.loads(trace.dumps())
    assert read == trace
    accounts = audit(read.header.lanes, read.events)
    assert faultless(accounts)
    one, unnamed = accounts[0], 3 if counted in ("exact", "merged") else 0
    assert (one.server, one.rule, one.lossless, one.decisions, one.draws) == ("vLLM 0.32.0", "", None, 0, 0)
    unchecked = {str(what): count for what, count in one.unchecked.items()}
    assert unchecked.get("drafts whose token the server does not report", 0) == unnamed
    assert unchecked["decisions whose q and coin the server does not report"] == 5 + (2 if unnamed else 0)
    assert "vLLM 0.32.0, watched from outside" in audit_lines(accounts)


CONTRADICTIONS: dict[str, tuple[type, int, Callable[[Any], Event], str]] = {
    "a count": (Committed, 2, lambda e: replace(e, total=e.total + 1), "tokens, not"),
    "a text": (Committed, 2, lambda e: replace(e, text=" other"), "differs from the text of the tokens"),
    "an id": (Committed, 1, lambda e: replace(e, tokens=(10, 12, 101)), "committed tokens are not"),
    "more joined": (Committed, 3, lambda e: replace(e, accepted=2), "committed tokens are not the accepted"),
    "no probability": (Verified, 1, position(0, p=1.5), "is no probability"),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_what_can_be_checked_of_it_is(name: str) -> None:
    kind, cycle, change, said = CONTRADICTIONS[name]
    trace = edited(toyrun.server_trace(), kind, cycle, change)
    (account,) = audit(trace.header.lanes, trace.events)
    assert any(said in fault.reason for fault in account.faults)


REFUSED: dict[str, tuple[Trace, type, int, Callable[[Any], Event], str]] = {
    "no p of ours": (toyrun.trace(), Verified, 2, position(1, p=None), "lacks p or q"),
    "no q of ours": (toyrun.trace(), Verified, 2, position(1, q=None), "lacks p or q"),
    "unnamed draft of ours": (toyrun.trace(), Drafted, 2, lambda e: replace(e, tokens=(0, UNNAMED, 2)), "unnamed"),
    "unnamed token of ours": (toyrun.trace(), Committed, 4, lambda e: replace(e, tokens=(UNNAMED,)), "unnamed"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_nobody_else_may_leave_things_out(name: str) -> None:
    trace, kind, cycle, change, said = REFUSED[name]
    with pytest.raises(TraceError, match=said):
        Trace.loads(edited(trace, kind, cycle, change).dumps())


def test_its_figures() -> None:
    exact, sums = (Comparison.from_events(toyrun.server_trace(counted, True).events) for counted in ("exact", "totals"))
    lane = exact.speculative
    assert (lane.drafted, lane.accepted, lane.judged) == (8, 5, 7)
    assert (lane.alpha, lane.draft_acceptance_rate, lane.tau) == (5 / 7, 5 / 8, 9 / 4)
    assert exact.measured_speedup == pytest.approx(9 / 4)
    assert sums.speculative.alpha is None and sums.speculative.draft_acceptance_rate == 5 / 8  # as the server says
    figures = [summary([one]) for one in (exact, sums)]
    assert [one["alpha"] for one in figures] == [round(5 / 7, 4), None]
    assert [one["draft_acceptance_rate"] for one in figures] == [0.625, 0.625]
    for one in figures:  # what it does not tell: the share of drafting in a cycle
        assert not any(one[name] for name in ("draft_cost", "verify_cost", "overhead", "accounted_speedup"))
    assert figures[1]["alpha_by_position"] == []
    alone = Comparison.from_events(toyrun.server_trace().events)
    assert alone.measured_speedup is None and alone.speculative.tau == 9 / 4
