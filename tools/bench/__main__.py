"""`python -m tools.bench --suite gpu`: measurements that developers make; a visitor's own are `specdec bench`.

*shapes* runs models of known shapes with random weights and synthetic acceptance (`shapes.py`), on a GPU beside
transformers. *gpu* is nine minutes on a card: what holds there, and where the time goes (`gpu.py`). With `--json` both
keep each row as it is measured, and a second start goes on; `--minutes` bounds them. *batch* decodes up to 32 texts at
once, with speculation and without (`batch.py`). *serving* is what a reader of the page's stream costs a run, and *page*
what the page costs its reader: bytes, waiting, the browser's main thread. *visitors* is many people at once: a class,
and twenty with live runs of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from specdec.bench.suites import measured

from ..options import run
from . import batch, gpu, page, serving, shapes, visitors
from .options import Options

SUITES: dict[str, Any] = {
    "batch": batch.report, "serving": serving.report, "page": page.report, "visitors": visitors.report,
    "shapes": shapes.report, "gpu": gpu.report,
}  # fmt: skip


def report(options: Options) -> int:
    if options.suite == "gpu":
        gpu.check()  # before a file of rows is begun
    return measured(SUITES[options.suite], options)


def main(arguments: Sequence[str] | None = None) -> int:
    return run(report, Options, arguments, "tools.bench")


if __name__ == "__main__":
    raise SystemExit(main())
