"""An engine's process that misbehaves when it is told to; `faults.py` runs it in place of the real one."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator


def tell(how: str, after: int) -> Iterator[str]:
    for answer in range(6):
        if answer == after and how:
            misbehave(how)
        yield "here"


def misbehave(how: str) -> None:
    if how == "dies":
        os._exit(3)
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "silent":
        time.sleep(3600)
    if how == "raises":
        raise OSError("no device")
    if how == "refuses":
        raise ValueError("type less")


CALLS = {"tell": tell}
