"""The README tells what the reports say, and names what exists."""

from __future__ import annotations

import re
from pathlib import Path

from specdec.bench import readme

ROOT = readme.ROOT


def test_figures_are_those_of_the_reports() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme.filled(text, ROOT) == text


def test_the_files_that_it_names_exist() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    named = re.findall(r"\]\((?!https?:)([^)#]+)\)", text)
    assert named
    assert all((ROOT / Path(name)).exists() for name in named)
