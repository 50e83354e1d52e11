"""Describe this machine, so that figures say where they were measured, and manage its memory."""

import contextlib
import ctypes
import functools
import importlib.metadata
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

MMAP_THRESHOLD = -3  # the option of `mallopt`
UNLIMITED = 2**62  # bytes of memory, if there is no limit
MIN_RETURNED = 1_000_000  # bytes; pieces of memory from this size on are returned to the system


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def busy() -> bool:
    """Whether other programs use this machine: the load of the last minute exceeds what our own run can cause."""
    return hasattr(os, "getloadavg") and os.getloadavg()[0] > 1.5 * cores()


def processor() -> str:
    info = Path("/proc/cpuinfo")
    named = re.search("^model name.*?:(.*)", info.read_text(errors="replace"), re.MULTILINE) if info.exists() else None
    return named[1].strip() if named else platform.processor() or platform.machine()


def free_memory() -> int | None:
    """Return how many bytes of memory the machine or its container still has for this process; None if unknown."""
    limits = []
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        limits.append(1024 * int(next(line for line in lines if line.startswith("MemAvailable")).split()[1]))
    with contextlib.suppress(OSError, ValueError, StopIteration):  # int("max") fails: no limit
        most, used, stat = (Path(f"/sys/fs/cgroup/memory.{name}").read_text() for name in ("max", "current", "stat"))
        cached = next(line for line in stat.splitlines() if line.startswith("inactive_file"))  # freed when needed
        limits.append(int(most) - int(used) + int(cached.split()[1]))
    return min(limits, default=None)


def memory_of(device: str) -> int:
    """Return how many bytes a model may take on a device: "cpu", "cuda", or "auto" for a GPU if there is one.

    A program without torch takes a GPU for empty, since the engine's process frees the pair that it holds there.
    """
    torch = sys.modules.get("torch")
    if torch is not None and device.startswith("cuda"):
        return int(torch.cuda.mem_get_info(device)[0])
    on_gpu = None if device == "cpu" else gpu_memory()
    return on_gpu or free_memory() or UNLIMITED


def give_memory_back() -> None:
    """Let glibc return large pieces of memory to the system as soon as they are free; it can keep up to 32 MB each."""
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).mallopt(MMAP_THRESHOLD, MIN_RETURNED)


@functools.cache
def gpu_memory() -> int | None:
    """Return the bytes of memory of the largest NVIDIA GPU, without torch; None if there is no GPU."""
    command = ["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    try:
        output = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout
        return 2**20 * max(map(int, output.split()))
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


def describe() -> dict[str, str | int]:
    facts: dict[str, str | int] = {"cpu": processor(), "cores": cores(), "python": platform.python_version()}
    torch = sys.modules.get("torch")  # the page's own process does not load torch
    if torch is not None:
        facts["torch"] = str(torch.__version__)
        facts["transformers"] = importlib.metadata.version("transformers")
        if torch.cuda.is_available():
            shared = ", shared (ZeroGPU)" if os.environ.get("SPACES_ZERO_GPU") else ""
            facts["gpu"] = f"{torch.cuda.get_device_name(0)}{shared}"
    return facts
