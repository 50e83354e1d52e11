"""Certify a server in a process of its own: the page needs no torch, a slow server delays no other run, and stopping
hangs up at once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator
from typing import Any

from ..lanes.worker import Worker
from ..methods import EMBEDDED
from .connect import connect_pair

PATIENCE_S = 420.0  # longer than the client's own limits, whose errors say why


def examining(
    address: str, plain: str, key: str, embedded: bool, draws: int, temperature: float, seed: int
) -> Generator[dict[str, Any] | None, None, None]:
    """Yield the states of `certify`, and None as a heartbeat. ValueError says why it cannot begin.

    `embedded`: the server serves the embedded family, so that its weights are the reference.
    """
    worker = Worker(__name__, (PATIENCE_S, PATIENCE_S))
    try:
        with contextlib.closing(
            worker.call("examine", address, plain, key, embedded, draws, temperature, seed)
        ) as states:
            yield from states
    finally:
        worker.close()


# ---- the other side ----


def examine(
    address: str, plain: str, key: str, embedded: bool, draws: int, temperature: float, seed: int
) -> Iterator[dict[str, Any]]:
    import torch

    from .certificate import certify, Weights

    torch.set_num_threads(1)  # a run on the page beside it wants the others
    server, other = connect_pair(address, plain, key)
    return certify(server, other, Weights.load(EMBEDDED) if embedded else None, temperature, draws, seed)


CALLS = {"examine": examine}
