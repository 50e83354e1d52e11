"""What only a GPU can show: graphs are captured, and the host waits once a cycle. Run with `pytest -m cuda`.

Texts go through several small buckets, as in the other tests of this room.
"""

import contextlib
import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import Any

import pytest
import torch

from specdec import loop
from specdec.drafters.adaptive import AdaptiveDrafter
from specdec.drafters.base import NoDrafter
from specdec.drafters.draft_model import DraftModelDrafter
from specdec.drafters.eagle3 import Eagle3Drafter
from specdec.drafters.early_exit import EarlyExitDrafter
from specdec.drafters.medusa import MedusaDrafter
from specdec.drafters.prompt_lookup import PromptLookupDrafter
from specdec.events import Failed, Finished
from specdec.families import zoo
from specdec.gpu import graphs
from specdec.gpu.drafting import draft_of
from specdec.gpu.runner import DeviceRunner
from specdec.host import HostExecutor
from specdec.lanes import race
from specdec.models.device import Resources
from specdec.models.transformer import Transformer
from specdec.process import EngineProcess
from specdec.task import Task
from specdec.types import Costs, SamplingParams
from tests.gpu.test_accept import TableSampler
from tests.gpu.test_graphs import GREEDY, lean, lean_on, PROMPT, small_buckets, WARM  # noqa: F401 -- a fixture for all
from tests.models.test_models import FAMILIES
from tests.tokens import ids
from tests.toyheads import DRAFTS, drafts_on, MODEL, ours, TEXT, view_of

pytestmark = pytest.mark.cuda
KINDS = ("none", "model", "lookup", *DRAFTS)


@lru_cache
def toy() -> tuple[Transformer, dict[str, Any]]:
    target = ours(MODEL, device="cuda")
    return target, drafts_on(target)


def filled() -> list[torch.Tensor]:
    taken: list[torch.Tensor] = []
    size = 2**30
    while size >= 512:
        try:
            taken.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
        except torch.OutOfMemoryError:
            size //= 2
    return taken


def parts(kind: str) -> tuple[Transformer, Any, list[int]]:
    if kind in DRAFTS:
        target, drafts = toy()
        return target, drafts[kind], TEXT
    model = lean_on("cuda")
    return model, model, PROMPT


SHARED = Resources()


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
    return Task(view if kind in DRAFTS else target, prompt, params, makers[kind](), 4, resources=SHARED)


def runner_of(kind: str, params: SamplingParams, end: int) -> DeviceRunner:
    return DeviceRunner(parts(kind)[0], draft_of(task_of(kind, params).drafter, 4), end, params)


@contextmanager
def no_hidden_syncs() -> Iterator[None]:
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("params", [GREEDY, WARM], ids=["greedy", "sampled"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_host_waits_once_a_cycle(kind: str, params: SamplingParams) -> None:
    runner, prompt = runner_of(kind, params, 100), parts(kind)[2]
    for again in (False, True):  # the first text captures
        runner.begin(prompt, 100, 1)
        before, cycles, length = runner.syncs, 0, len(prompt) + 1
        while length < 100:
            # In the first one the draft reads the prompt, which comes from the host.
            with no_hidden_syncs() if again and cycles else contextlib.nullcontext():
                length += runner.run().accepted + 1
            cycles += 1
        assert runner.syncs - before == cycles
    assert runner.graphs.reason == "" and runner.graphs.seconds > 0.0
    with pytest.raises(RuntimeError), no_hidden_syncs():
        runner.length.item()


@pytest.fixture(autouse=True)
def nothing_waits() -> Iterator[None]:
    SHARED.idle.clear()
    yield
    SHARED.idle.clear()


@pytest.mark.parametrize("params", [GREEDY, WARM], ids=["greedy", "sampled"])
@pytest.mark.parametrize("kind", KINDS)
def test_replayed_graphs_write_the_plain_loops_text(kind: str, params: SamplingParams) -> None:
    task = task_of(kind, params)
    table = TableSampler(params.seed, len(task.prompt) + params.max_tokens, draft_of(task.drafter, task.depth).k)
    plain = ids(loop.generate(task, HostExecutor(task, table)))
    device = ids(race.run_task(task_of(kind, params)))
    assert plain == device


@pytest.mark.parametrize("kind", KINDS)
def test_set_up_takes_at_most_two_seconds(kind: str, monkeypatch) -> None:
    monkeypatch.setattr(graphs, "SMALLEST", 256)
    start = time.perf_counter()
    runner = runner_of(kind, WARM, 100)
    runner.prepare(len(parts(kind)[2]), 100)
    assert runner.graphs.keys and not runner.graphs.reason
    assert time.perf_counter() - start <= 2.0


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "none"])
def test_an_adaptive_run_stays_in_graphs(kind: str) -> None:
    one = task_of(kind, WARM)
    one.drafter = AdaptiveDrafter(one.drafter, Costs(0.2, (1.0, 1.0, 1.1, 1.1, 1.1)))
    end = list(race.run_task(one))[-1]
    assert isinstance(end, Finished) and end.reason == "length" and end.eager is None
    (runner,) = SHARED.idle.values()
    assert {k for _, _, k in runner.graphs.keys} == set(range(runner.k + 1))


@pytest.mark.parametrize("params", [GREEDY, WARM], ids=["greedy", "sampled"])
def test_bfloat16_runs_in_graphs_as_it_runs_eagerly(params: SamplingParams) -> None:
    model = lean(FAMILIES["qwen3"], torch.bfloat16, "cuda")
    records = []
    for captured in (True, False):
        runner = DeviceRunner(model, draft_of(DraftModelDrafter(model), 3), 60, params)
        runner.graphs.reason = "" if captured else "asked for"
        runner.begin(PROMPT, 60, 5)
        records.append([runner.run() for _ in range(5)])
        assert bool(runner.graphs._captured) == captured
    assert records[0] == records[1] and all(record.finite and record.sound for record in records[0])


def text_of(runner: DeviceRunner) -> list[int]:
    runner.begin(PROMPT, 100, 1)
    length = len(PROMPT) + 1
    while length < 100:
        length += runner.run().accepted + 1
    return runner.text[:100].tolist()


def test_the_end_of_one_runner_leaves_the_others_graphs_whole() -> None:
    runners = [runner_of("model", WARM, 100) for _ in range(2)]
    first, before = (text_of(runner) for runner in runners)
    del runners[0]
    gc.collect()
    torch.cuda.empty_cache()
    scribbled = [torch.full((2**22,), float("nan"), device="cuda") for _ in range(32)]
    assert first == before == text_of(runners[0]) and scribbled
    assert not runners[0].graphs.reason


def test_many_kinds_of_run_push_each_other_out_and_each_is_whole() -> None:
    expected: dict[tuple[str, float], list[int]] = {}
    for _ in range(2):
        for kind in KINDS:
            for temperature in (0.0, 0.8):
                found = ids(race.run_task(task_of(kind, replace(WARM, temperature=temperature))))
                assert expected.setdefault((kind, temperature), found) == found
    assert len(SHARED.idle) == SHARED.max_idle
    torch.cuda.synchronize()


def test_a_capture_that_fails_is_told_and_later_ones_are_whole() -> None:
    with contextlib.closing(EngineProcess("failing_capture")) as worker:
        told = dict(filter(None, worker.call("fail")))
    assert "could not be captured" in told["failed"] and told["sum"] == 1.0
    assert ("before 2.12" in told["later"]) == graphs.FAILURES_STAY
    assert told["text"] == told["expected"]


FAILING = """
import torch
from specdec.lanes import race
from specdec.gpu.graphs import Graphs
from tests.gpu.test_cuda import GREEDY, ids, SHARED, task_of

def fail(engines, send):
    expected = ids(race.run_task(task_of("model", GREEDY)))
    counter = torch.zeros(1, device="cuda")
    failing, later = Graphs("cuda"), Graphs("cuda")
    failing.run("step", lambda: counter.add_(1.0 + 0.0 * float(counter)), counter)
    send(("failed", failing.reason))
    send(("sum", float(counter)))
    later.run("step", lambda: counter.add_(1.0), counter)
    send(("later", later.reason))
    SHARED.idle.clear()
    send(("expected", expected))
    send(("text", ids(race.run_task(task_of("model", GREEDY)))))

def spoil(engines, send):
    torch.zeros(1, device="cuda")[torch.tensor([10**9], device="cuda")] += 1.0  # asserts on the device
    send(("begun", True))

CALLS = {"fail": fail, "spoil": spoil}
"""


@pytest.fixture(autouse=True)
def modules(tmp_path, monkeypatch) -> None:
    (tmp_path / "failing_capture.py").write_text(FAILING, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))


def test_after_an_illegal_access_the_next_call_has_another_process() -> None:
    with contextlib.closing(EngineProcess("failing_capture")) as worker:
        first = worker.start().pid
        with contextlib.suppress(RuntimeError):
            list(worker.call("spoil"))
        assert dict(filter(None, worker.call("fail")))["text"]
        assert worker.start().pid != first


def test_without_room_a_run_says_so_and_the_next_is_whole() -> None:
    expected = ids(race.run_task(task_of("model", GREEDY)))
    SHARED.idle.clear()
    torch.cuda.empty_cache()
    held = filled()
    *_, failed, _ = race.run_task(task_of("model", GREEDY))
    held.clear()
    torch.cuda.empty_cache()
    assert isinstance(failed, Failed) and failed.reason is loop.NO_ROOM
    assert ids(race.run_task(task_of("model", GREEDY))) == expected


@pytest.mark.parametrize("name", FAMILIES)
def test_logits_are_those_of_the_cpu(name: str) -> None:
    rows = []
    for device in ("cpu", "cuda"):
        model = lean(FAMILIES[name], device=device)
        cache = model.new_cache(64)
        rows.append([model.forward(part, cache, rows=len(part)).cpu() for part in (PROMPT, PROMPT[:5], PROMPT[:1])])
    assert all(torch.allclose(a, b, atol=1e-3) for a, b in zip(*rows, strict=True))


def test_a_small_family_is_in_bfloat16_and_its_greedy_text_is_plain_decodings() -> None:
    family = zoo.load("embedded", device="cuda")
    assert family.target.dtype == torch.bfloat16
    prompt, texts = family.encode("Once upon a time"), list[list[int]]()
    for name, k in (("draft_model", 4), ("none", 0)):
        target, drafter = family.new_drafter(name, len(prompt) + 64)
        task = Task(target, prompt, SamplingParams(max_tokens=64, ignore_end=True), drafter, k)
        texts.append(ids(race.run_task(task)))
    assert texts[0] == texts[1]
