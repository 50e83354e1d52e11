"""Run `specdec certify`: test a server, and print its certificate in the terminal."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from ..messages import Refused
from ..paths import check_writable
from ..servers.verdict import speculated
from .commands import KEY, Plain

HOUR_S = 3_600.0  # time limit of all requests to a server, for up to certificate.DRAWS draws
ROW = "{:9}{:>10}{:>9}{:>10}  {:62}{:>15}{:>7}"
MARKS = {0: "✓", 1: "✗", 2: "–"}


def certify(
    server: Annotated[str, Option(help="the server's address", show_default=False)],
    plain: Plain = "",
    target: Annotated[str, Option(help="the weights of the server's model: a folder or a name on the Hub")] = "",
    draws: Annotated[int, Option(min=100, help="how many texts are drawn after each context")] = 3_000,
    temperature: Annotated[float, Option(min=0.0, max=100.0, help="of sampled texts; 0: only greedy texts")] = 0.8,
    out: Annotated[Path | None, Option("--json", help="a file for the certificate")] = None,
) -> int:
    """Test from a server's texts whether its speculative decoding is lossless.

    The exit code is 0 if the texts show no error, 1 if they do or the server never speculated, and 2 if this could not
    be tested. The server's key is read from SPECDEC_SERVER_KEY.
    """
    from ..servers import certificate
    from ..servers.connect import connect_pair

    if out:
        check_writable(out)
    total_s = HOUR_S * max(1.0, draws / certificate.DRAWS)
    judged, plain_server = connect_pair(server, plain, os.environ.get(KEY, ""), total_s)
    if not plain and not target:
        raise Refused(
            "Name a plain server of the same model (--plain ADDRESS), or its weights "
            f"(--target {judged.facts.model}), to compare the server with."
        )
    weights = certificate.Weights.load(target) if target else None
    result = last(certificate.certify(judged, plain_server, weights, temperature, draws))
    if out:
        out.write_text(json.dumps(result, ensure_ascii=False) + "\n", encoding="utf-8")
    print("\n".join(lines(result)))
    return int(result["status"])


def last(states: Iterator[dict[str, Any]]) -> dict[str, Any]:
    """Print the progress to stderr, and return the last state."""
    result: dict[str, Any] = {}
    before = ""
    for result in states:
        doing = result["doing"]
        if doing and doing != before:
            print(f"{result['seconds']:6.0f} s  {doing}", file=sys.stderr, flush=True)
        before = doing
    return result


def lines(result: dict[str, Any]) -> list[str]:
    facts = result["server"]
    texts = f"{result['draws']} texts of {result['length']} tokens a context at T = {result['temperature']:g}, "
    subject = f"{facts['kind']} {facts['version']}, {facts['model']}: {texts if result['draws'] else 'greedy text, '}"
    return [
        f"{subject}compared with {result['against']}",
        "",
        ROW.format("context", "greedy", "drafted", "accepted", "G statistic (degrees of freedom)", "bias shown", "s"),
        *(ROW.format(*cells(context)) for context in result["contexts"]),
        "",
        f"{MARKS[result['status']]} {result['verdict']}, after {result['seconds']:.0f} s",
        *result["sentences"],
    ]


def cells(context: dict[str, Any]) -> list[str]:
    """Make the cells of one context's row. An exclamation mark stands before a failed test."""
    greedy, counts = context.get("greedy"), speculated([context])
    tests = [
        f"{'!' if red else ''}{'∞' if g is None else f'{g:.0f}'}({degrees})"
        for (g, degrees, _), red in zip(context.get("tests", ()), context.get("red", ()), strict=True)
    ]
    bias, seconds = context.get("bias"), context.get("seconds")
    return [
        context["name"],
        f"{greedy['equal']} of {greedy['of']}" if greedy else "–",
        *(map(str, counts) if counts else ("–", "–")),
        " ".join(tests) or "–",
        f"{bias:.0%}" if bias is not None else "–",
        f"{seconds:.0f}" if seconds is not None else "–",
    ]
