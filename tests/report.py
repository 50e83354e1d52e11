"""`python -m tests.report [--long] [--only KIND …]`: what was tried against the app, counted, as a table.

A kind is a list of tests, of which all must pass; some record figures (`FIGURES`). Each kind runs in a process of its
own, as many at once as the machine has cores. The exit code is 0 if all figures hold. `--save` keeps each kind's
figures in assets/results/trust, from where `python -m tools.bench.tables` writes docs/trust.md.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tools.bench.trust import KINDS

ROOT = Path(__file__).resolve().parents[1]
TESTS = {
    "exactness": "tests/proof/test_lossless.py tests/proof/test_cycles.py tests/test_rules.py",
    "numbers": "tests/test_sampling.py tests/test_numbers.py",
    "greedy": "tests/drafters/test_drafters.py tests/drafters/test_heads.py tests/drafters/test_suffix.py",
    "verifiers": "tests/proof/test_prove.py",
    "faults": "tests/test_loop.py tests/test_process.py",
    "input": "tests/page/test_guard.py tests/page/test_api.py tests/traces/test_file.py tests/test_commands.py",
    "bounds": "tests/test_serve.py tests/test_exposure.py tests/page/test_strangers.py",
    "crowd": "tests/page/test_line.py tests/page/test_queue.py tests/page/test_turns.py tests/page/test_classroom.py",
    "servers": "tests/servers/test_bad.py tests/servers/test_keys.py",
    "files": "tests/families/test_checkpoints.py tests/families/test_gguf.py",
    "markup": "tests/page/test_traces.py tests/page/browser/test_browser.py",
    "browser": "tests/page/test_browser_engine.py",
    "audit": "tests/traces/test_audit.py",
}
# Kinds whose tests are run though they are marked `long`:
WITH_LONG_TESTS = ("exactness", "numbers", "verifiers", "bounds", "browser")
MUTANTS = "mutants"  # the kind that `tools/mutants.py` counts


@dataclass(frozen=True)
class Figure:
    """One line of the table: what was counted, what it should be, and whether it is."""

    name: str
    figure: str
    target: str
    holds: bool


def at_least(name: str, count: float, least: float) -> Figure:
    return Figure(name, f"{count:,}", f"≥ {least:,}", count >= least)


def at_most(name: str, largest: float, most: float) -> Figure:
    """nan is more than anything."""
    return Figure(name, f"{largest:.3g}", f"≤ {most:g}", largest <= most)


def none(name: str, count: int) -> Figure:
    return Figure(name, f"{count:,}", "0", count == 0)


def total(values: list[str]) -> int:
    return sum(map(int, values))


# What tests tell with `record_property(name, value)`, of all tests of a kind together.
FIGURES: dict[str, Callable[[str, list[str]], Figure]] = {
    "joint distributions enumerated": lambda name, values: at_least(name, total(values), 300),
    "largest total variation": lambda name, values: at_most(name, max(map(float, values)), 1e-12),
    "planted mistakes caught": lambda name, values: at_least(name, len({*values}), 18),
    "cases": lambda name, values: at_least(name, total(values), 10_000),
    "prompts with Python's tokens": lambda name, values: at_least(name, total(values), 5_000),
    "invariants broken": lambda name, values: none(name, total(values)),
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.report", description=__doc__)
    parser.add_argument("--long", action="store_true", help="tests marked `long`, and mutations, too")
    parser.add_argument("--only", nargs="+", choices=KINDS, help="these kinds alone")
    parser.add_argument("--save", action="store_true", help="keep the figures in assets/results/trust")
    options = parser.parse_args(arguments)
    kinds = options.only or [kind for kind in KINDS if options.long or kind != MUTANTS]
    began, results = time.monotonic(), dict[str, dict[str, Any]]()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for kind, running in [(kind, pool.submit(result_of, kind, options.long)) for kind in kinds]:
            results[kind] = running.result()
            print(table(kind, results[kind]), flush=True)
            if options.save:
                save(kind, results[kind])
    holds = all(one["holds"] for result in results.values() for one in result["figures"])
    seconds = round(time.monotonic() - began)
    print(f"\n{'all figures hold' if holds else 'NOT all figures hold'}, after {seconds} s")
    return 0 if holds else 1


def result_of(kind: str, long: bool) -> dict[str, Any]:
    began = time.monotonic()
    tests = TESTS.get(kind, "").split()
    figures = in_own_process(mutations) if kind == MUTANTS else [*map(asdict, run_tests(tests, kind, long))]
    measured = datetime.now(timezone.utc).isoformat(timespec="minutes")
    return {"figures": figures, "seconds": round(time.monotonic() - began), "measured": measured}


def run_tests(tests: list[str], kind: str, long: bool) -> list[Figure]:
    marks = "not cuda" if long or kind in WITH_LONG_TESTS else ""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.xml"
        options = ["-q", "-n", "0", "-p", "no:cacheprovider", f"--junitxml={log}", *(["-m", marks] if marks else [])]
        command = [sys.executable, "-m", "pytest", *options, *tests]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        every = list(ElementTree.parse(log).iter("testcase")) if log.exists() else []
    failed = sum(one.find("failure") is not None or one.find("error") is not None for one in every)
    skipped = sum(one.find("skipped") is not None for one in every)
    if done.returncode != 0:
        print(done.stdout[-4000:], done.stderr[-2000:], file=sys.stderr)
    recorded: dict[str, list[str]] = {}
    for one in (one for test in every for one in test.iter("property")):
        recorded.setdefault(one.attrib["name"], []).append(one.attrib["value"])
    figures = [figure(name, recorded[name]) for name, figure in FIGURES.items() if name in recorded]
    figures.append(at_least("tests passed", len(every) - failed - skipped, 1))
    figures.append(none("tests failed", failed + (done.returncode not in (0, 1))))
    return [*figures, *([Figure("tests skipped", f"{skipped:,}", "", True)] if skipped else [])]


def in_own_process(count: Callable[[], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """What `count` returns; a figure that does not hold if its process ends."""
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        try:
            return process.submit(count).result()
        except BrokenProcessPool as error:
            return [asdict(Figure("counted", str(error), "all", False))]


def mutations() -> list[dict[str, Any]]:
    """Dicts, because `try_mutants` imports the class of figures anew, and then no other process knows it."""
    os.environ["OMP_NUM_THREADS"] = "1"
    from tools.mutants import try_mutants

    return [*map(asdict, try_mutants())]


def table(kind: str, result: dict[str, Any]) -> str:
    lines = [f"\n{KINDS[kind]} ({result['seconds']} s)"]
    for one in result["figures"]:
        mark = "" if not one["target"] else "holds" if one["holds"] else "DOES NOT HOLD"
        lines.append(f"  {one['name']:<52} {one['figure']:>18}  {one['target']:<18} {mark}".rstrip())
    return "\n".join(lines)


def save(kind: str, result: dict[str, Any]) -> None:
    path = ROOT / "assets" / "results" / "trust" / f"{kind}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    content = json.dumps({"title": KINDS[kind], **result}, ensure_ascii=False, indent=1)
    path.write_text(content + "\n", encoding="utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
