"""`python -m tools.bench --suite gpu`: measurements that developers make; a visitor's own are `specdec bench`.

*embedded* and *methods* are the family's ways of drafting beside transformers (`methods.py`). *gpu* is six minutes on
a card: what holds there, and where the time goes, with models of known shapes and synthetic acceptance (`gpu.py`).
With `--json` a second start goes on where the first ended. *passes* is what a pass of SmolLM2 costs by its rows, in
each precision, beside llama.cpp and transformers. *browsers* is what speculation gains in browsers, *default* what a
visitor gains who leaves drafter and K open.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from specdec.bench.suites import write

from ..options import run
from .options import Options, SUITES


def report(options: Options) -> int:
    suite = importlib.import_module(f".{SUITES[options.suite]}", __package__)
    return write(suite.report(options), options)


def main(arguments: Sequence[str] | None = None) -> int:
    return run(report, Options, arguments, "tools.bench")


if __name__ == "__main__":
    raise SystemExit(main())
