"""A machine that is rented for an hour has torch and transformers, and seldom what the page needs."""

from __future__ import annotations

import subprocess
import sys

import pytest

SELDOM = {"gradio", "gradio_client", "playwright", "starlette", "segno"}


@pytest.mark.long
def test_no_suite_needs_the_pages_packages_to_start() -> None:
    code = f"import sys, specdec.bench.suites, specdec.cli; print({SELDOM} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
