"""Python processes that this one starts."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # where this package is imported from
ELSEWHERE = ["-P"] if sys.version_info >= (3, 11) else []  # nothing is imported from the folder that one stands in


def start(module: str, *arguments: str, **options: Any) -> subprocess.Popen[Any]:
    """Start `python -m module arguments`, with `options` as `subprocess.Popen` takes them. It finds this package."""
    path = os.pathsep.join(filter(None, (ROOT, os.environ.get("PYTHONPATH"))))
    command = [sys.executable, *ELSEWHERE, "-m", module, *arguments]
    return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path}, **options)
