"""The bench of the page runs: a browser opens the real app, and every figure is told. No figure is judged here."""

from __future__ import annotations

import builtins
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tools.bench import __main__ as bench

ROOT = Path(__file__).resolve().parents[2]
FIGURES = {
    "first_paint_ms", "first_token_ms", "ready_ms", "ready_cpu_ms", "longest_task_ms", "dom_nodes",
    "fonts_that_hide_text", "html_kb", "html_raw_kb", "other_kb",
    "first_cycles_share", "playing_share", "playing_per_s", "idle_share", "other_tab_share",
}  # fmt: skip


@pytest.mark.long
@pytest.mark.exhaustive  # test_serving runs a suite; this one is run before its figures are saved
@pytest.mark.skipif(not (shutil.which("chromium") or shutil.which("chromium-browser")), reason="no chromium")
def test_the_suite_measures_a_visit() -> None:
    """In a process of its own: the tests of the page have a playwright in this one."""
    pytest.importorskip("playwright.sync_api")
    code = "from tools.bench import page, __main__ as bench; page.WINDOW = 300\n"
    code += "raise SystemExit(bench.main(['--suite', 'page', '--repeats', '1']))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    *table, last = done.stdout.splitlines()
    report = json.loads(last)
    assert report["suite"] == "page" and report["browser"].startswith("Chromium ")
    figures = report["figures"]
    assert set(figures) == FIGURES and report["visits"] == [figures]
    assert all(any(line.startswith(name) for line in table) for name in FIGURES)
    assert None not in figures.values()
    assert 0 < figures["html_kb"] < figures["html_raw_kb"], "the page is sent compressed"
    assert figures["first_paint_ms"] > 0 and figures["first_token_ms"] > 0
    assert figures["fonts_that_hide_text"] == 0


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
