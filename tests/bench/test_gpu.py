"""The suite for a card, without one: its stages on tiny shapes, and what the suite makes of stages that break."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from tools.bench import __main__ as bench
from tools.bench import gpu
from tools.bench.gpu import Scale

TINY = Scale("cpu", "tiny", (16,), (0, 2), 12, 1, (("qkv", 32, 64),), (99, 128), 64, 2**16, 1)


def rows(stage: str) -> list[dict[str, Any]]:
    found = list(gpu.STAGES[stage][0](TINY))
    return json.loads(json.dumps(found))  # type: ignore[no-any-return]


def test_without_a_gpu_the_suite_ends_with_one_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert bench.main(["--suite", "gpu", "--minutes", "9", "--json", str(tmp_path / "report.json")]) == 2
    error = capsys.readouterr().err
    assert "needs an NVIDIA GPU" in error and error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_the_machine_is_told_first() -> None:
    versions, copied = rows("about")
    assert versions["torch"] == torch.__version__ and "driver" in versions and copied["copy_gbps"] > 0.0


def test_graphs_are_held_against_what_they_computed_before() -> None:
    assert [row["equal"] for row in rows("capture")] == [True, True]


@pytest.mark.long
def test_attention_is_first_called_at_lengths_of_its_own() -> None:
    found = rows("attention")
    torch.backends.cuda.enable_cudnn_sdp(True)
    lengths = [row["length"] for row in found]
    assert len(set(lengths)) == len(lengths) == 30 and {row["of"] for row in found} == {"ours", "transformers"}
    assert {(row["cudnn"], row.get("masked")) for row in found} == {
        (cudnn, masked) for cudnn in (True, False) for masked in (True, False, None)
    }


def test_products_are_timed_in_both_layouts() -> None:
    found = rows("products")
    assert len(found) == 3 * 2 * len(gpu.ROWS) and all(row["gbps"] > 0.0 for row in found)
    assert {(row["matrix"], row["out"]) for row in found} == {("qkv", 64), ("head", 99), ("head", 128)}


def test_steps_are_timed_by_k() -> None:
    plain, drafted = rows("steps")
    assert (plain["k"], drafted["k"]) == (0, 2) and plain["draft_ms"] == 0.0 < drafted["draft_ms"]
    assert plain["verify_ms"] > 0.0 and plain["reason"] == "there is no CUDA device"


def test_after_each_drill_the_next_run_is_whole() -> None:
    found = {row["drill"]: row for row in rows("drills")}
    assert set(found) == {"stopped", "not finite", "not captured"} and all(
        row["next_is_whole"] for row in found.values()
    )
    assert found["stopped"]["told"] is None and "not finite" in found["not finite"]["told"]


def test_a_stage_prints_its_rows_as_lines(capsys: pytest.CaptureFixture[str]) -> None:
    gpu.main("capture", TINY)
    told = [gpu.row_of(line) for line in capsys.readouterr().out.splitlines()]
    assert [row and row["ended"] for row in told] == ["first", "second"]


def test_a_stage_that_breaks_or_hangs_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What it had told is kept; the next start measures it again, and those that went well no more."""
    codes = {
        "good": "print('a word'); print('{\"x\": 1}')",
        "bad": "print('{\"x\": 2}', flush=True); import os; os.abort()",
        "slow": "import time; time.sleep(600)",
    }
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: "a card")
    monkeypatch.setattr(gpu, "STAGES", {name: (gpu.about, 0.5 if name == "slow" else 60.0) for name in codes})
    monkeypatch.setattr(
        gpu.children,
        "start",
        lambda _, name, **options: subprocess.Popen([sys.executable, "-c", codes[name]], **options),
    )
    path = tmp_path / "report.json"

    def report() -> dict[str, Any]:
        assert bench.main(["--suite", "gpu", "--json", str(path)]) == 0
        told = json.loads(path.read_text())
        assert told == json.loads(capsys.readouterr().out.splitlines()[-1]) and told["machine"]["gpu"] == "a card"
        return told  # type: ignore[no-any-return]

    first = report()
    stages = first["stages"]
    ended = {name: rows[-1]["ended"] for name, rows in stages.items()}
    assert [row["x"] for name in codes for row in stages[name][:-1]] == [1, 2]
    assert ended["good"]["rc"] == 0 != ended["bad"]["rc"] and not ended["bad"]["out_of_time"]
    assert ended["slow"]["out_of_time"] and first["left_out"] == ["bad", "slow"]
    assert path.with_suffix(".rows.jsonl").exists()
    codes |= {"bad": "print('{\"x\": 4}')", "slow": "print('{\"x\": 5}')", "good": "raise SystemExit(1)"}
    monkeypatch.setattr(gpu, "STAGES", dict.fromkeys(codes, (gpu.about, 60.0)))
    again = report()
    assert [row["x"] for name in codes for row in again["stages"][name][:-1]] == [1, 4, 5]
    assert again["left_out"] == [] and not path.with_suffix(".rows.jsonl").exists()
