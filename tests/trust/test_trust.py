"""The report counts, and sees what it is for: a little of each, and a fault that each must find."""

from __future__ import annotations

import ast
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from specdec.proof.mistakes import MISTAKES
from tests import report
from tools import mutants
from tools.bench import trust

from . import exactness, figures, numbers

ROOT = Path(__file__).resolve().parents[2]
PASSES = "def test_one(): pass"
FAILS = "def test_two(): assert False"


def test_a_figure_holds_where_it_reaches_its_target() -> None:
    assert figures.at_least("", 300, 300).holds and not figures.at_least("", 299, 300).holds
    assert figures.at_most("", 5.0, 5).holds and not figures.at_most("", float("nan"), 5).holds
    assert figures.none("", 0).holds and not figures.none("", 1).holds
    assert figures.all_of("", 7, 7, 7).holds
    assert not figures.all_of("", 6, 7, 6).holds and not figures.all_of("", 6, 6, 7).holds


@pytest.mark.parametrize(
    ("source", "held"), [(PASSES, True), (f"{PASSES}\n{FAILS}", False), ("import nothing.at", False)]
)
def test_a_kind_holds_where_all_of_its_tests_pass(tmp_path: Path, source: str, held: bool) -> None:
    path = tmp_path / "test_kind.py"
    path.write_text(source)
    assert all(one.holds for one in report.passed([str(path)], False)) is held


def test_a_kind_whose_process_dies_or_whose_tests_are_gone_does_not_hold() -> None:
    assert not any(one["holds"] for one in report.apart([sys.executable, "-c", "exit(3)"]))
    assert not all(one.holds for one in report.passed(["tests/test_gone.py"], False))


def test_every_kind_is_counted_by_something_that_is_there() -> None:
    assert report.KINDS.keys() == report.COUNTED.keys() | report.TESTS.keys()
    assert all((ROOT / path).is_file() for tests in report.TESTS.values() for path in tests.split())


def test_numbers_hold_and_a_broken_residual_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not numbers.tried(300)
    for wrong in (lambda p, q, token: p, lambda p, q, token: p * 0, lambda p, q, token: p.flip(0)):
        monkeypatch.setattr(numbers, "residual", wrong)
        assert numbers.tried(120)


def test_a_mistake_shows_and_the_shipped_rule_does_not() -> None:
    known = next(one for one in MISTAKES.values() if one.rule and one.least_k == 1)
    assert exactness.shows(known) and not exactness.shows(replace(known, rule=None))


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
    assert trust.headline(kinds) == "- Not counted yet."
    good = figure | {"name": "tests passed", "figure": "1,512", "holds": True}
    assert "1,512 tests" in trust.headline({"faults": kinds["faults"] | {"figures": [good]}})
