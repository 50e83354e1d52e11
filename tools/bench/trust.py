"""Write as Markdown what `python -m tests.report` has saved: the figures of exactness, faults and attacks."""

import json
from pathlib import Path
from textwrap import wrap
from typing import Any

KINDS = {
    "exactness": "Exactness",
    "numbers": "Numbers in float32",
    "greedy": "Greedy identity, float32",
    "browser": "The engine in a browser",
    "verifiers": "Verification rules of others",
    "faults": "Faults",
    "audit": "Edited traces",
    "input": "Bad input",
    "bounds": "A stranger's limits, from outside",
    "crowd": "Many visitors",
    "markup": "Markup in a text is shown as text",
    "servers": "Servers that are slow or not trusted",
    "files": "Odd model files",
    "mutants": "Mutations of the reading path",
}
# The figures in README, in order: kind, name, sentence.
HEADLINE = (
    (
        "exactness",
        "joint distributions enumerated",
        "{} exact distributions of the shipped loop, every one the target's to 1e-12",
    ),
    ("exactness", "planted mistakes caught", "each of {} known mistakes caught"),
    ("numbers", "cases", "{} cases of extreme float32 distributions without a broken invariant"),
    ("mutants", "noticed", "{} small changes of the reading path, each noticed by a test"),
)
Kinds = dict[str, dict[str, Any]]


def load_reports(results: Path) -> Kinds:
    files = {path.stem: path for path in (results / "trust").glob("*.json")}
    return {kind: json.loads(files[kind].read_text(encoding="utf-8")) for kind in KINDS if kind in files}


def table(kinds: Kinds) -> str:
    """Write a table with a line for each figure. The last cell is empty if nothing is required of a figure."""
    if not kinds:
        return "Not counted yet."
    lines = ["| kind | figure | counted | target | holds |", "|---|---|---|---|---|"]
    for report in kinds.values():
        for number, figure in enumerate(report["figures"]):
            mark = "yes" if figure["holds"] else "**no**"
            cells = ["" if number else report["title"], figure["name"], figure["figure"], figure["target"]]
            lines.append(f"| {' | '.join(map(plain, cells))} | {mark if figure['target'] else ''} |")
    when = ", ".join(sorted({report["measured"][:10] for report in kinds.values() if "measured" in report}))
    return "\n".join([*lines, "", f"Counted {when}."])


def headline(kinds: Kinds) -> str:
    """Write the sentences for README. Kinds with a figure that does not hold are left out."""
    good = {kind: report["figures"] for kind, report in kinds.items() if all(f["holds"] for f in report["figures"])}
    sentences = []
    for kind, name, sentence in HEADLINE:
        figure = next((f["figure"] for f in good.get(kind, []) if f["name"] == name), "")
        sentences += [sentence.format(figure.partition(" of ")[0])] if figure else []
    passed = [f for figures in good.values() for f in figures if f["name"] == "tests passed"]
    if passed:
        count = sum(int(f["figure"].replace(",", "")) for f in passed)
        sentences.append(f"{count:,} tests of {len(passed)} kinds, none failed")
    return folded(f"- {'; '.join(sentences)}.") if sentences else "- Not counted yet."


def folded(*items: str) -> str:
    """Wrap items of a list to at most 120 columns."""
    return "\n".join(line for item in items for line in wrap(item, 120, subsequent_indent="  "))


def plain(text: str) -> str:
    """Escape characters that have a meaning in Markdown."""
    text = " ".join(text.split()).replace("\\", "\\\\")
    return "".join(f"\\{c}" if c in "|<>*_`" else c for c in text)
