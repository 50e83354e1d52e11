"""What this machine is, for the labels beside measured figures."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from pathlib import Path


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def describe() -> dict[str, str | int]:
    """JSON-ready. The GPU is named, where there is one, whether or not a model runs on it."""
    facts: dict[str, str | int] = {"cpu": processor(), "cores": cores(), "python": platform.python_version()}
    torch = sys.modules.get("torch")  # a page that only replays has not loaded it
    if torch is not None:
        facts["torch"] = str(torch.__version__)
        facts["transformers"] = importlib.metadata.version("transformers")
        if torch.cuda.is_available():
            facts["gpu"] = torch.cuda.get_device_name(0)
    return facts
