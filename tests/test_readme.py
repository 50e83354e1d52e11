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


def test_depths_stand_in_the_order_of_their_size() -> None:
    row = {"drafter": "eagle3", "temperature": 0.0, "domain": "story", "tau_by_k": {"10": 3.5, "2": 2.25}}
    sampled = row | {"temperature": 0.8}
    alone = row | {"drafter": "adaptive", "tau_by_k": {"8": 3.0}}
    table = readme.at_equal_depth({"rows": [sampled, row, alone]}).splitlines()
    assert table[0] == "| drafter | story, K = 2 · 10 |"
    assert table[2:] == ["| `eagle3` | 2.25 · 3.50 |"]


def test_a_tuned_targets_drafts_stand_beside_the_general_one() -> None:
    def report(*rows: tuple[str, str, float, float]) -> dict[str, object]:
        return {"rows": [dict(zip((*readme.NAMES, "alpha"), row, strict=True)) for row in rows]}

    general = report(
        ("draft_model", "story", 0.0, 0.9), ("draft_model", "code", 0.8, 0.6), ("draft_model", "code", 0.0, 0.7)
    )
    special = report(("draft_model", "code", 0.0, 0.45), ("draft_model:tuned", "code", 0.0, 0.55))
    assert readme.tuned(general, special).splitlines()[2] == "|  | 0.70 | 0.45 | 0.55 |"
