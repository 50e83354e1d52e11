"""Start child processes that run Python modules."""

import os
import subprocess
import sys
from typing import Any

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # the folder that holds this package
SAFE_PATH = ["-P"] if sys.version_info >= (3, 11) else []  # do not import from the current directory


def start(module: str, *arguments: str, **options: Any) -> subprocess.Popen[Any]:
    """Start `python -m module arguments`, which can import this package. `options` are those of `subprocess.Popen`."""
    path = os.pathsep.join(filter(None, (ROOT, os.environ.get("PYTHONPATH"))))
    command = [sys.executable, *SAFE_PATH, "-m", module, *arguments]
    return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path}, **options)
