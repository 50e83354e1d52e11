"""What this host lets a visitor ask for: one's own machine much, a public one less."""

from __future__ import annotations

from dataclasses import dataclass

from ..families.presets import is_public


@dataclass(frozen=True)
class Limits:
    """Of a run: characters, new tokens, K, seconds; of a server's certificate, and of live learning: seconds; of the
    line: people; runs a minute of a tab and of an address.

    Behind one address there may be a whole class.
    """

    prompt: int = 4_000
    tokens: int = 256
    k: int = 16
    seconds: float = 60.0
    examination: float = 3_600.0
    learning: float = 60.0
    waiting: int = 32
    runs_of_tab: int = 1_000
    runs_of_address: int = 10_000


OWN = Limits()
PUBLIC = Limits(
    prompt=2_000,
    tokens=128,
    k=8,
    seconds=30.0,
    examination=600.0,
    learning=20.0,
    waiting=32,
    runs_of_tab=6,
    runs_of_address=60,
)


def limits() -> Limits:
    return PUBLIC if is_public() else OWN
