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


def test_a_line_a_drafter() -> None:
    row = {
        "drafter": "eagle3",
        "temperature": 0.0,
        "domain": "story",
        "measured_speedup": 1.5,
        "alpha": 0.8,
        "tau": None,
    }
    table = readme.methods({"rows": [{**row, "domain": "code", "temperature": 0.8}, row]})
    assert table.splitlines()[0] == "| drafter | story, T = 0 | code, T = 0.8 |"
    assert table.splitlines()[2] == "| `eagle3` | 1.50× · 0.80 · – | 1.50× · 0.80 · – |"
