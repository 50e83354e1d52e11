"""What captured graphs share, and what is left of one that failed: counted on a CUDA that only keeps books."""

from __future__ import annotations

import gc

import pytest
import torch
from fakecuda import Device, STREAMS

from specdec.gpu import graphs
from specdec.gpu.graphs import Graphs


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "_free", [])
    monkeypatch.setattr(graphs, "_made", set())
    monkeypatch.setattr(Graphs, "broken", "")


def captured(device: Device, *keys: str) -> Graphs:
    made, state = Graphs("cuda"), torch.zeros(1)
    for key in keys:
        made.prepare(key, device.product, state)
    assert made.reason == ""
    return made


def test_the_end_of_a_cycles_graphs_leaves_those_of_others_their_workspace(false_cuda: Device) -> None:
    first, second = captured(false_cuda, "draft", "verify"), captured(false_cuda, "draft", "verify")
    del first
    gc.collect()
    second.run("draft", false_cuda.product, torch.zeros(1))
    second.run("verify", false_cuda.product, torch.zeros(1))
    third = captured(false_cuda, "draft")
    del second
    gc.collect()
    third.run("draft", false_cuda.product, torch.zeros(1))


def test_graphs_may_come_and_go_without_end(false_cuda: Device) -> None:
    kept = [captured(false_cuda, "verify")]
    for _ in range(3 * STREAMS):
        kept.append(captured(false_cuda, "verify"))
        if len(kept) > 4:
            del kept[0]
        for one in kept:
            one.run("verify", false_cuda.product, torch.zeros(1))
    assert len(graphs._made) <= 5


def test_where_torch_has_no_more_streams_steps_run_as_they_are(false_cuda: Device) -> None:
    kept = [captured(false_cuda, "verify") for _ in range(STREAMS)]
    late, length = Graphs("cuda"), torch.zeros(1)
    late.run("add", lambda: length.add_(1.0), length)
    assert length.item() == 1.0 and "no more streams" in late.reason
    for one in kept:
        one.run("verify", false_cuda.product, torch.zeros(1))
    del kept[0], one
    gc.collect()
    captured(false_cuda, "verify")


def test_after_a_failed_capture_its_owner_replays_nothing(false_cuda: Device) -> None:
    """The end of the graph that failed may take their workspace along."""
    owner, length = captured(false_cuda, "draft"), torch.zeros(1)

    def forbidden() -> None:
        if false_cuda.capturing is not None:
            raise RuntimeError("operation not permitted when stream is capturing")

    def step() -> None:
        length.add_(1.0)

    owner.run("verify", forbidden, torch.zeros(1))
    gc.collect()
    owner.run("draft", step, torch.zeros(1))
    assert length.item() == 1.0 and "not permitted" in owner.reason


@pytest.mark.parametrize("stays", [True, False], ids=["before torch 2.12", "since"])
def test_a_failed_capture_does_no_harm_to_later_ones(
    false_cuda: Device,
    monkeypatch: pytest.MonkeyPatch,
    stays: bool,
) -> None:
    false_cuda.stays_capturing = stays
    monkeypatch.setattr(graphs, "FAILURES_STAY", stays)
    before, length = captured(false_cuda, "verify"), torch.zeros(1)

    def forbidden() -> None:
        if false_cuda.capturing is not None:
            raise RuntimeError("operation not permitted when stream is capturing")
        length.add_(1.0)

    failed, later = Graphs("cuda"), Graphs("cuda")
    failed.run("draft", forbidden, length)
    assert length.item() == 1.0 and "not permitted" in failed.reason
    default = torch.cuda.current_stream()
    assert default.cuda_stream == -1  # type: ignore[attr-defined]
    later.run("draft", false_cuda.product, length)
    assert ("before 2.12" in later.reason) == stays and bool(later._captured) != stays
    before.run("verify", false_cuda.product, length)
