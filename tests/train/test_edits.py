"""Edits that are made to be learned: what a task asks for can be told from it, and each kind does what it says."""

from __future__ import annotations

import ast
import json
import random
import re
from itertools import pairwise

import pytest

from tools.train import edits
from tools.train.edits import Sources

CODE = """
class Shelf:
    def find(self, name, shelf=None):
        if name in self.books:
            return self.books[name]
        return shelf

    def empty(self):
        return not self.books


def weigh(books, unit):
    total = 0
    for book in books:
        total += book.weight * unit
    return total
"""
STORY = "Nobody spoke.\n\nTom ran down the hill, and Tom fell.\n\nTom slept, and so did Anne, for it was late."


@pytest.fixture(scope="module")
def sources() -> Sources:
    return Sources.of([CODE], [STORY])


def test_functions_are_cut_out_flush_left_with_the_arguments_that_they_use(sources: Sources) -> None:
    assert [text.splitlines()[0] for text in sources.functions] == [
        "def weigh(books, unit):",
        "def find(self, name, shelf=None):",
    ]  # `empty` has too few lines, and no argument
    assert [edits.arguments(text) for text in sources.functions] == [["books", "unit"], ["name", "shelf"]]
    assert sources.paragraphs == ["Nobody spoke.", "Tom ran down the hill, and Tom fell.", STORY.split("\n\n")[2]]
    assert edits.functions_in("def broken(:\n") == []


@pytest.mark.parametrize("seed", range(20))
def test_a_function_is_written_again_with_the_new_name(sources: Sources, seed: int) -> None:
    told = re.fullmatch(
        r"# Rename (\w+) to (\w+):\n(.*)\n\n# Renamed:\n(.*)\n", edits.rename(random.Random(seed), sources), re.S
    )
    assert told is not None
    old, new, before, after = told.groups()
    assert before in sources.functions and new not in before
    assert after == edits.replaced(before, old, new) != before


@pytest.mark.parametrize("seed", range(20))
def test_a_block_comes_once_for_each_name(sources: Sources, seed: int) -> None:
    first, rest = edits.repeat(random.Random(seed), sources).split("\n", 1)
    names = first.removeprefix("# For ").removesuffix(":").split(", ")
    blocks = rest.removesuffix("\n").split("\n\n")
    assert len(blocks) == len(names) >= 3
    assert {edits.replaced(block, name, "@") for block, name in zip(blocks, names, strict=True)} == {
        edits.replaced(blocks[0], names[0], "@")
    }


@pytest.mark.parametrize("seed", range(20))
def test_the_rows_of_a_table_come_as_records(sources: Sources, seed: int) -> None:
    table, records = edits.convert(random.Random(seed), sources).split("\n\n")
    (head, *rows) = (line.split(",") for line in table.splitlines())
    assert [[str(value) for value in json.loads(line).values()] for line in records.splitlines()] == rows
    assert all(list(json.loads(line)) == head for line in records.splitlines())


@pytest.mark.parametrize("seed", range(20))
def test_an_agent_runs_its_plan(sources: Sources, seed: int) -> None:
    plan, *lines = edits.agent(random.Random(seed), sources).splitlines()
    words = plan.removeprefix("Plan: ").replace(",", "").split()
    commands, files = [w for w in words if "." not in w], [w for w in words if "." in w]
    assert lines[::2] == [f"> {command} {file}" for file in files for command in commands]


@pytest.mark.parametrize("seed", range(20))
def test_one_line_of_a_function_is_written_anew(sources: Sources, seed: int) -> None:
    task = edits.patch(random.Random(seed), sources)
    told = re.fullmatch(r"# Instead of ([^\n]*) write ([^\n]*):\n(.*)\n\n# Changed:\n(.*)\n", task, re.S)
    assert told is not None
    before, after = told[3].splitlines(), told[4].splitlines()
    assert told[3] in sources.functions and len(before) == len(after)
    changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    old, new = ast.literal_eval(told[1]), ast.literal_eval(told[2])
    indent = " " * (len(changed[0][0]) - len(changed[0][0].lstrip())) if changed else ""
    assert changed == ([(indent + old, indent + new)] if changed else []) and bool(changed) == (old != new)


@pytest.mark.parametrize("seed", range(20))
def test_a_word_is_replaced_everywhere(sources: Sources, seed: int) -> None:
    task, before, _, after = edits.replace(random.Random(seed), sources).removesuffix("\n").split("\n\n")
    old, new = task.removeprefix("Replace ").removesuffix(":").split(" by ")
    assert before in sources.paragraphs and old in before
    assert after == edits.replaced(before, old, new) and old not in re.findall(r"\w+", after)


@pytest.mark.parametrize("seed", range(20))
def test_an_echo_changes_at_most_one_word_each_time(sources: Sources, seed: int) -> None:
    told = [text.split() for text in edits.echo(random.Random(seed), sources).split("\n\n")]
    assert len(told) >= 3 and {word for text in told for word in text} <= set(sources.words)
    for before, after in pairwise(told):
        assert sum(old != new for old, new in zip(before, after, strict=True)) <= 1


def test_documents_are_the_same_for_the_same_seed_and_need_no_story(sources: Sources) -> None:
    assert edits.documents(3, 1, sources) == edits.documents(3, 1, sources) != edits.documents(3, 2, sources)
    without = edits.documents(60, 0, Sources.of([CODE], ["No. He"]))
    assert not any(text.startswith("Replace ") for text in without)
    assert any(text.startswith("Replace ") for text in edits.documents(60, 0, sources))
