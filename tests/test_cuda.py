"""What only a GPU can show: graphs are captured, and the host waits once a cycle. Run with `pytest -m cuda`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from test_graphs import GREEDY, lean_on, PROMPT, WARM

from specdec import engine, lane
from specdec.cycle import Cycle
from specdec.drafters import DraftModelDrafter, NoDrafter, PromptLookupDrafter
from specdec.engine import Task
from specdec.events import Committed
from specdec.fused import TableChooser
from specdec.types import SamplingParams

pytestmark = pytest.mark.cuda
KINDS = ("none", "model", "lookup")


def cycle_of(kind: str, params: SamplingParams, end: int) -> Cycle:
    model = lean_on("cuda")
    drafts = {"none": None, "model": model, "lookup": "lookup"}
    return Cycle(model, drafts[kind], 4, end, params)  # type: ignore[arg-type]


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
    cycle = cycle_of(kind, params, 100)
    for again in (False, True):  # the first text captures
        cycle.begin(PROMPT, 100, 1)
        before, cycles, length = cycle.syncs, 0, len(PROMPT) + 1
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
    model = lean_on("cuda")
    drafter = {"none": NoDrafter, "model": lambda: DraftModelDrafter(model), "lookup": PromptLookupDrafter}[kind]
    task = Task(model, PROMPT, params, drafter(), 4)
    table = TableChooser(params.seed, len(PROMPT) + params.max_tokens, 4 if kind != "none" else 0)
    plain, device = (
        [token for event in events if isinstance(event, Committed) for token in event.tokens]
        for events in (engine.generate(task, table), lane.generate(Task(model, PROMPT, params, drafter(), 4)))
    )
    assert plain == device


def test_set_up_takes_at_most_two_seconds() -> None:
    start = time.perf_counter()
    cycle = cycle_of("model", WARM, 100)
    cycle.prepare(len(PROMPT), 100)
    assert cycle.graphs.keys and not cycle.graphs.reason
    assert time.perf_counter() - start <= 2.0
