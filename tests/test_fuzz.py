"""The fuzz finds what is planted, and coverage leads it to what chance would hardly reach."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tools import fuzz


def planted(sent: object, mark: str) -> str:
    if mark in str(sent):
        if mark == "+":
            raise KeyError("planted")
        if mark == "~":
            os._exit(9)
        while True:
            pass
    return "harmless"


def deep(sent: object) -> str:
    text = str(sent)
    if text[:1] == "a":  # noqa: SIM102
        if text[1:2] == "b":  # noqa: SIM102
            if text[2:3] == "c":
                raise KeyError("planted")
    return "read"


@contextlib.contextmanager
def door(send: Callable[[object], str] = deep, words: str = "abc") -> Iterator[fuzz.Door]:
    yield fuzz.Door(send, ["x", words] if len(words) == 1 else ["x"], [*words], within=Path(__file__).parent)


crash, hang, death = (functools.partial(door, functools.partial(planted, mark=mark), mark) for mark in "+*~")


@pytest.mark.parametrize(("name", "kind"), [("crash", "uncaught"), ("hang", "hangs"), ("death", "deaths")])
def test_what_is_planted_is_found(name: str, kind: str) -> None:
    told = fuzz.fuzz(f"test_fuzz:{name}", seconds=600, most=2, limit_s=0.5)
    found, *_ = told["found"].values()
    assert found["kind"] == kind
    assert {"crash": "KeyError: 'planted'", "hang": "test_fuzz.py", "death": "exit code 9"}[name] in found["what"]


def test_coverage_leads_and_the_exit_code_tells(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzz, "DOORS", {"toy": "test_fuzz:door"})
    assert fuzz.main(["--inputs", "1500", "--json"]) == 1
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["toy"]["corpus"] >= 4
    assert fuzz.main(["--inputs", "1"]) == 0


def test_an_input_changes_in_one_place_and_stays_json() -> None:
    told = {"a": [1, "x(y)"], "b": {"c": None}}
    changed = [fuzz.near(told, random.Random(seed), ["w"]) for seed in range(300)]
    assert told == {"a": [1, "x(y)"], "b": {"c": None}}
    assert len({json.dumps(one) for one in changed}) > 60
