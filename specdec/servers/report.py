"""`specdec certify --server URL`: the certificate of a server in a terminal."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .connect import connect_pair
from .verdict import shown_by, speculated

MARKS = {0: "✓", 1: "✗", 2: "–"}


def examine(
    address: str, plain: str = "", target: str = "", draft: str = "", draws: int = 0, temperature: float = 0.8,
    out: str = "",
) -> int:  # fmt: skip
    """Print it as it grows; `out` is a file for its JSON, "-" prints that alone. The exit status."""
    if draft and not target:
        raise ValueError("--draft belongs to a --target")
    if out not in ("", "-"):
        Path(out).touch()  # what cannot be written is told before an hour is spent
    from .certificate import certify, Weights

    key = os.environ.get("SPECDEC_SERVER_KEY", "")
    server, other = connect_pair(address, plain, key)
    weights = Weights.load(target, draft) if target else None
    told = last(certify(server, other, weights, temperature, draws))
    written = json.dumps(told, ensure_ascii=False)
    if out == "-":
        print(written)
        return int(told["status"])
    if out:
        Path(out).write_text(written + "\n", encoding="utf-8")
    print("\n".join(lines(told)))
    return int(told["status"])


def last(states: Iterator[dict[str, Any]]) -> dict[str, Any]:
    """The last of `states`; on the way what is being done, on the error stream."""
    told: dict[str, Any] = {}
    before = ""
    for told in states:
        doing = told["doing"] + (f", {told['seconds_left']} s left" if told["seconds_left"] is not None else "")
        if doing and doing != before:
            print(f"{told['seconds']:6.0f} s  {doing}", file=sys.stderr, flush=True)
        before = doing
    return told


def lines(told: dict[str, Any]) -> list[str]:
    facts = told["server"]
    texts = f"{told['draws']} texts of {told['length']} tokens a context at T = {told['temperature']:g}, "
    asked = f"{facts['kind']} {facts['version']}, {facts['model']}: {texts if told['draws'] else 'greedy text, '}"
    return [
        f"{asked}held against {told['against']}",
        *(f"  {note}" for note in told["notes"]),
        "",
        row("context", "greedy", "drafted", "accepted", "G (degrees) by tokens", "mistakes shown", "s"),
        *(row(*cells(one, told["draws"])) for one in told["contexts"]),
        "",
        f"{MARKS[told['status']]} {told['verdict']}, after {told['seconds']:.0f} s",
        *told["sentences"],
    ]


def row(context: str, greedy: str, drafted: str, accepted: str, tests: str, shown: str, seconds: str) -> str:
    return f"{context:9}{greedy:>10}{drafted:>9}{accepted:>10}  {tests:62}{shown:>15}{seconds:>7}"


def cells(one: dict[str, Any], draws: int) -> list[str]:
    """Of one context. An exclamation mark stands before each test that is red."""
    greedy, counts = one.get("greedy"), speculated([one])
    tests = [
        f"{'!' if red else ''}{'∞' if g is None else f'{g:.0f}'}({degrees})"
        for (g, degrees, _), red in zip(one.get("tests", ()), one.get("red", ()), strict=True)
    ]
    known, seconds = one.get("needed"), one.get("seconds")
    return [
        one["name"],
        f"{greedy['equal']} of {greedy['of']}" if greedy else "–",
        *(map(str, counts) if counts else ("–", "–")),
        " ".join(tests) or "–",
        f"{len(shown_by([one], draws))} of {len(known)}" if known else "–",
        f"{seconds:.0f}" if seconds is not None else "–",
    ]
