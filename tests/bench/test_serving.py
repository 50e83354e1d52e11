"""The bench of the page's stream runs the app, and a client takes a run beside one that goes to nobody."""

from __future__ import annotations

import json

import pytest

from tools.bench import __main__ as bench


@pytest.mark.long
def test_the_bench_measures_what_a_reader_costs(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["--suite", "serving", "--tokens", "8", "--repeats", "2"]) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert set(report["lanes"]) == {"speculative", "plain", "speedup"} and report["provenance"]["models"]
    for lane in report["lanes"].values():
        assert lane["interval"][0] <= lane["watched_over_alone"] <= lane["interval"][1]
