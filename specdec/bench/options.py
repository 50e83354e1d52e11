"""What a measurement is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SUITES = ("embedded", "methods", "hub", "precision", "server")
LONG = ("embedded", "methods", "hub", "precision")  # which keep each row as it is measured


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
    peers: bool = True
    json: Path | None = None
    server: str | None = None
    plain: str | None = None
    minutes: float | None = None
    dtype: str | None = None

    def __post_init__(self) -> None:
        """ValueError for what belongs to another suite."""
        if self.suite not in SUITES:
            raise ValueError(f"there is no suite {self.suite!r}; choose from {', '.join(SUITES)}")
        hub = self.suite == "hub"
        if hub is not bool(self.target) or (not hub and self.draft):
            raise ValueError("--target and --draft belong to --suite hub, which needs a target")
        if self.device != "cpu" and self.suite not in ("embedded", "methods", "hub"):
            raise ValueError("--device belongs to --suite embedded, methods or hub")
        if self.dtype and self.suite not in ("embedded", "methods", "hub"):
            raise ValueError("--dtype belongs to --suite embedded, methods or hub; precision measures them all")
        if self.minutes is not None and self.suite not in LONG:
            raise ValueError(f"--minutes belongs to the long suites: {', '.join(LONG)}")
        if (self.suite == "server") is not bool(self.server) or (self.plain and not self.server):
            raise ValueError("--server and --plain belong to --suite server, which needs a server's address")
