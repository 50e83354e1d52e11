"""The counters of the report count, and see what they are for: a little of each, and a fault that each must find."""

from __future__ import annotations

import ast
import random
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from specdec.proof.mistakes import MISTAKES
from specdec.traces.file import Trace
from tools import mutants
from tools.bench import tables, trust

from . import bad_input, exactness, faults, figures, garbage, greedy, numbers

ROOT = Path(__file__).resolve().parents[2]


def test_a_figure_holds_where_it_reaches_its_target() -> None:
    assert figures.at_least("", 300, 300).holds and not figures.at_least("", 299, 300).holds
    assert figures.at_most("", 5.0, 5).holds and not figures.at_most("", float("nan"), 5).holds
    assert figures.none("", 0).holds and not figures.none("", 1).holds
    assert figures.all_of("", 7, 7, 7).holds
    assert not figures.all_of("", 6, 7, 6).holds and not figures.all_of("", 6, 6, 7).holds


def test_a_kind_whose_process_dies_does_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    report = __import__("report")
    monkeypatch.setattr(sys, "executable", "/bin/false")
    found = report.alone("exactness", False)
    assert [one["holds"] for one in found["figures"]] == [False]


def test_numbers_hold_and_a_broken_residual_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not numbers.tried(400)
    for wrong in (lambda p, q, token: p, lambda p, q, token: p * 0, lambda p, q, token: p.flip(0)):
        monkeypatch.setattr(numbers, "residual", wrong)
        assert numbers.tried(120)


def test_pairs_of_mistakes_break_different_seams_and_show() -> None:
    pairs = exactness.pairs()
    assert len(pairs) >= 120 and len(set(pairs)) == len(pairs)
    swapped, absolute = MISTAKES["ratio_swapped"], MISTAKES["absolute"]
    assert (swapped, absolute) in pairs and exactness.shows((swapped, absolute))


def test_greedy_texts_are_compared_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    one = next(c for c in greedy.combinations(1) if c[1][0].name == "eagle3" and c[2:4] == ("block", 3))
    assert greedy.same(*one)[0]
    other = [*greedy.plain(one[0], one[4])]
    other[-1] = (other[-1] + 1) % 23
    monkeypatch.setattr(greedy, "plain", lambda *_: other)
    assert not greedy.same(*one)[0]


@pytest.mark.parametrize("inject", [faults.handed, faults.disks, faults.clocks], ids=lambda inject: inject.__name__)
def test_faults_cost_no_text(inject: Callable[..., None]) -> None:
    tally = faults.Tally()
    inject(tally, False)
    assert tally.injected > 3 and (tally.lost, tally.uncaught, tally.held, tally.untold) == (0, 0, 0, 0), tally


def test_a_fault_that_costs_text_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    from specdec import engine

    monkeypatch.setattr(engine, "check_proposal", lambda *_: None)
    monkeypatch.setattr(faults, "BAD_DRAFTS", {"fractions": faults.BAD_DRAFTS["ids that are fractions"]})
    tally = faults.Tally()
    faults.drafters(tally, False)
    assert tally.lost


@pytest.mark.parametrize(
    "send", [bad_input.questions, bad_input.links, bad_input.files], ids=lambda send: send.__name__
)
def test_bad_input_is_answered(send: Callable[..., None]) -> None:
    tally = bad_input.Tally()
    send(tally, 40, random.Random(2))
    assert not tally.wrong, tally.said
    assert sum(tally.sent.values()) >= 40


def test_what_escapes_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(text: str) -> Trace:
        raise KeyError("no such field")

    monkeypatch.setattr(bad_input.Trace, "loads", broken)
    monkeypatch.setattr(bad_input, "edited", lambda rng: "{}")
    tally = bad_input.Tally()
    bad_input.files(tally, 2, random.Random(1))
    assert tally.wrong["uncaught"] >= 2


def test_garbage_is_the_same_for_a_seed_and_damages() -> None:
    one, two = (garbage.value(random.Random(5)) for _ in range(2))
    assert repr(one) == repr(two)
    assert len({garbage.damaged(b"x" * 50, random.Random(seed)) for seed in range(20)}) > 10


def test_mutants_differ_from_the_file_and_are_python() -> None:
    every = mutants.mutants(["verify"])
    sound = ast.unparse(ast.parse((ROOT / "specdec" / "verify.py").read_text(encoding="utf-8")))
    assert len({one.source for one in every} - {sound}) == len(every) >= 15
    for one in every:
        compile(one.source, one.file, "exec")


def test_mutants_are_known_by_function_and_change_and_their_explanations_are_not_stale() -> None:
    every = mutants.mutants()
    keys = [one.key for one in every]
    assert len(set(keys)) == len(keys) and mutants.EQUAL.keys() <= set(keys)
    assert all(function.split(".")[0] in mutants.FILES for function, _ in keys)
    assert any(one.what.startswith("strict=True → False") and one.reason for one in every)


def test_the_tables_tell_what_does_not_hold() -> None:
    figure = {"name": "text | lost", "figure": "1", "target": "0", "holds": False, "skipped": ""}
    kinds = {"faults": {"title": "Faults", "figures": [figure], "seconds": 1, "measured": "2026-11-23T12:00"}}
    assert "| Faults | text \\| lost | 1 | 0 | **no** |" in trust.table(kinds)
    assert trust.headline({"short": kinds, "long": {}}) == "- Not counted yet."
    good = figure | {"name": "faults injected", "figure": "512", "holds": True}
    assert "512 faults injected" in trust.headline(
        {"short": {"faults": kinds["faults"] | {"figures": [good]}}, "long": {}}
    )
    assert tables.PAGES["docs/trust.md"]
