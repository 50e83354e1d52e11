"""The figures of `python -m tests.report`, as Markdown: what was tried against the app, and what came of it."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import wrap
from typing import Any

KINDS = {
    "exactness": "Exactness",
    "numbers": "Numbers in float32",
    "greedy": "Greedy identity, float32",
    "browser": "The engine in a browser",
    "verifiers": "Verifiers of others",
    "faults": "Faults",
    "audit": "Edited traces",
    "input": "Bad input",
    "bounds": "Public bounds, from outside",
    "crowd": "Many visitors",
    "markup": "Text that is no markup",
    "servers": "Servers that are slow or not trusted",
    "files": "Odd model files",
    "mutants": "Mutations of the reading path",
}
# What README tells, in this order: the kind, the figure's name, and the sentence.
HEADLINE = (
    (
        "exactness",
        "joint distributions enumerated",
        "{} exact distributions of the shipped loop, every one the target's to 1e-12",
    ),
    ("exactness", "planted mistakes caught", "each of {} known mistakes caught"),
    ("numbers", "cases", "{} cases of extreme float32 distributions without a broken invariant"),
    ("mutants", "noticed", "mutants of the reading path noticed: {}"),
)
Kinds = dict[str, dict[str, Any]]


def read(results: Path) -> Kinds:
    """By kind, what was saved."""
    files = {path.stem: path for path in (results / "trust").glob("*.json")}
    return {kind: json.loads(files[kind].read_text(encoding="utf-8")) for kind in KINDS if kind in files}


def table(kinds: Kinds) -> str:
    """A line a figure; what is said beside the figures has no target and stands in a last column of its own."""
    if not kinds:
        return "Not counted yet."
    lines = ["| kind | figure | counted | target | holds |", "|---|---|---|---|---|"]
    for found in kinds.values():
        for place, one in enumerate(found["figures"]):
            mark = "yes" if one["holds"] else "**no**"
            cells = ["" if place else found["title"], one["name"], one["figure"], one["target"]]
            lines.append(f"| {' | '.join(map(plain, cells))} | {mark if one['target'] else ''} |")
    when = ", ".join(sorted({found["measured"][:10] for found in kinds.values() if "measured" in found}))
    return "\n".join([*lines, "", f"Counted {when}."])


def headline(kinds: Kinds) -> str:
    """What README tells: of the kinds whose figures all hold."""
    held = {kind: found["figures"] for kind, found in kinds.items() if all(one["holds"] for one in found["figures"])}
    told = []
    for kind, name, sentence in HEADLINE:
        figure = next((one["figure"] for one in held.get(kind, []) if one["name"] == name), "")
        told += [sentence.format(figure.partition(" of ")[0])] if figure else []
    passed = [one for figures in held.values() for one in figures if one["name"] == "tests passed"]
    if passed:
        count = sum(int(one["figure"].replace(",", "")) for one in passed)
        told.append(f"{count:,} tests of {len(passed)} kinds of attack and fault, none failed")
    return folded(f"- {'; '.join(told)}.") if told else "- Not counted yet."


def folded(*items: str) -> str:
    """Items of a list, in lines of at most 120 columns."""
    return "\n".join(line for item in items for line in wrap(item, 120, subsequent_indent="  "))


def plain(text: str) -> str:
    """As it stands, wherever Markdown would read more into it."""
    text = " ".join(text.split()).replace("\\", "\\\\")
    return "".join(f"\\{c}" if c in "|<>*_`" and c != "≤" else c for c in text)
