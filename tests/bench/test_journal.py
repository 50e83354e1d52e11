"""What a long suite has measured is in a file at once, and a second start goes on from there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.bench.journal import Journal, Row

ABOUT = {"suite": "gpu", "tokens": 64}


class Broken(Exception):
    pass


def rows(asked: list[int], ends: int = 3, breaks: bool = False) -> Iterator[Row]:
    for i in range(ends):
        asked.append(i)
        yield {"i": i}
    if breaks:
        raise Broken


def lines(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_row_is_in_the_file_before_the_next_is_measured(tmp_path: Path) -> None:
    journal, path, seen = Journal(tmp_path / "rows", ABOUT), tmp_path / "rows", []

    def watching() -> Iterator[Row]:
        for i in range(3):
            yield {"i": i}
            seen.append([line["row"]["i"] for line in lines(path) if line.get("row")])

    assert journal.measured("one", watching()) == [{"i": 0}, {"i": 1}, {"i": 2}]
    assert seen == [[0], [0, 1], [0, 1, 2]]
    journal.close()
    assert not path.exists()


def test_a_second_start_measures_what_is_missing_alone(tmp_path: Path) -> None:
    path, asked = tmp_path / "rows", list[int]()
    first = Journal(path, ABOUT)
    first.measured("one", rows(asked))
    with pytest.raises(Broken):
        first.measured("two", rows(asked, 2, breaks=True))
    with path.open("a") as file:
        file.write('{"unit": "two", "row": {"cut')  # off, as by the end of a lease
    del asked[:]
    second = Journal(path, ABOUT)
    assert len(second.measured("one", rows(asked))) == 3 and asked == []
    assert [row["i"] for row in second.measured("two", rows(asked))] == [0, 1, 2] and asked == [0, 1, 2]
    del asked[:]
    third = Journal(path, ABOUT)
    assert [row["i"] for unit in ("one", "two") for row in third.measured(unit, rows(asked))] == [0, 1, 2, 0, 1, 2]
    assert asked == [] and third.left_out == []


def test_what_does_not_hold_is_measured_again(tmp_path: Path) -> None:
    path, asked = tmp_path / "rows", list[int]()
    first = Journal(path, ABOUT)
    first.measured("one", rows(asked), lambda found: len(found) > 3)
    first.close()
    assert first.left_out == ["one"] and path.exists()
    second = Journal(path, ABOUT)
    second.measured("one", rows(asked, 4), lambda found: len(found) > 3)
    assert asked == [0, 1, 2, 0, 1, 2, 3] and second.left_out == []


def test_when_the_time_is_over_nothing_more_is_begun(tmp_path: Path) -> None:
    path, asked = tmp_path / "rows", list[int]()
    Journal(path, ABOUT).measured("one", rows(asked))
    del asked[:]
    late = Journal(path, ABOUT, minutes=0.0)
    assert len(late.measured("one", rows(asked))) == 3  # that is there already
    assert late.measured("two", rows(asked)) == [] and asked == [] and late.left_out == ["two"]
    late.close()
    assert path.exists()


def test_rows_of_another_machine_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    Journal(path, ABOUT)
    with pytest.raises(ValueError, match="another machine"):
        Journal(path, ABOUT | {"tokens": 96})
    path.write_text("no rows\n")
    with pytest.raises(ValueError, match="no journal"):
        Journal(path, ABOUT)
