"""Figures from events: α counts what was judged, τ counts what was written, costs are in plain steps."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from specdec.cli.render import BUSY, describe_run
from specdec.events import Committed, Drafted, Finished, Position, Started, Verified
from specdec.figures import machine
from specdec.figures.stats import Comparison, interval, LaneStats, pooled_alpha, repetition
from specdec.paths import ASSETS
from specdec.traces.file import live_header, Trace
from tests import nodejs


def cycle(lane: str, number: int, start: float, statuses: list[str], total: int, draft: float, verify: float) -> list:
    kept, events, at = statuses.count("accepted"), [], start
    if statuses:
        n = len(statuses)
        events.append(Drafted(lane, number, (1,) * n, ("x",) * n, tuple(range(-1, n - 1)), at, at + draft))
        at += draft
    coins = [None if status == "discarded" else 0.1 for status in statuses]
    positions = [Position(i, 1, "x", statuses[i], 0.5, 0.5, coin) for i, coin in enumerate(coins)]
    events.append(Verified(lane, number, tuple(positions), at, at + verify))
    kind = "resampled" if "rejected" in statuses else "bonus"
    tokens = (1,) * (kept + 1)
    events.append(Committed(lane, number, tokens, ("x",) * len(tokens), kept, kind, "x", total, at + verify))
    return events


A, R, D = "accepted", "rejected", "discarded"
SPEC = [
    *cycle("speculative", 0, 0.0, [], 1, 0, 0.010),
    *cycle("speculative", 1, 0.010, [A, A, A, A], 6, 0.004, 0.012),
    *cycle("speculative", 2, 0.026, [A, R, D, D], 8, 0.004, 0.012),
    *cycle("speculative", 3, 0.042, [R, D, D, D], 9, 0.004, 0.012),
    Finished("speculative", "length", 9, "x" * 9, 0.058, 0.01, 0.012, 0.036, 0.0),
]
PLAIN = [e for i in range(9) for e in cycle("plain", i, 0.01 * i, [], i + 1, 0, 0.01)]


def test_acceptance_counts_only_what_was_judged() -> None:
    stats = LaneStats.from_events(SPEC, "speculative")
    assert (stats.accepted, stats.judged, stats.drafted) == (5, 7, 12)
    assert stats.alpha == pytest.approx(5 / 7) and stats.tau == pytest.approx(8 / 3)
    assert stats.draft_acceptance_rate == pytest.approx(5 / 12)
    assert pooled_alpha([stats]) == pytest.approx([2 / 3, 1 / 2, 1.0, 1.0])


def test_the_speedup_and_its_account() -> None:
    comparison = Comparison.from_events([*SPEC, *PLAIN])
    assert comparison.measured_speedup == pytest.approx(0.080 / 0.048)
    assert comparison.draft_cost == pytest.approx(0.1)
    assert comparison.verify_cost == pytest.approx(1.2)
    assert comparison.overhead == pytest.approx(0.0, abs=1e-9)
    # 1 + 2/3 + 1/3 + 1/3 + 1/3 tokens for 4·0.1 + 1.2 steps
    assert comparison.accounted_speedup == pytest.approx(8 / 3 / 1.6)


def test_cycles_without_a_draft_are_in_the_account() -> None:
    spec = [
        *cycle("speculative", 0, 0.0, [], 1, 0, 0.010),
        *cycle("speculative", 1, 0.010, [A, A], 4, 0.002, 0.012),
        *cycle("speculative", 2, 0.024, [], 5, 0, 0.010),
    ]
    comparison = Comparison.from_events([*spec, *PLAIN])
    assert comparison.measured_speedup == pytest.approx(4 * 0.010 / 0.024) == comparison.accounted_speedup
    empty = Drafted("speculative", 2, (), (), (), 0.010, 0.010)
    assert Comparison.from_events([*spec[:2], empty, *spec[-2:], *PLAIN]).accounted_speedup is None


def test_what_stands_behind_the_end_of_the_text_does_not_count() -> None:
    *events, committed = cycle("speculative", 1, 0.0, [A, A, A, A], 2, 0.001, 0.01)
    cut = replace(committed, tokens=(1, 1), pieces=("x", "x"), accepted=2, total=2)
    stats = LaneStats.from_events([*events, cut], "speculative")
    assert (stats.accepted, stats.judged, stats.drafted) == (2, 2, 4)


def test_trees_count_levels_reached_and_passed() -> None:
    """The first sibling is rejected, the second accepted: the level is passed. Below it both fail."""
    parents = (-1, -1, 1, 1)
    drafted, verified, committed = cycle("speculative", 1, 0.0, [R, A, R, R], 2, 0.001, 0.01)
    stats = LaneStats.from_events([replace(drafted, parents=parents), verified, committed], "speculative")
    assert (stats.accepted_at, stats.judged_at) == ([1, 0], [1, 1])


RECORDED = sorted((ASSETS / "traces").glob("*/*.jsonl"))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_account_of_a_recorded_run_closes(path: Path) -> None:
    told = Comparison.from_events(Trace.load(path).events)
    assert told.accounted_speedup == pytest.approx(told.measured_speedup, rel=1e-6)


def test_an_empty_run_has_no_figures_and_no_division_by_zero() -> None:
    comparison = Comparison.from_events([])
    assert comparison.measured_speedup is None
    assert comparison.accounted_speedup is None
    assert LaneStats.from_events([], "plain").alpha is None


@pytest.mark.parametrize(("draft", "verify"), [(0.0, 0.0), (0.010, -0.020), (-0.030, 0.030)])
def test_a_file_may_tell_of_clocks_that_stand_still_or_run_backwards(draft: float, verify: float) -> None:
    odd = cycle("speculative", 1, 0.010, [A, R], 3, draft, verify)
    assert Comparison.from_events([*SPEC[:2], *odd, *PLAIN]).accounted_speedup is None


def test_repetition_is_the_share_of_eight_grams_seen_before() -> None:
    assert repetition(list(range(100))) == 0.0
    assert repetition([1] * 17) == pytest.approx(0.9)
    assert repetition([1, 2]) == 0.0


@pytest.mark.parametrize(("n", "rank"), [(1, 1), (5, 1), (6, 1), (8, 1), (9, 2), (12, 3), (18, 5), (30, 10), (100, 40)])
def test_the_interval_of_a_median_is_that_of_the_tables(n: int, rank: int) -> None:
    """Ranks from the tables of the sign test: the largest whose tail holds at most 2.5 %."""
    values = [float(i) for i in range(1, n + 1)]
    assert interval(reversed(values)) == [float(rank), float(n + 1 - rank)]
    assert interval([None, *values]) == interval(values) and interval([]) is None


def retimed(trace: Trace, lane: str, when: Any) -> Trace:
    def move(event: Any) -> Any:
        names = [name for name in ("start", "end", "at") if hasattr(event, name)]
        return replace(event, **{name: when(getattr(event, name)) for name in names}) if event.lane == lane else event

    return replace(trace, events=tuple(map(move, trace.events)))


def test_a_speed_up_that_cannot_be_is_to_be_measured_again(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(machine, "busy", lambda: False)
    calm = Trace.load(ASSETS / "traces" / "story.jsonl")
    middle = next(e.at for e in calm.events if isinstance(e, Committed) and e.lane == "plain" and e.cycle == 30)
    impossible = retimed(calm, "speculative", lambda t: 0.3 * t)
    stalled = retimed(calm, "plain", lambda t: t + (t >= middle))
    figures = Comparison.from_events(impossible.events)
    assert figures.measured_speedup and figures.speculative.tau and figures.measured_speedup > figures.speculative.tau
    for trace, busy in ((calm, False), (impossible, True), (stalled, True)):
        assert trace.summary()["machine_busy"] is Comparison.from_events(trace.events).machine_busy is busy
        assert (BUSY in describe_run(trace.events)) is busy
    loaded = replace(calm, header=replace(calm.header, machine=calm.header.machine | {"busy": True}))
    assert loaded.summary()["machine_busy"] is True
    served = [replace(e, server="vLLM 1") if isinstance(e, Started) else e for e in impossible.events]
    assert not Comparison.from_events(served).machine_busy
    assert not replace(loaded, events=tuple(served)).summary()["machine_busy"]
    for now in (True, False):
        monkeypatch.setattr(machine, "busy", lambda now=now: now)
        assert live_header("Hi", {}, ()).machine["busy"] is now
    runs = [Trace.load(path) for path in sorted((ASSETS / "traces").rglob("*.jsonl"))[::3]]
    expected = {}
    for number, trace in enumerate([calm, impossible, stalled, loaded, *runs]):
        trace.save(tmp_path / f"{number}.jsonl")
        expected[f"{number}.jsonl"] = trace.summary()["machine_busy"]
    (tmp_path / "expected.json").write_text(json.dumps(expected), encoding="utf-8")
    nodejs.check("python/busy.test.js", CASES=tmp_path, EXPECTED=tmp_path / "expected.json")
