"""The report counts what its tests record, and a kind with a test that fails does not hold."""

import ast
import os
from pathlib import Path

import pytest

from tests import report
from tools import mutants
from tools.bench import trust

ROOT = Path(__file__).resolve().parents[1]
PASSES = "def test_one(): pass"
RECORDS = """
import pytest

@pytest.mark.parametrize("count", [100, 300])
def test_one(count, record_property):
    record_property("joint distributions enumerated", count)
    record_property("planted mistakes caught", "the same one")
"""


def test_a_figure_holds_where_it_reaches_its_target() -> None:
    assert report.at_least("", 300, 300).holds and not report.at_least("", 299, 300).holds
    assert report.at_most("", 5.0, 5).holds and not report.at_most("", float("nan"), 5).holds
    assert report.none("", 0).holds and not report.none("", 1).holds


@pytest.mark.parametrize(("source", "held"), [(PASSES, True), (f"{PASSES}\ndef test_two(): assert False", False)])
def test_a_kind_holds_where_all_of_its_tests_pass(tmp_path, source: str, held: bool) -> None:
    path = tmp_path / "test_kind.py"
    path.write_text(source)
    assert all(one.holds for one in report.run_tests([str(path)], "faults", False)) is held


def end_process() -> list[report.Figure]:
    os._exit(3)


def test_a_kind_whose_process_dies_or_whose_tests_are_gone_does_not_hold() -> None:
    assert not any(one["holds"] for one in report.in_own_process(end_process))
    assert not all(one.holds for one in report.run_tests(["tests/test_gone.py"], "faults", False))


def test_what_tests_record_is_counted_together(tmp_path) -> None:
    path = tmp_path / "test_kind.py"
    path.write_text(RECORDS)
    first, second, *_ = report.run_tests([str(path)], "exactness", False)
    assert (first.name, first.figure, first.holds) == ("joint distributions enumerated", "400", True)
    assert (second.name, second.figure, second.holds) == ("planted mistakes caught", "1", False)


def test_every_kind_is_counted_by_something_that_is_there() -> None:
    assert report.KINDS.keys() == {report.MUTANTS, *report.TESTS}
    assert all((ROOT / path).is_file() for tests in report.TESTS.values() for path in tests.split())


def test_mutants_differ_from_the_file_and_are_python() -> None:
    every = mutants.mutants(["verify"])
    sound = ast.unparse(ast.parse((ROOT / "specdec" / "verify.py").read_text(encoding="utf-8")))
    assert len({one.source for one in every} - {sound}) == len(every) >= 14
    for one in every:
        compile(one.source, one.file, "exec")


def test_mutants_are_known_by_function_and_change_and_their_explanations_are_not_stale() -> None:
    every = mutants.mutants()
    keys = [one.key for one in every]
    assert len(set(keys)) == len(keys) and mutants.EQUAL.keys() <= set(keys)
    assert all(function.split(".")[0] in mutants.FILES for function, _ in keys)
    assert any(one.what.startswith("strict=True → False") and one.reason for one in every)


def test_the_tables_tell_what_does_not_hold() -> None:
    figure = {"name": "text | lost", "figure": "1", "target": "0", "holds": False}
    kinds = {"faults": {"title": "Faults", "figures": [figure], "seconds": 1, "measured": "2026-11-23T12:00"}}
    assert "| Faults | text \\| lost | 1 | 0 | **no** |" in trust.table(kinds)
    assert trust.headline(kinds) == "- Not counted yet."
    good = figure | {"name": "tests passed", "figure": "1,512", "holds": True}
    assert "1,512 tests" in trust.headline({"faults": kinds["faults"] | {"figures": [good]}})
