"""What an adapter gives, and what it is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from specdec.servers.in_process import Write

PLAIN = "plain"  # the same adapter without speculation: what must be green before anything is said of drafts


@dataclass
class Asked:
    """A family and its pair in the Hub's layout, how to draft, and a folder for what an engine needs besides."""

    family: str
    target: Path
    draft: Path
    method: str
    k: int
    work: Path
    unused: int  # a token that no text has, for engines that insist on an end token
    mended: bool = False  # one known defect beside the sampling taken away, so that the sampling can be judged
    counts: list[int] = field(default_factory=list)  # drafted and accepted in the last text, where an engine tells


@dataclass(frozen=True)
class Engine:
    """`methods` begins with PLAIN; `package` is its name on PyPI, "" for ours; `mended` is what --mended takes away."""

    name: str
    package: str
    methods: Sequence[str]
    writer: Callable[[Asked], Write]
    mended: str = ""
    precision: str = "float32"  # of the weights that it multiplies, and of the reference
