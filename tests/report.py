"""`python -m tests.report [--long] [--only KIND …] [--json]`: what was tried against the app, counted, as a table.

A kind is a list of tests, of which all must pass, a module of tests/trust that counts, or both. Each runs in a process
of its own, as many at once as the machine has cores. With `--json` one JSON document comes last. The exit code is 0 if
all figures hold. `--save` keeps each kind's figures in assets/results/trust, from where `python -m tools.bench.tables`
writes docs/trust.md.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from tests.trust.figures import at_least, Figure, none
from tools.bench.trust import KINDS

ROOT = Path(__file__).resolve().parents[1]
ROOMS = [
    "",
    "tests",
    *(f"tests/{room}" for room in "models drafters proof families traces page page/browser servers".split()),
]
# Where the figures of a kind are counted: a function that gives them.
COUNTED = {
    "exactness": "tests.trust.exactness:count",
    "numbers": "tests.trust.numbers:count",
    "mutants": "tools.mutants:count",
}
TESTS = {
    "exactness": "tests/proof/test_lossless.py tests/proof/test_cycles.py tests/test_rules.py",
    "numbers": "tests/test_sampling.py",
    "greedy": "tests/drafters/test_drafters.py tests/drafters/test_heads.py tests/drafters/test_suffix.py",
    "faults": "tests/test_engine.py tests/lanes/test_worker.py tests/lanes/test_zero.py",
    "input": "tests/page/test_guard.py tests/page/test_api.py tests/traces/test_file.py tests/test_commands.py",
    "bounds": "tests/test_serve.py tests/test_exposure.py tests/page/test_strangers.py",
    "crowd": "tests/page/test_line.py tests/page/test_queue.py tests/page/test_turns.py tests/page/test_classroom.py",
    "servers": "tests/servers/test_bad.py tests/servers/test_keys.py",
    "files": "tests/families/test_checkpoints.py tests/families/test_gguf.py",
    "markup": "tests/page/test_traces.py tests/page/browser/test_browser.py",
    "browser": "tests/page/test_browser_engine.py",
    "audit": "tests/traces/test_audit.py",
}
ALL_MARKS = ("bounds", "browser")  # kinds whose tests are run though they are marked `long`


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.report", description=__doc__)
    parser.add_argument("--long", action="store_true", help="tests marked `long`, and mutations, too")
    parser.add_argument("--only", nargs="+", choices=KINDS, help="these kinds alone")
    parser.add_argument("--json", action="store_true", help="one JSON document as the last line")
    parser.add_argument("--save", action="store_true", help="keep the figures in assets/results/trust")
    parser.add_argument("--inside", choices=COUNTED, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.inside:
        print(json.dumps(counted(options.inside)))
        return 0
    kinds = options.only or [kind for kind in KINDS if options.long or kind != "mutants"]
    began = time.monotonic()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = {}
        for kind, done in [(kind, pool.submit(alone, kind, options.long)) for kind in kinds]:
            found[kind] = done.result()
            print(table(kind, found[kind]), flush=True)
            if options.save:
                save(kind, found[kind])
    holds = all(one["holds"] for kind in found.values() for one in kind["figures"])
    took = round(time.monotonic() - began)
    print(f"\n{'all figures hold' if holds else 'NOT all figures hold'}, after {took} s")
    if options.json:
        print(json.dumps({"seconds": took, "holds": holds, "kinds": found}, ensure_ascii=False))
    return 0 if holds else 1


def alone(kind: str, long: bool) -> dict[str, Any]:
    """The figures of a kind, from processes of its own."""
    began, figures = time.monotonic(), list[dict[str, Any]]()
    if kind in COUNTED:
        figures += apart([sys.executable, "-m", "tests.report", "--inside", kind])
    if kind in TESTS:
        figures += [asdict(one) for one in passed(TESTS[kind].split(), long or kind in ALL_MARKS)]
    measured = datetime.now(timezone.utc).isoformat(timespec="minutes")
    return {"figures": figures, "seconds": round(time.monotonic() - began), "measured": measured}


def passed(tests: list[str], long: bool) -> list[Figure]:
    """How many of these tests passed, how many did not, and why some were not run."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.xml"
        options = ["-q", "-n", "0", "-p", "no:cacheprovider", f"--junitxml={log}", *(["-m", ""] if long else [])]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *tests], cwd=ROOT, capture_output=True, text=True
        )
        every = list(ElementTree.parse(log).iter("testcase")) if log.exists() else []
    bad = [one for one in every if one.find("failure") is not None or one.find("error") is not None]
    left = [one for one in every if one.find("skipped") is not None]
    if done.returncode not in (0, 1) or bad:
        print(done.stdout[-4000:], done.stderr[-2000:], file=sys.stderr)
    figures = [at_least("tests passed", len(every) - len(bad) - len(left), 1)]
    figures.append(none("tests failed", len(bad) + (done.returncode not in (0, 1))))
    return [*figures, *([Figure("tests skipped", f"{len(left):,}", "", True)] if left else [])]


def apart(command: list[str]) -> list[dict[str, Any]]:
    """The figures that a command prints; one that does not hold if it fails."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    try:
        return list(json.loads(done.stdout.splitlines()[-1]))
    except (ValueError, IndexError):
        print(done.stderr[-4000:], file=sys.stderr)
        last = (done.stderr.strip().splitlines() or ["nothing was said"])[-1]
        return [asdict(Figure("counted", f"exit code {done.returncode}: {last[:200]}", "0", False))]


def counted(kind: str) -> list[dict[str, Any]]:
    """In this process. The paths and settings are those of pytest."""
    sys.path[:0] = [str(ROOT / room) for room in ROOMS]
    import conftest
    import torch

    conftest.one_thread_a_process.__wrapped__()  # type: ignore[attr-defined]
    torch.set_num_threads(1)
    module, _, name = COUNTED[kind].partition(":")
    count = getattr(importlib.import_module(module), name)
    return [asdict(one) for one in (count(True) if kind == "mutants" else count())]


def table(kind: str, found: dict[str, Any]) -> str:
    lines = [f"\n{KINDS[kind]} ({found['seconds']} s)"]
    for one in found["figures"]:
        mark = "" if not one["target"] else "holds" if one["holds"] else "DOES NOT HOLD"
        lines.append(f"  {one['name']:<52} {one['figure']:>18}  {one['target']:<18} {mark}".rstrip())
    return "\n".join(lines)


def save(kind: str, found: dict[str, Any]) -> None:
    path = ROOT / "assets" / "results" / "trust" / f"{kind}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    found = {"title": KINDS[kind], **found}
    path.write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
