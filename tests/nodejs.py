"""Runs the JavaScript tests that hold the page against Python, where there is a Node: the machine's, else playwright's.

All others are run by `npm test`."""

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent / "page" / "js"


def bundled_node() -> str | None:
    """Playwright's, which is newer than the machine's."""
    playwright = importlib.util.find_spec("playwright")
    bundled = Path(playwright.origin).parent / "driver" / "node" if playwright and playwright.origin else None
    return str(bundled) if bundled and bundled.exists() else None


def find_node() -> str | None:
    return shutil.which("node") or bundled_node()


def check(name: str, node: str | None = find_node(), **files: Path | str) -> str:
    """`files` reach the tests as environment variables. What they printed, as TAP."""
    if node is None:
        pytest.skip("node is not installed")
    environment = {**os.environ, **{key: str(path) for key, path in files.items()}}
    command = [node, "--test", "--test-reporter=tap", str(TESTS / name)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout
