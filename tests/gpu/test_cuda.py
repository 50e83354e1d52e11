"""What only a GPU can show: graphs are captured, and the host waits once a cycle. Run with `pytest -m cuda`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import pytest
import torch
from test_graphs import GREEDY, lean_on, PROMPT, WARM
from toyheads import DRAFTS, drafts_on, MODEL, ours, TEXT, view_of

from specdec import engine
from specdec.drafters import (
    DraftModelDrafter,
    Eagle3Drafter,
    EarlyExitDrafter,
    MedusaDrafter,
    NoDrafter,
    PromptLookupDrafter,
)
from specdec.engine import Task
from specdec.events import Committed
from specdec.gpu import lane
from specdec.gpu.accept import TableChooser
from specdec.gpu.cycle import Cycle
from specdec.gpu.drafting import Draft
from specdec.models.transformer import Transformer
from specdec.types import SamplingParams

pytestmark = pytest.mark.cuda
KINDS = ("none", "model", "lookup", *DRAFTS)


@lru_cache
def toy() -> tuple[Transformer, dict[str, Any]]:
    target = ours(MODEL, device="cuda")
    return target, drafts_on(target)


def parts(kind: str) -> tuple[Transformer, Draft, list[int]]:
    """A target, what drafts for it, and a prompt."""
    if kind in DRAFTS:
        target, drafts = toy()
        return target, drafts[kind], TEXT
    model = lean_on("cuda")
    drafts = {"none": None, "model": model, "lookup": "lookup"}
    return model, drafts[kind], PROMPT


def task_of(kind: str, params: SamplingParams) -> Task:
    target, draft, prompt = parts(kind)
    view = view_of(target)
    makers: dict[str, Any] = {
        "none": NoDrafter,
        "lookup": PromptLookupDrafter,
        "model": lambda: DraftModelDrafter(draft),
        "early_exit": lambda: EarlyExitDrafter(view),
        "medusa": lambda: MedusaDrafter(view, draft),
        "eagle3": lambda: Eagle3Drafter(view, draft, 160),
    }
    return Task(view if kind in DRAFTS else target, prompt, params, makers[kind](), 4)


def cycle_of(kind: str, params: SamplingParams, end: int) -> Cycle:
    target, draft, _ = parts(kind)
    return Cycle(target, draft, 4, end, params)


@contextmanager
def no_hidden_syncs() -> Iterator[None]:
    """torch raises where an operation would make the host wait."""
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("params", [GREEDY, WARM], ids=["greedy", "sampled"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_host_waits_once_a_cycle(kind: str, params: SamplingParams) -> None:
    cycle, prompt = cycle_of(kind, params, 100), parts(kind)[2]
    for again in (False, True):  # the first text captures
        cycle.begin(prompt, 100, 1)
        before, cycles, length = cycle.syncs, 0, len(prompt) + 1
        while length < 100:
            if again:
                with no_hidden_syncs():
                    length += cycle.run().accepted + 1
            else:
                length += cycle.run().accepted + 1
            cycles += 1
        assert cycle.syncs - before == cycles
    assert cycle.graphs.reason == "" and cycle.graphs.seconds > 0.0
    with pytest.raises(RuntimeError), no_hidden_syncs():
        cycle.length.item()


@pytest.mark.parametrize("params", [GREEDY, WARM], ids=["greedy", "sampled"])
@pytest.mark.parametrize("kind", KINDS)
def test_replayed_graphs_write_the_plain_loops_text(kind: str, params: SamplingParams) -> None:
    task = task_of(kind, params)
    table = TableChooser(params.seed, len(task.prompt) + params.max_tokens, 4 if kind != "none" else 0)
    plain, device = (
        [token for event in events if isinstance(event, Committed) for token in event.tokens]
        for events in (engine.generate(task, table), lane.generate(task_of(kind, params)))
    )
    assert plain == device


@pytest.mark.parametrize("kind", KINDS)
def test_set_up_takes_at_most_two_seconds(kind: str) -> None:
    start = time.perf_counter()
    cycle = cycle_of(kind, WARM, 100)
    cycle.prepare(len(parts(kind)[2]), 100)
    assert cycle.graphs.keys and not cycle.graphs.reason
    assert time.perf_counter() - start <= 2.0
