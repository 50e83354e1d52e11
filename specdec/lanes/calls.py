"""The functions that the page calls in the engine's process (`worker.py`). Only that process imports torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..events import Event
from ..families import zoo
from ..figures import machine
from ..proof import certify as certificate
from ..proof import pair as pairs
from ..proof.mistakes import MISTAKES
from . import race as races
from .default import choose, has_to_measure
from .worker import Prepared


def prepare(family: str, device: str, drafter: str, k: int, temperature: float) -> Iterator[str | Prepared]:
    """Load the pair, and choose drafter and depth if they are left open. Yields "measuring" before measuring costs."""
    loaded = zoo.load(family, device=device)
    if has_to_measure(loaded, drafter, k):
        yield "measuring"
    choice = choose(loaded, drafter, k, temperature)
    yield Prepared(loaded.describe(), machine.describe(), *choice)


def race(family: str, device: str, **arguments: Any) -> Iterator[Event]:
    return races.race(zoo.load(family, device=device), **arguments)


def certify(pair: str, text: str, mistake: str, draws: int, seed: int) -> Iterator[dict[str, Any]]:
    if pair == "embedded":
        zoo.load().use_threads()
        chosen = pairs.embedded(text)
    else:
        chosen = pairs.toy()
    return certificate.certify(chosen, MISTAKES.get(mistake), draws, seed)


CALLS: dict[str, Callable[..., Iterator[Any]]] = {"prepare": prepare, "race": race, "certify": certify}
