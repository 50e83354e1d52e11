"""The bench of many visitors runs: a teacher, three phones, one run; three visitors. No delay is judged here."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.long
@pytest.mark.exhaustive  # test_serving runs a suite; this one is run before its figures are saved
@pytest.mark.skipif(not (shutil.which("chromium") or shutil.which("chromium-browser")), reason="no chromium")
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc")
@pytest.mark.skipif(not (ROOT / "assets/family/target").is_dir(), reason="the embedded family is not there")
def test_the_suite_measures_a_class() -> None:
    pytest.importorskip("playwright.sync_api")
    code = "from tools.bench import visitors, __main__ as bench\n"
    code += "visitors.PHONES, visitors.PRESSES, visitors.line.VISITORS = 3, 2, 3\n"
    code += "raise SystemExit(bench.main(['--suite', 'visitors']))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    found, line = report["class"], report["line"]
    assert (line["visitors"], line["lost"], line["mixed"], line["in_order"]) == (3, 0, 0, True)
    assert found["phones"] == 3 and found["presses"] == 2 and found["engine_runs"] == 1
    assert 0 < found["delay_median_s"] <= found["delay_p95_s"] and found["server_cpu_s"] > 0 and found["log_kb"] > 0
