"""A process of its own, where Triton interprets its kernels, or compiles them for a GPU that is not here.

Triton asks while it is imported which of the two: this module imports nothing that might import it, and no other test
meets it interpreting.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path


@contextmanager
def process(interpreted: bool, cache: Path) -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, get_context("spawn"), set_up, (interpreted, str(cache))) as pool:
        yield pool


def set_up(interpreted: bool, cache: str) -> None:
    os.environ |= {"TRITON_INTERPRET": str(int(interpreted)), "TRITON_CACHE_DIR": cache, "OMP_NUM_THREADS": "1"}
