"""What a measurement is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SUITES = ("embedded", "methods", "pair")


@dataclass(frozen=True)
class Options:
    suite: str = "embedded"
    family: str = "embedded"
    target: str | None = None
    draft: tuple[str, ...] = ()
    device: str = "cpu"
    tokens: int = 96
    repeats: int = 5
    k: tuple[int, ...] = (2, 4, 6)
    json: Path | None = None
    dtype: str | None = None
    drafter: tuple[str, ...] = ()  # none: all of the suite

    def __post_init__(self) -> None:
        """ValueError for what belongs to another suite."""
        if self.suite not in SUITES:
            raise ValueError(f"there is no suite {self.suite!r}; choose from {', '.join(SUITES)}")
        pair = self.suite == "pair"
        if pair is not bool(self.target) or (not pair and self.draft):
            raise ValueError("--target and --draft belong to --suite pair, which needs a target")
