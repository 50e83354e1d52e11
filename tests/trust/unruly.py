"""An engine's process that misbehaves when it is told to; `faults.py` runs it in place of the real one."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator

from specdec.lanes.worker import serve


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
    if how == "garbled":
        for number in range(3, 64):  # whichever of them leads back to the page
            try:
                os.write(number, b"\x80\x05no pickle.")
            except OSError:
                continue
        print("no pickle", file=sys.stderr)
        time.sleep(3600)
    if how == "raises":
        raise OSError("no device")
    if how == "refuses":
        raise ValueError("type less")


if __name__ == "__main__":
    serve({"tell": tell})
