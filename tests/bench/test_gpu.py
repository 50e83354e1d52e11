"""The suite for a card, at toy scale on a CPU: every stage gives its rows, and one that breaks costs no other."""

import json
import subprocess
import sys
from typing import Any

import pytest
import torch

from tools.bench import __main__ as bench
from tools.bench import gpu


def test_without_a_gpu_the_suite_ends_with_one_sentence(capsys, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert bench.main(["--suite", "gpu", "--json", str(tmp_path / "report.json")]) == 2
    error = capsys.readouterr().err
    assert "needs an NVIDIA GPU" in error and error.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("stage", ["about", "embedded", "steps", "generate", "zero"])
def test_a_stage_gives_rows_of_json(stage: str, capsys) -> None:
    gpu.main(stage, "cpu")
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert rows
    if stage == "embedded":
        assert [row["dtype"] for row in rows] == ["float32", "bfloat16"]
        assert all(row["identical"] == row["prompts"] and row["tau"] > 1 for row in rows)
    if stage == "steps":
        plain, drafted, *measured = rows
        assert plain["draft_ms"] == 0.0 < drafted["draft_ms"] and plain["eager_because"] == "there is no CUDA device"
        assert [row["k"] for row in measured] == [0, 4] and all(row["synthetic"] for row in measured)
    if stage == "generate":
        assert all(row["seconds_per_step"] > 0.0 for row in rows)


def test_a_stage_that_breaks_or_hangs_costs_no_other(tmp_path, monkeypatch, capsys) -> None:
    codes = {
        "good": "print('a word'); print('{\"x\": 1}')",
        "bad": "print('{\"x\": 2}', flush=True); import os; os.abort()",
        "slow": "import time; time.sleep(600)",
    }
    monkeypatch.setattr(gpu, "STAGES", {name: (gpu.about, 0.5 if name == "slow" else 60.0) for name in codes})

    def start(_: str, name: str, device: str, **options: Any) -> subprocess.Popen[str]:
        return subprocess.Popen([sys.executable, "-c", codes[name]], **options)

    monkeypatch.setattr(gpu.children, "start", start)
    path = tmp_path / "report.json"

    def report() -> dict[str, Any]:
        assert bench.main(["--suite", "gpu", "--device", "cpu", "--json", str(path)]) == 0
        capsys.readouterr()
        return json.loads(path.read_text())

    first = report()
    ended = {name: rows[-1]["ended"] for name, rows in first["stages"].items()}
    assert [row["x"] for name in codes for row in first["stages"][name][:-1]] == [1, 2]
    assert ended["good"]["rc"] == 0 != ended["bad"]["rc"] and not ended["bad"]["out_of_time"]
    assert ended["slow"]["out_of_time"] and first["left_out"] == ["bad", "slow"]
    codes |= {"bad": "print('{\"x\": 4}')", "slow": "print('{\"x\": 5}')", "good": "raise SystemExit(1)"}
    monkeypatch.setattr(gpu, "STAGES", dict.fromkeys(codes, (gpu.about, 60.0)))
    again = report()
    assert [row["x"] for name in codes for row in again["stages"][name][:-1]] == [1, 4, 5]
    assert again["left_out"] == []
