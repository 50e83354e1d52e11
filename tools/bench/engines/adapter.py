"""What an adapter gets and gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from specdec.servers.in_process import Write

PLAIN = "plain"  # the adapter without speculation: the control, which must be green first


@dataclass
class Job:
    """A pair in the Hub's layout, how to draft, and a folder for what an engine writes besides."""

    family: str
    target: Path
    draft: Path
    method: str
    k: int
    work: Path
    unused: int | None  # a token that no text has, for engines that insist on an end token
    mended: bool = False  # take away one known defect that hides the sampling
    counts: tuple[int, int] | None = None  # drafted and accepted in the last text, where an engine tells


@dataclass(frozen=True)
class Engine:
    """`methods` begins with PLAIN; `package` is its name on PyPI, "" for ours; `mended` is what --mended takes away."""

    name: str
    package: str
    methods: Sequence[str]
    writer: Callable[[Job], Write]
    mended: str = ""
    precision: str = "float32"  # of the weights that it multiplies, and of the reference
