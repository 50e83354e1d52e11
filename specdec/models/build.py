"""Compile `native.cpp` with g++, once on a machine; the library stays in the user's cache folder.

This module does not import torch, so that the app can compile in a child process while it imports the page.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import hashlib
import logging
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).with_name("native.cpp")
COMPILE = "-std=c++17 -O3 -march=native -ffp-contract=off -fopenmp -shared -fPIC -w".split()
log = logging.getLogger(__name__)


def library_file() -> Path:
    """Return the compiled library, and compile it first unless `folder()` has it whole.

    Raises OSError or SubprocessError.
    """
    compiler = shutil.which("g++")
    if compiler is None:
        raise FileNotFoundError(errno.ENOENT, "no g++")
    version = subprocess.run([compiler, "--version"], capture_output=True, check=True, timeout=30).stdout
    processor = "".join(re.findall(r"^(?:model name|flags)\b.*", Path("/proc/cpuinfo").read_text(), re.M)[:2])
    ingredients = [SOURCE.read_bytes(), " ".join(COMPILE).encode(), version, processor.encode()]
    file = folder() / f"native-{hashlib.sha256(b'|'.join(ingredients)).hexdigest()[:16]}.so"
    with locked(file.with_suffix(".lock")):  # another process may be compiling it
        if not is_whole(file):
            compile_into(file, compiler)
    return file


def compile_into(file: Path, compiler: str) -> None:
    """Compile the library, followed by its digest."""
    log.warning("compiling the layers of small models for this processor; this takes about ten seconds, once")
    part = file.with_suffix(f".{os.getpid()}")
    try:
        subprocess.run([compiler, *COMPILE, str(SOURCE), "-o", str(part)], capture_output=True, check=True, timeout=300)
        code = part.read_bytes()
        part.chmod(0o600)
        part.write_bytes(code + hashlib.sha256(code).digest())
        ctypes.CDLL(str(part))  # what cannot be loaded is not stored
        os.replace(part, file)
    finally:
        part.unlink(missing_ok=True)


@contextlib.contextmanager
def locked(file: Path) -> Iterator[None]:
    """Let one process at a time into the `with`, where the system has such locks."""
    with file.open("w") as lock:
        with contextlib.suppress(ImportError):
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def is_whole(file: Path) -> bool:
    """Return whether `file` ends with the digest of what is before it, and only this user could have written it."""
    with contextlib.suppress(FileNotFoundError):
        status, data = file.stat(), file.read_bytes()
        own = status.st_uid == os.geteuid() and not status.st_mode & 0o022
        return own and hashlib.sha256(data[:-32]).digest() == data[-32:]
    return False


def folder() -> Path:
    """Make and return the folder of compiled libraries, in the user's cache. Raises OSError if others can write it."""
    place = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "specdec"
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    if place.stat().st_uid != os.geteuid() or place.stat().st_mode & 0o022:
        raise PermissionError(errno.EACCES, "others can write to the folder of compiled libraries")
    return place


if __name__ == "__main__":
    with contextlib.suppress(OSError, subprocess.SubprocessError):  # then models run in torch, and say why
        library_file()
