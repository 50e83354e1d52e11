"""`python -m tests.report [--long] [--only KIND …] [--json]`: what was tried against the app, counted, as a table.

Each kind runs in a process of its own, as many at once as the machine has cores; one that dies does not hold. With
`--json` one JSON document comes last. The exit code is 0 if all figures hold. `--save` keeps each
kind's figures in assets/results/trust, from where `python -m tools.bench.tables` writes docs/trust.md.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from tools.bench.trust import KINDS

ROOT = Path(__file__).resolve().parents[1]
LONG_ONLY = {"fuzz", "mutants"}
ROOMS = [
    "",
    "tests",
    *(f"tests/{room}" for room in "models drafters proof families traces page page/browser servers".split()),
]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.report", description=__doc__)
    parser.add_argument("--long", action="store_true", help="the whole, instead of three minutes")
    parser.add_argument("--only", nargs="+", choices=KINDS, help="these kinds alone")
    parser.add_argument("--json", action="store_true", help="one JSON document as the last line")
    parser.add_argument("--save", action="store_true", help="keep the figures in assets/results/trust")
    parser.add_argument("--inside", choices=KINDS, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.inside:
        print(json.dumps(counted(options.inside, options.long)))
        return 0
    kinds = options.only or [kind for kind in KINDS if options.long or kind not in LONG_ONLY]
    began = time.monotonic()
    with ThreadPoolExecutor(max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2)) as pool:
        found = {}
        for kind, done in [(kind, pool.submit(alone, kind, options.long)) for kind in kinds]:
            found[kind] = done.result()
            print(table(kind, found[kind]), flush=True)
            if options.save:
                save(kind, found[kind], options.long)
    holds = all(one["holds"] for kind in found.values() for one in kind["figures"])
    took = round(time.monotonic() - began)
    print(f"\n{'all figures hold' if holds else 'NOT all figures hold'}, after {took} s")
    if options.json:
        print(
            json.dumps(
                {"form": form(options.long), "seconds": took, "holds": holds, "kinds": found}, ensure_ascii=False
            )
        )
    return 0 if holds else 1


def form(long: bool) -> str:
    return "long" if long else "short"


def alone(kind: str, long: bool) -> dict[str, Any]:
    """Its figures, from a process of its own; one figure that does not hold if that process fails."""
    command = [sys.executable, "-m", "tests.report", "--inside", kind, *(["--long"] if long else [])]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    try:
        return dict(json.loads(done.stdout.splitlines()[-1]))
    except (ValueError, IndexError):
        last = (done.stderr.strip().splitlines() or ["nothing was said"])[-1]
        failed = {
            "name": "counted",
            "figure": f"exit code {done.returncode}: {last[:200]}",
            "target": "0",
            "holds": False,
        }
        print(done.stderr[-4000:], file=sys.stderr)
        return {"figures": [failed | {"skipped": ""}], "seconds": 0}


def counted(kind: str, long: bool) -> dict[str, Any]:
    """In this process. The paths and settings are those of pytest."""
    sys.path[:0] = [str(ROOT / room) for room in ROOMS]
    import conftest

    conftest.one_thread_a_process.__wrapped__()  # type: ignore[attr-defined]
    os.environ.setdefault("CI", "")
    import torch

    torch.set_num_threads(1)
    began = time.monotonic()
    figures = importlib.import_module(f"tests.trust.{kind}").count(long)
    measured = datetime.now(timezone.utc).isoformat(timespec="minutes")
    return {
        "figures": [asdict(one) for one in figures],
        "seconds": round(time.monotonic() - began),
        "measured": measured,
    }


def table(kind: str, found: dict[str, Any]) -> str:
    lines = [f"\n{KINDS[kind]} ({found['seconds']} s)"]
    for one in found["figures"]:
        mark = "skipped" if one["skipped"] else "holds" if one["holds"] else "DOES NOT HOLD"
        lines.append(f"  {one['name']:<52} {one['figure']:>18}  {one['target']:<18} {mark} {one['skipped']}".rstrip())
    return "\n".join(lines)


def save(kind: str, found: dict[str, Any], long: bool) -> None:
    path = ROOT / "assets" / "results" / "trust" / form(long) / f"{kind}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    found = {"title": KINDS[kind], **found}
    path.write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
