"""The figures of `python -m tests.report`, as Markdown: what was tried against the app, and what came of it."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import wrap
from typing import Any

# Each is counted by a module of that name in tests/trust.
KINDS = {
    "exactness": "Exactness",
    "numbers": "Numbers in float32",
    "greedy": "Greedy identity, float32",
    "browser": "The engine in a browser",
    "faults": "Faults",
    "bad_input": "Bad input",
    "privacy": "Privacy",
    "active": "Active content",
    "bodies": "The largest bodies",
    "load": "Load",
    "supply": "Supply",
    "lasting": "Time",
    "fuzz": "Fuzz led by coverage",
    "mutants": "Mutations of the reading path",
}
# What README tells, in this order: the kind, the figure's name, and the sentence.
HEADLINE = (
    (
        "exactness",
        "joint distributions enumerated",
        "{} exact distributions of the shipped loop, every one the target's to 1e-12",
    ),
    ("exactness", "pairs of mistakes caught", "{} pairs of planted mistakes caught"),
    ("greedy", "texts equal to plain decoding's", "{} greedy texts identical to plain decoding's"),
    ("numbers", "cases", "{} cases of extreme float32 distributions without a broken invariant"),
    ("faults", "faults injected", "{} faults injected, no text lost"),
    ("bad_input", "inputs", "{} bad inputs, no 5xx, hang or death"),
    ("active", "payload × sink", "{} payloads shown, none ran"),
    ("privacy", "words sent", "{} private words sent, none found in a log or file"),
    ("load", "requests", "{} requests of a crowd, none lost or mixed"),
    ("mutants", "noticed", "mutants of the reading path noticed: {}"),
)
Kinds = dict[str, dict[str, Any]]


def read(results: Path) -> dict[str, Kinds]:
    """By form (`short`, `long`) and kind, what was saved."""
    found: dict[str, Kinds] = {}
    for form in ("short", "long"):
        files = {path.stem: path for path in (results / "trust" / form).glob("*.json")}
        found[form] = {kind: json.loads(files[kind].read_text(encoding="utf-8")) for kind in KINDS if kind in files}
    return found


def table(kinds: Kinds) -> str:
    """A line a figure; what is said beside the figures has no target and stands in a last column of its own."""
    if not kinds:
        return "Not counted yet."
    lines = ["| kind | figure | counted | target | holds |", "|---|---|---|---|---|"]
    for found in kinds.values():
        for place, one in enumerate(found["figures"]):
            mark = f"skipped: {plain(one['skipped'])}" if one["skipped"] else "yes" if one["holds"] else "**no**"
            cells = ["" if place else found["title"], one["name"], one["figure"], one["target"]]
            lines.append(f"| {' | '.join(map(plain, cells))} | {mark if one['target'] else ''} |")
    when = ", ".join(sorted({found["measured"][:10] for found in kinds.values() if "measured" in found}))
    return "\n".join([*lines, "", f"Counted {when}."])


def headline(forms: dict[str, Kinds]) -> str:
    """Of each kind the largest count that holds, in two lines."""
    told = []
    for kind, name, sentence in HEADLINE:
        for form in ("long", "short"):
            figures = forms[form].get(kind, {"figures": []})["figures"]
            held = all(one["holds"] and not one["skipped"] for one in figures)
            figure = next((one["figure"] for one in figures if one["name"] == name), None)
            if figure and held:
                told.append(sentence.format(figure.partition(" of ")[0]))
                break
    half = (len(told) + 1) // 2
    return folded(*(f"- {'; '.join(part)}." for part in (told[:half], told[half:]) if part)) or "- Not counted yet."


def folded(*items: str) -> str:
    """Items of a list, in lines of at most 120 columns."""
    return "\n".join(line for item in items for line in wrap(item, 120, subsequent_indent="  "))


def plain(text: str) -> str:
    """As it stands, wherever Markdown would read more into it."""
    text = " ".join(text.split()).replace("\\", "\\\\")
    return "".join(f"\\{c}" if c in "|<>*_`" and c != "≤" else c for c in text)
