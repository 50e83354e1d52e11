"""`python -m tools.bench --suite gpu`: measure for README and docs; `specdec bench` has the measurements for users.

The suites *embedded* and *methods* compare the family's drafters with transformers (`methods.py`). *gpu* tests and
measures the engine on a GPU. *passes* times a forward pass of SmolLM2 in our engine, llama.cpp and transformers.
*browsers* measures the speed-up in browsers, and *default* the speed-up of the default drafter and K.
"""

import importlib
from collections.abc import Sequence

from specdec.bench.suites import write

from ..options import run
from .options import Options, SUITES


def report(options: Options) -> int:
    suite = importlib.import_module(f".{SUITES[options.suite]}", __package__)
    write({"suite": options.suite} | suite.report(options), options.json)
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    return run(report, Options, arguments, "tools.bench")


if __name__ == "__main__":
    raise SystemExit(main())
