"""`specdec certify` in a terminal: certificates of our own pairs, and with `--server` of a server of others."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from ..proof.certify import certify, DRAWS, mistakes_of, passed
from ..proof.checks import enumerated, NEAR_TIE
from ..proof.goodness_of_fit import is_red
from ..proof.pair import embedded, guided_toy, ModelPair, toy
from ..servers import certificate
from ..servers.connect import connect_pair
from ..servers.verdict import shown_by, speculated

LONGEST = 120.0  # seconds for a recorded sample that is red: each text that the target excludes needs a new row
EXACT = "float32"  # in it greedy texts are equal without exception
MARKS = {0: "✓", 1: "✗", 2: "–"}


def certify_server(
    address: str, plain: str = "", target: str = "", draft: str = "", draws: int = 0, temperature: float = 0.8,
    out: str = "",
) -> int:  # fmt: skip
    """Print it as it grows; `out` is a file for its JSON, "-" prints that alone. The exit status."""
    if draft and not target:
        raise ValueError("--draft belongs to a --target")
    if out not in ("", "-"):
        Path(out).touch()  # what cannot be written is said before an hour is spent
    key = os.environ.get("SPECDEC_SERVER_KEY", "")
    server, other = connect_pair(address, plain, key)
    weights = certificate.Weights.load(target, draft) if target else None
    result = last(certificate.certify(server, other, weights, temperature, draws))
    written = json.dumps(result, ensure_ascii=False)
    if out == "-":
        print(written)
        return int(result["status"])
    if out:
        Path(out).write_text(written + "\n", encoding="utf-8")
    print("\n".join(lines(result)))
    return int(result["status"])


def last(states: Iterator[dict[str, Any]]) -> dict[str, Any]:
    """The last of `states`; on the way what is being done, on the error stream."""
    result: dict[str, Any] = {}
    before = ""
    for result in states:
        doing = result["doing"] + (f", {result['seconds_left']} s left" if result["seconds_left"] is not None else "")
        if doing and doing != before:
            print(f"{result['seconds']:6.0f} s  {doing}", file=sys.stderr, flush=True)
        before = doing
    return result


def lines(result: dict[str, Any]) -> list[str]:
    facts = result["server"]
    texts = f"{result['draws']} texts of {result['length']} tokens a context at T = {result['temperature']:g}, "
    asked = f"{facts['kind']} {facts['version']}, {facts['model']}: {texts if result['draws'] else 'greedy text, '}"
    return [
        f"{asked}held against {result['against']}",
        *(f"  {note}" for note in result["notes"]),
        "",
        row("context", "greedy", "drafted", "accepted", "G (degrees) by tokens", "mistakes shown", "s"),
        *(row(*cells(one, result["draws"])) for one in result["contexts"]),
        "",
        f"{MARKS[result['status']]} {result['verdict']}, after {result['seconds']:.0f} s",
        *result["sentences"],
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


def line(result: dict[str, Any]) -> str:
    """One certificate for a terminal."""
    closed, sampled, exact = result["closed"], result["sampled"][-1][1], result.get("exact")
    same, rounded = result["greedy"], result["precision"] != EXACT
    near = rounded and same["gap"] is not None and same["gap"] <= NEAR_TIE
    *distributions, equal = passed(result)
    marks = " ".join(["✓" if check else "✗" for check in distributions] + ["≈" if near else "✓" if equal else "✗"])
    tv = " ".join(f"{one[0]:.3f}" for one in sampled)
    more = f"  exact {exact['tv'][-1]:.3g}, draws needed {exact['needed'] or '–'}" if exact else ""
    more += f"  {result['precision']}" if rounded else ""
    more += f", a near-tie at token {same['equal'] + 1}: {same['gap']} apart" if near else ""
    return f"{result['pair']:9} {result['mistake'] or 'none':18} {marks}  error {closed['error']}  {tv}{more}"


def certify_pairs(text: str = "", dtype: torch.dtype | None = None) -> int:
    """Print the certificates of the toy pair, free and under a grammar, and of the embedded models after `text`; 0.

    In another `dtype` the target is another, and its greedy texts may part at near-ties, which are reported.
    """
    for pair in [toy(), guided_toy(), *([embedded(text, dtype)] if text else [])]:
        for key in ("", *mistakes_of(pair)):
            print(line(certificate_of(pair, key)), flush=True)
    return 0


def certificate_of(pair: ModelPair, key: str, seed: int = 11) -> dict[str, Any]:
    """The whole certificate of the shipped rule, or of the mistake `key`; of a toy with what is exact, too."""
    mistake, result, began = mistakes_of(pair).get(key), dict[str, Any](), time.monotonic()
    for state in certify(pair, mistake, max(DRAWS), seed):
        if state["sampled"] and state["done"] == state["sampled"][-1][0]:
            result = state
        if result and time.monotonic() - began > LONGEST and any(map(is_red, result["sampled"][-1][1])):
            break
    return result | ({"exact": enumerated(pair, mistake)} if pair.name in ("toy", "grammar") else {})
