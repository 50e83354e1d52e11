"""The options of `python -m tools.bench`."""

from dataclasses import dataclass
from pathlib import Path

from ..options import option

# The module of each suite. It is imported only if its suite runs: a GPU machine may lack the page's packages.
SUITES = {name: name for name in ("passes", "browsers", "default", "gpu")}
SUITES |= {"embedded": "methods", "methods": "methods"}


@dataclass(frozen=True)
class Options:
    """Measure on this machine, and print a table and one line of JSON."""

    suite: str = option("gpu", "what to measure", choices=tuple(SUITES))
    target: str = option("embedded", "models to load: 'embedded' or a folder")
    tokens: int = option(96, "new tokens per run")
    repeats: int = option(5, "measured rounds, after one to warm up")
    k: tuple[int, ...] = option((2, 4, 6), "draft lengths to try")
    device: str = option("auto", "where to run; cpu runs the suite gpu at toy scale", choices=("auto", "cpu", "cuda"))
    dtype: str | None = option(None, "the target's, in embedded and methods", choices=("bfloat16", "float32", "int8"))
    peers: bool = option(True, "measure transformers' own generation, too")
    json: Path | None = option(None, "also write the JSON to a file; the suite gpu then continues an interrupted run")

    def __post_init__(self) -> None:
        """Raise ValueError for options that cannot be measured."""
        if self.tokens < 2 or self.repeats < 1:
            raise ValueError("--tokens must be at least 2, and --repeats at least 1")
