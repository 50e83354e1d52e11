"""A lane on the device tells what the plain loop tells, for the same random numbers."""

import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from itertools import cycle, pairwise
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import LlamaConfig

from specdec import loop
from specdec.drafters.adaptive import AdaptiveDrafter
from specdec.drafters.base import ChainDrafter
from specdec.drafters.draft_model import DraftModelDrafter
from specdec.drafters.early_exit import EarlyExitDrafter
from specdec.drafters.medusa import MedusaDrafter
from specdec.drafters.prompt_lookup import PromptLookupDrafter
from specdec.events import Committed, Distribution, Drafted, Event, Failed, Finished
from specdec.gpu import drafting, lane
from specdec.gpu.drafting import draft_of
from specdec.host import HostExecutor
from specdec.lanes import race
from specdec.models.device import Resources
from specdec.models.view import TargetView
from specdec.rules import BlockVerification
from specdec.task import Task
from specdec.types import Costs
from tests.gpu.hostreads import host_reads
from tests.gpu.test_accept import TableSampler
from tests.gpu.test_graphs import BASE, broken, GREEDY, lane_of, lean, prompt_of, WARM
from tests.tokens import ids, only
from tests.toyheads import DRAFT, DRAFTS, MAKERS, MEDUSA, TARGET, TEXT, view_of

SHARED = Resources()
TIMES = {"start", "end", "at", "prefill", "draft_seconds", "verify", "other", "step_ends"}


def task(kind: str, k: int = 4, **changes: Any) -> Task:
    target, drafter = lane_of(kind)
    return replace(Task(target, prompt_of(kind, 3), WARM, drafter, k, resources=SHARED), **changes)


def on_device(one: Task) -> Iterator[Event]:
    return loop.generate(one, lane.CudaExecutor(one))


def table(one: Task) -> TableSampler:
    places = min(len(one.prompt) + one.params.max_tokens, one.target.context) + 1
    return TableSampler(one.params.seed, places, draft_of(one.drafter, one.depth).k)


def told(value: Any, figure: Callable[[float], Any] = float) -> Any:
    """Without times; every figure by `figure`. A distribution by token: rounding swaps equals."""
    if isinstance(value, float):
        return figure(value)
    if is_dataclass(value):
        kept = {f.name: told(getattr(value, f.name), figure) for f in fields(value) if f.name not in TIMES}
        if isinstance(value, Finished):
            del kept["draft"], kept["eager"]
        if isinstance(value, Distribution):
            kept["top"] = told(tuple(sorted(value.top, key=lambda one: one.token)), figure)
        return type(value).__name__, kept
    return tuple(told(one, figure) for one in value) if isinstance(value, tuple) else value


def nearly(value: float) -> Any:
    """As far as float32 passes of other shapes agree."""
    return pytest.approx(value, abs=2e-4)


@pytest.mark.parametrize(
    ("params", "details", "k", "prompt"),
    [
        pytest.param(GREEDY, True, 4, None, id="greedy"),
        pytest.param(WARM, True, 4, None, id="sampled"),
        pytest.param(WARM, False, 7, [5], id="sampled, light, after one token", marks=pytest.mark.long),
        pytest.param(GREEDY, False, 1, [3, 1], id="greedy, light, after two", marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize("kind", ["none", "like", "other", "lookup", *DRAFTS])
def test_events_are_the_plain_loops(kind: str, params: Any, details: bool, k: int, prompt: list[int] | None) -> None:
    changes: dict[str, Any] = {"params": params, "details": details} | ({"prompt": prompt} if prompt else {})
    plain = list(loop.generate(one := task(kind, k, **changes), HostExecutor(one, table(one))))
    device = list(on_device(task(kind, k, **changes)))
    assert len(device) == len(plain)
    for ours, theirs in zip(device, plain, strict=True):
        assert told(ours) == told(theirs, nearly)
    for earlier, later in pairwise(device):
        assert moment(earlier) <= moment(later) + 1e-9
    end = device[-1]
    assert end.prefill + end.draft + end.verify + end.other == pytest.approx(end.at, abs=1e-6)


@pytest.mark.parametrize("kind", ["like", *DRAFTS])
def test_at_the_end_of_the_context_drafts_reach_beyond_it_unharmed(kind: str) -> None:
    context = lane_of(kind)[0].context
    changes: dict[str, Any] = {"prompt": (prompt_of(kind) * context)[: context - 18], "params": GREEDY}
    plain = list(loop.generate(one := task(kind, 5, **changes), HostExecutor(one, table(one))))
    device = list(on_device(task(kind, 5, **changes)))
    assert ids(device) == ids(plain) and device[-1].reason == "context"


DEPTHS = (0, 4, 0, 0, 0, 0, 0, 0, 3, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 2)  # cycle by cycle, then again


def adapted(kind: str, stops: bool = True, draw: float = 0.0, **changes: Any) -> Task:
    one = task(kind, **changes)
    one.drafter = AdaptiveDrafter(one.drafter, Costs(0.2, (1.0, 1.0, 1.1, 1.1, 1.1), draw=draw))
    if not stops:  # as on a GPU
        one.drafter.ends_early = False
        if isinstance(one.drafter.inner, ChainDrafter):
            one.drafter.inner.end_drafts_by(lambda confidence, index: False)
    return one


@pytest.fixture
def depths(monkeypatch) -> list[int]:
    """An adaptive drafter rests and tries again as above; the list is how many tokens a draft then had to catch up."""
    caught = list[int]()
    turns = weakref.WeakKeyDictionary[AdaptiveDrafter, Iterator[int]]()

    def depth(self: AdaptiveDrafter, cycle_costs: Sequence[float], ends_early: bool) -> int:
        return min(len(cycle_costs) - 1, next(turns.setdefault(self, cycle(DEPTHS))))

    monkeypatch.setattr(AdaptiveDrafter, "_depth", depth)
    for form in (drafting.DraftModelSteps, drafting.Eagle3Steps):

        def catch_up(self: Any, first: int, last: int, bucket: int, own: Any = form.catch_up) -> None:
            caught.append(last - first)
            own(self, first, last, bucket)

        monkeypatch.setattr(form, "catch_up", catch_up)
    return caught


@pytest.mark.parametrize("params", [pytest.param(GREEDY, marks=pytest.mark.long), WARM], ids=["greedy", "sampled"])
@pytest.mark.parametrize("kind", ["like", "lookup", *DRAFTS])
def test_every_cycle_may_have_another_depth(kind: str, params: Any, depths) -> None:
    changes = {"params": replace(params, max_tokens=50), "details": False}
    one = adapted(kind, stops=False, **changes)
    plain = list(loop.generate(one, HostExecutor(one, table(one))))
    device = list(on_device(adapted(kind, **changes)))
    for ours, theirs in zip(device, plain, strict=True):
        assert told(ours) == told(theirs, nearly)
    drafted = {len(event.tokens) for event in device if isinstance(event, Drafted)}
    assert kind == "lookup" or drafted >= {1, 2, 3, 4}
    assert kind not in ("like", "eagle3") or max(depths) >= 3


def test_what_drawing_a_draft_costs_counts_on_a_device_too() -> None:
    one, other = (adapted("like", stops=False, draw=0.6, details=False) for _ in range(2))
    host, device = loop.generate(one, HostExecutor(one, table(one))), on_device(other)
    depths = [[len(event.tokens) for event in events if isinstance(event, Drafted)] for events in (host, device)]
    assert depths[0] == depths[1] and max(depths[0]) < 4


def moment(event: Event) -> float:
    return float(getattr(event, "at", getattr(event, "end", 0.0)))


def test_a_text_ends_where_the_plain_loop_ends_it() -> None:
    tokens = ids(on_device(task("like")))
    for changes in (
        {"end_tokens": frozenset({tokens[9]})},
        {"params": replace(WARM, stop=(f" {tokens[5]} {tokens[6]}",))},
        {"params": replace(WARM, max_tokens=1)},
        {"params": replace(WARM, max_tokens=0)},
        {"params": replace(WARM, max_tokens=400)},
    ):
        one = task("like", details=False, **changes)
        plain = list(loop.generate(one, HostExecutor(one, table(one))))[-1]
        device = list(on_device(task("like", details=False, **changes)))[-1]
        assert (device.reason, device.tokens, device.text) == (plain.reason, plain.tokens, plain.text)


def test_graphs_are_kept_for_the_next_run_and_never_shared_by_two() -> None:
    SHARED.idle.clear()
    first = list(on_device(task("like")))
    (runner,) = SHARED.idle.values()
    a, b = on_device(task("like")), on_device(task("like"))
    mixed: tuple[list[Event], list[Event]] = ([], [])
    for events in zip(a, b, strict=True):
        for seen, event in zip(mixed, events, strict=True):
            seen.append(event)
    assert ids(mixed[0]) == ids(mixed[1]) == ids(first)
    assert len(SHARED.idle) == 1  # of two that ran at once, one is kept
    for temperature in (0.1, 0.2, 0.3, 0.4, 0.5):
        list(on_device(task("none", params=replace(WARM, temperature=temperature, max_tokens=2))))
    assert len(SHARED.idle) == SHARED.max_idle and runner not in SHARED.idle.values()


def test_heads_and_exits_have_runners_of_their_own(monkeypatch) -> None:
    monkeypatch.setattr(SHARED, "max_idle", len(DRAFTS) + 1)
    SHARED.idle.clear()
    first = {kind: ids(on_device(task(kind))) for kind in DRAFTS}
    assert len(SHARED.idle) == len(DRAFTS)
    for kind in DRAFTS:
        assert ids(on_device(task(kind))) == first[kind]
    assert len(SHARED.idle) == len(DRAFTS)
    view = TargetView(TARGET, exit_layer=4)
    deeper = task("none", target=view, prompt=TEXT, drafter=EarlyExitDrafter(view))
    assert ids(on_device(deeper)) != first["early_exit"] and len(SHARED.idle) == len(DRAFTS) + 1


def test_medusa_drafts_as_many_as_it_has_heads() -> None:
    SHARED.idle.clear()
    list(on_device(task("medusa", 7)))
    (runner,) = SHARED.idle.values()
    assert runner.k == MEDUSA.count == 4


def test_a_closed_run_harms_no_other() -> None:
    SHARED.idle.clear()
    stream = on_device(task("like"))
    for _ in range(5):
        next(stream)
    stream.close()
    (runner,) = SHARED.idle.values()
    assert ids(on_device(task("like"))) == ids(on_device(task("like")))
    assert list(SHARED.idle.values()) == [runner]  # its graphs serve the next run


def test_a_broken_drafter_never_harms_the_text() -> None:
    events = list(on_device(task("like", drafter=broken("model")[1], params=GREEDY)))
    failures = only(events, Failed)
    assert [event.fatal for event in failures] == [False] * 3 and "switched off" in failures[-1].reason
    assert ids(events) == ids(on_device(task("none", params=GREEDY)))


def test_a_broken_target_ends_the_run_with_the_reason() -> None:
    *_, failed, end = on_device(task("none", target=broken("model")[1].model))
    assert isinstance(failed, Failed) and failed.fatal and "not finite" in failed.reason
    assert isinstance(end, Finished) and (end.reason, end.eager) == ("failed", "there is no CUDA device")


def test_what_the_device_cannot_do_the_plain_loop_does() -> None:
    view = view_of()
    block, adaptive, tree = (
        task("none", target=view, drafter=MAKERS[name](view)) for name in ("block", "adaptive:mtp", "medusa:tree")
    )
    small = lean(LlamaConfig(**{**BASE, "max_position_embeddings": 32}))

    class Changed(MedusaDrafter):
        name = "changed"

    for one, reason in (
        (task("none", target=view, drafter=Changed(view, MEDUSA)), "changed drafts on the host"),
        (block, "block drafts on the host"),
        (adaptive, "mtp drafts on the host"),
        (tree, "medusa:tree drafts on the host"),
        (task("none", target=DRAFT), "only our own decoder runs on the device"),
        (task("like", rule=BlockVerification()), "block verification is judged on the host"),
        (task("like", drafter=DraftModelDrafter(small)), "reads at most 32"),
    ):
        assert reason in lane.reason_against(one)
    assert isinstance(list(race.run_task(block))[-1], Finished)
    with pytest.raises(KeyError):  # nothing that is not in the table drafts in any other's way
        draft_of(block.drafter, 4)


def test_the_end_of_a_run_says_why_there_were_no_graphs(monkeypatch) -> None:
    def end(events: Iterator[Event]) -> str | None:
        return list(events)[-1].eager

    assert end(race.run_task(task("like"))) is None  # a CPU has none
    assert end(on_device(task("like"))) == "there is no CUDA device"
    for module in (lane, race):
        monkeypatch.setattr(module, "target_of", lambda task: SimpleNamespace(device="cuda"))
    assert end(race.run_task(task("like"))) == "only our own decoder runs on the device"


@pytest.mark.parametrize("around", [(0, 0), (3, 0), (0, 4), (3, 4), (8, 8)])
def test_a_templates_tokens_are_not_copied(around: tuple[int, int]) -> None:
    for prompt in ((1, 2, 3, 9, 1, 2, 7, 5, 2, 3, 8, 1, 2, 4, 6, 1, 2, 3), tuple(prompt_of("lookup", 3))):
        one = task("lookup", 6, prompt=prompt, params=GREEDY, drafter=PromptLookupDrafter(around), details=False)
        ours = list(loop.generate(replace(one, drafter=PromptLookupDrafter(around)), HostExecutor(one, table(one))))
        assert [told(event, nearly) for event in on_device(one)] == [told(event, nearly) for event in ours]


@pytest.mark.parametrize("make", [task, pytest.param(adapted, marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", ["like", "lookup", *DRAFTS])
def test_the_host_waits_once_a_cycle(kind: str, make: Callable[..., Task], depths) -> None:
    SHARED.idle.clear()
    events = list[Event]()
    assert host_reads(lambda: events.extend(on_device(make(kind, details=False)))) == 0
    (runner,) = SHARED.idle.values()
    cycles = len(only(events, Committed))
    assert runner.syncs == cycles
    if kind == "like" and make is task:
        assert host_reads(lambda: list(loop.generate(make(kind, details=False)))) > 10 * cycles


@pytest.mark.parametrize("kind", ["like", "eagle3"])
def test_the_draft_reads_the_prompt_in_the_prefill(kind: str, monkeypatch) -> None:
    form = drafting.DraftModelSteps if kind == "like" else drafting.Eagle3Steps
    told, prefill = list[str](), form.prefill

    def read(self: Any, prompt: Any) -> None:
        told.append("read")
        prefill(self, prompt)
        time.sleep(0.2)

    monkeypatch.setattr(form, "prefill", read)
    for event in on_device(task(kind, details=False)):
        told.append(type(event).__name__)
    assert told.index("Started") < told.index("read") < told.index("Committed")
    assert isinstance(event, Finished) and event.prefill > 0.2
    short = list(on_device(task(kind, params=replace(WARM, max_tokens=1))))
    assert told.count("read") == 1 and isinstance(short[-1], Finished)  # a text of one token needs no draft


def test_a_short_run_has_one_graph_a_step() -> None:
    for tokens, context in ((40, 512), (236, 512), (400, 1024)):
        one = task("like", params=replace(WARM, max_tokens=tokens))
        one.target = SimpleNamespace(context=context)
        capacity = lane.capacity(one)
        assert capacity >= len(one.prompt) + tokens and (capacity + one.k + 1) & (capacity + one.k) == 0


@pytest.fixture
def crowded(monkeypatch) -> Iterator[SimpleNamespace]:
    """A device with room for one runner; `refused` has how many waited whenever there was none."""
    device = SimpleNamespace(room=1, refused=[])

    class Large(lane.DeviceRunner):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            if len(SHARED.idle) >= device.room:
                device.refused.append(len(SHARED.idle))
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
            super().__init__(*arguments, **options)

    SHARED.idle.clear()
    monkeypatch.setattr(lane, "DeviceRunner", Large)
    yield device
    SHARED.idle.clear()


def test_a_run_takes_the_room_of_those_that_wait(crowded) -> None:
    list(on_device(task("none")))
    (first,) = SHARED.idle.values()
    assert isinstance(list(on_device(task("like")))[-1], Finished)
    assert first not in SHARED.idle.values() and len(SHARED.idle) == 1 and crowded.refused == [1]


def test_a_run_without_room_ends_in_one_sentence_and_the_next_is_whole(crowded) -> None:
    crowded.room = 0
    *_, failed, end = on_device(task("none"))
    assert isinstance(failed, Failed) and failed.fatal
    assert failed.reason is loop.NO_ROOM
    assert isinstance(end, Finished) and end.reason == "failed" and crowded.refused == [0, 0]
    crowded.room = 1
    assert ids(on_device(task("none")))
