"""The bench at known shapes, with tiny ones: random weights, synthetic acceptance, and every row says so."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from specdec.models.config import Config
from tools.bench import __main__ as bench
from tools.bench import library, shapes
from tools.bench.options import Options
from tools.bench.waits import host_reads


def test_the_suite_measures_every_lane(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(shapes, "CONTEXTS", (16, 40))
    monkeypatch.setattr(shapes, "DEPTHS", (0, 2))
    monkeypatch.setattr(shapes, "ALPHAS", (0.5, 0.8))
    arguments = ["--suite", "shapes", "--pairs", "tiny", "--tokens", "33", "--repeats", "2", "-k", "2", "3"]
    assert bench.main([*arguments, "--json", str(tmp_path / "report.json")]) == 0
    *table, last = capsys.readouterr().out.splitlines()
    report = json.loads(last)
    assert report == json.loads((tmp_path / "report.json").read_text())
    assert "synthetic" in table[0] and "random weights" in table[0].lower() and report["synthetic"] is True
    growth = {("none", 0, None), ("draft_model", 2, 0.8)}
    sweep = {(name, k, alpha) for name in ("draft_model", "eagle3") for k in (2, 3) for alpha in (0.5, 0.8)}
    sweep |= {("prompt_lookup", 2, None), ("prompt_lookup", 3, None)}
    assert {(r["context"], r["drafter"], r["k"], r["synthetic_alpha"]) for r in report["rows"]} == {
        *((16, *lane) for lane in growth | sweep),
        *((40, *lane) for lane in growth),
    }
    for row in report["rows"]:
        assert row["synthetic"] is True and row["eager_because"] == "there is no CUDA device"
        assert row["host_syncs_per_cycle"] == 1.0
        assert 0.0 < row["roofline_seconds_per_token"] < row["seconds_per_token"]
        assert 0.0 <= row["engine_overhead_share"] < 1.0 and 0.0 <= row["event_overhead_share"] < 1.0
        low, high = row["measured_speedup_interval"]
        assert low <= high
        assert row["verify_cost"] > 0.0
        if row["synthetic_alpha"]:
            assert 1.0 < row["tau"] <= row["k"] + 1 and 0.0 < row["alpha"] <= 1.0
            assert row["draft_cost"] > 0.0
        elif row["drafter"] == "prompt_lookup":
            assert 1.0 <= row["tau"] < 1.5
        else:
            assert row["tau"] == 1.0 and row["alpha"] is None and row["measured_speedup"] == 1.0
    assert {"commit", "version", "measured", "models"} == set(report["provenance"])


def test_a_suite_whose_time_is_over_goes_on_at_its_next_start(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(shapes, "CONTEXTS", (16, 24))
    monkeypatch.setattr(shapes, "DEPTHS", (0,))
    monkeypatch.setattr(shapes, "ALPHAS", (0.5,))
    path, measured = tmp_path / "report.json", list[int]()
    own = shapes.measured

    def watched(name: str, target: Any, drafts: Any, context: int, *rest: Any) -> Any:
        measured.append(context)
        if len(measured) == 2:
            raise KeyboardInterrupt
        return own(name, target, drafts, context, *rest)

    monkeypatch.setattr(shapes, "measured", watched)

    def start(*more: str) -> dict[str, Any]:
        arguments = ["--suite", "shapes", "--pairs", "tiny", "--tokens", "4", "--repeats", "1", "-k", "2", *more]
        bench.main([*arguments, "--json", str(path)])
        return json.loads(path.read_text())  # type: ignore[no-any-return]

    with pytest.raises(FileNotFoundError):
        start()  # is interrupted in the second context
    partly = start("--minutes", "0")
    assert {row["context"] for row in partly["rows"]} == {16} and partly["left_out"] == ["tiny, 24 tokens"]
    assert "goes on" in capsys.readouterr().err
    whole = start()
    assert measured == [16, 24, 24] and whole["left_out"] == []
    assert [row for row in whole["rows"] if row["context"] == 16] == partly["rows"]
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("name", "billions"),
    [("Qwen3-0.6B", 0.596), ("Qwen3-8B", 8.191), ("Llama-3.2-1B", 1.236), ("Llama-3.1-8B", 8.030)],
)
def test_shapes_have_as_many_parameters_as_published(
    name: str, billions: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted on tensors without content."""
    shape, counted = shapes.SHAPES[name], []
    without_content(monkeypatch)
    monkeypatch.setattr(shapes, "Transformer", lambda config, weights, dtype, device: counted.append(weights))
    shapes.random_model(shape, 0)
    total = sum(weight.numel() for weight in counted[0].values())
    assert total / 1e9 == pytest.approx(billions, abs=0.001)
    assert Config.read(shape).num_key_value_heads == 8


def without_content(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "randn", lambda *size, **_: torch.empty(size, device="meta"))


def test_the_head_has_the_published_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    """The authors' for Llama 3.1 8B: .425 B parameters, taps at the inputs of layers 2, 16 and 29."""
    shape, made = shapes.SHAPES["Llama-3.1-8B"], []
    without_content(monkeypatch)
    monkeypatch.setattr(shapes, "Eagle3Head", lambda config, weights, target, taps: made.append((weights, taps)))
    target: Any = SimpleNamespace(config=Config.read(shape), layers=range(shape["num_hidden_layers"]))
    shapes.random_head(shape, shapes.HEADS["Llama-3.1-8B"], target, 0)
    ((weights, taps),) = made
    assert sum(weight.numel() for weight in weights.values()) / 1e9 == pytest.approx(0.425, abs=0.001)
    assert taps == (2, 16, 29) and weights["midlayer.self_attn.k_proj.weight"].shape == (1024, 8192)


def test_the_library_runs_the_same_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the suite gpu does; here on the CPU."""
    monkeypatch.setattr(shapes, "CONTEXTS", (16,))
    rows = [
        {"pair": "tiny", "drafter": drafter, "context": 16, "k": k, "tau": 1.0 + k / 2, "seconds_per_token": seconds}
        for drafter, k, seconds in (("none", 0, 0.001), ("draft_model", 2, 0.0004), ("eagle3", 3, 0.0002))
    ]
    (library,) = shapes.beside("tiny", rows, Options(tokens=12, repeats=1))
    found = shapes.compared(rows, library)
    assert found["plain_over_generate"] == pytest.approx(found["seconds_per_token"]["generate"] / 0.001, rel=1e-3)
    assert "generate_prompt_lookup" in found["seconds_per_token"] and set(found["assisted_seconds_per_cycle"]) == {"2"}
    assert rows[2]["over_generate"] == pytest.approx(5 * found["plain_over_generate"], rel=1e-3)
    assert "over_assisted" not in rows[2]
    cycle = found["assisted_seconds_per_cycle"]["2"]
    assert rows[1]["over_assisted"] == pytest.approx(cycle / 2.0 / rows[1]["seconds_per_token"], rel=1e-3)


@pytest.mark.parametrize("name", ["tiny draft", "tiny target"])
def test_the_library_reads_a_shape_as_we_do(name: str) -> None:
    theirs = library.model(shapes.SHAPES[name], torch.float32, "cpu")
    ours = shapes.random_model(shapes.SHAPES[name], 0)
    assert theirs.num_parameters() == ours.parameters


@pytest.mark.parametrize("inference", [False, True])
def test_waits_are_counted(inference: bool) -> None:
    with torch.inference_mode(inference):
        x = torch.ones(3)
        assert host_reads(lambda: x.sum() + 1) == 0
        assert host_reads(lambda: (float(x.sum()), bool(x[0] > 0), int(x[1]), x[2].item(), x.nonzero())) == 5
