"""`python -m tools.bench --suite gpu`: measurements that developers make; a visitor's own are `specdec bench`.

*embedded* and *methods* are the family's ways of drafting beside transformers (`methods.py`). *gpu* is six minutes on
a card: what holds there, and where the time goes, with models of known shapes and synthetic acceptance (`gpu.py`).
With `--json` these keep each row as it is measured, and a second start goes on; `--minutes` bounds them. *passes*
is what a pass of SmolLM2 costs by its rows, in each precision, beside llama.cpp and transformers. *browsers* is what
speculation gains in browsers, *default* what a visitor gains who leaves drafter and K open.
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from collections.abc import Sequence

from specdec.bench.suites import commit, write
from specdec.figures import machine

from ..options import run
from . import gpu
from .journal import Journal
from .options import Options

# Each is a module of this folder, imported when it is named: a machine with a GPU may lack the page's packages.
SUITES = {name: name for name in ("passes", "browsers", "default", "gpu")} | {
    "embedded": "methods",
    "methods": "methods",
}


def report(options: Options) -> int:
    if options.suite == "gpu":
        gpu.check(options)  # before a file of rows is begun
    suite = importlib.import_module(f".{SUITES[options.suite]}", __package__).report
    if "journal" not in inspect.signature(suite).parameters:
        return write(suite(options), options)
    setting = {name: value for name, value in vars(options).items() if name not in ("json", "minutes")}
    about = json.loads(json.dumps(setting | {"machine": machine.describe(), "commit": commit()}))
    journal = Journal(options.json and options.json.with_suffix(".rows.jsonl"), about, options.minutes)
    result = suite(options, journal)
    if journal.left_out:
        print(f"left out: {'; '.join(journal.left_out)}. The same command, with --json, goes on.", file=sys.stderr)
    code = write(result | {"left_out": journal.left_out}, options)
    journal.close()
    return code


def main(arguments: Sequence[str] | None = None) -> int:
    return run(report, Options, arguments, "tools.bench")


if __name__ == "__main__":
    raise SystemExit(main())
