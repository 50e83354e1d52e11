"""`python -m tools.bench --suite gpu`: measurements that developers make; a visitor's own are `specdec bench`.

*embedded* and *methods* are the family's ways of drafting beside transformers (`methods.py`). *gpu* is eight minutes on
a card: what holds there, and where the time goes, with models of known shapes and synthetic acceptance (`gpu.py`).
With `--json` these keep each row as it is measured, and a second start goes on; `--minutes` bounds them. *batch*
decodes up to 32 texts at once, with speculation and without (`batch.py`). *passes* is what a pass of SmolLM2 costs by
its rows, in each precision, beside llama.cpp and transformers. *browsers* is what speculation gains in browsers.
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from specdec.bench.suites import commit, write
from specdec.figures import machine

from ..options import run
from . import gpu
from .journal import Journal
from .options import Options

SUITES = {
    "batch": "batch",
    "passes": "passes",
    "browsers": "browsers",
    "gpu": "gpu",
    "embedded": "methods",
    "methods": "methods",
}  # each is a module of this folder, imported when it is asked for: a machine with a GPU may lack the page's packages


def report(options: Options) -> int:
    if options.suite == "gpu":
        gpu.check(options)  # before a file of rows is begun
    suite = importlib.import_module(f".{SUITES[options.suite]}", __package__).report
    if "journal" not in inspect.signature(suite).parameters:
        return write(suite(options), options)
    journal = Journal(rows_of(options.json), setting_of(options), options.minutes)
    found = suite(options, journal)
    if journal.left_out:
        print(f"left out: {'; '.join(journal.left_out)}. The same command, with --json, goes on.", file=sys.stderr)
    code = write(found | {"left_out": journal.left_out}, options)
    journal.close()
    return code


def rows_of(report: Path | None) -> Path | None:
    """Where the rows of a long suite are kept until its report is whole."""
    return report and report.with_suffix(".rows.jsonl")


def setting_of(options: Options) -> dict[str, Any]:
    """What rows that are to stand in one report must have in common."""
    told = {name: value for name, value in vars(options).items() if name not in ("json", "minutes")}
    return json.loads(json.dumps(told | {"machine": machine.describe(), "commit": commit()}))  # type: ignore[no-any-return]


def main(arguments: Sequence[str] | None = None) -> int:
    return run(report, Options, arguments, "tools.bench")


if __name__ == "__main__":
    raise SystemExit(main())
