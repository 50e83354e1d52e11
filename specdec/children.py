"""Python processes that this one starts. None of them imports from the folder that somebody happens to stand in.

`python -m` and `python -c` put that folder before the standard library: a `random.py` in it would be run.
`-P` forbids that, but Python 3.10 has no such option; so a child first cleans its path, importing nothing but `sys`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # where this package is imported from
# An empty entry is the folder that the child was started in.
START = """import sys
root, module = sys.argv[1:3]
del sys.argv[1:3]
sys.path[:] = filter(None, sys.path)
if root not in sys.path:
    sys.path.insert(0, root)
import runpy
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""


def start(
    module: str, *arguments: str, environment: Mapping[str, str] | None = None, **options: Any
) -> subprocess.Popen[Any]:
    """Start `python -m module arguments`, with `options` as `subprocess.Popen` takes them.

    `environment` is added to this process's own, of whose PYTHONPATH only absolute folders remain.
    """
    folders = [place for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if os.path.isabs(place)]
    variables = {**os.environ, **(environment or {}), "PYTHONPATH": os.pathsep.join(folders)}
    command = [sys.executable, "-c", START, ROOT, module, *arguments]
    return subprocess.Popen(command, env=variables, **options)
