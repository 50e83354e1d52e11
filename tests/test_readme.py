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
    sampled = row | {"temperature": 0.8, "tau_by_k": {"10": 3.0, "2": 2.0}}
    alone = row | {"drafter": "adaptive", "tau_by_k": {"8": 3.0}}
    table = readme.at_equal_depth({"rows": [sampled, row, alone]}).splitlines()
    assert table[0] == "| τ at K = 2 · 10 | story, T = 0 | story, T = 0.8 |"
    assert table[2:] == ["| `eagle3` | 2.25 · 3.50 | 2.00 · 3.00 |"]


def test_a_tuned_targets_drafts_stand_beside_the_general_one() -> None:
    def report(**drafts: tuple[float, float]) -> dict[str, list[dict[str, object]]]:
        places = [(name, t, tau) for name, taus in drafts.items() for t, tau in zip((0.0, 0.8), taus, strict=True)]
        rows = [(name.replace("__", ":"), "code", t, {"1": 1.5, "3": tau}) for name, t, tau in places]
        return {"rows": [dict(zip((*readme.NAMES, "tau_by_k"), row, strict=True)) for row in rows]}

    general, special = report(draft_model=(2.5, 2.1)), report(draft_model=(1.7, 1.9), draft_model__tuned=(2.0, 2.05))
    general["rows"].insert(0, general["rows"][0] | {"domain": "story", "tau_by_k": {"3": 3.0}})
    table = readme.tuned(general, special).splitlines()
    assert table[2:] == ["| greedy | 2.50 | 1.70 | 2.00 |", "| T = 0.8 | 2.10 | 1.90 | 2.05 |"]
