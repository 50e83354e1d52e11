"""The bench of the page runs: a browser opens the real app, and every figure is told. No figure is judged here."""

from __future__ import annotations

import builtins
from typing import Any

import pytest

from tools.bench import __main__ as bench


def test_without_playwright_there_is_a_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    there = builtins.__import__

    def missing(name: str, *rest: Any) -> Any:
        if name.startswith("playwright"):
            raise ImportError(name)
        return there(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    assert bench.main(["--suite", "page"]) != 0
    assert "requirements-dev.txt" in capsys.readouterr().err
