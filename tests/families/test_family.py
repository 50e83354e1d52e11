"""The embedded family: it speaks, and speculation leaves its text as it is."""

import shutil
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args
from unittest.mock import Mock

import pytest
import torch

from specdec.bench import suites as bench
from specdec.bench.suites import PROMPTS
from specdec.cli.commands import Precision
from specdec.drafters.adaptive import AdaptiveDrafter
from specdec.events import Committed, Event, Started, Verified
from specdec.families import zoo
from specdec.families.zoo import Family
from specdec.figures import machine
from specdec.lanes.probe import choose, expect, tune_threads
from specdec.lanes.race import make_task, race_lanes
from specdec.loop import generate
from specdec.messages import Refused
from specdec.paths import FAMILY
from specdec.sampling import probabilities, RandomSampler
from specdec.settings import RunRequest
from specdec.traces.file import Trace
from specdec.types import Costs, SamplingParams
from tests.shallow import rewrite
from tests.tokens import ids

PROMPT = "The old captain looked at the sea and"


@pytest.fixture(scope="module")
def exact() -> Family:
    family = zoo.load("embedded", torch.float32)
    family.costs.setdefault("draft_model", Costs(0.1, (1.0, 1.1, 1.2, 1.3), 0.05))  # measuring them takes seconds
    return family


def greedy_ids(family: Family, prompt: str, drafter: str, k: int, tokens: int = 40) -> list[int]:
    params = SamplingParams(max_tokens=tokens, ignore_end=True)
    choose(family, drafter, k)  # measures the costs by which `adaptive` drafts
    task = make_task(family, family.encode(prompt), RunRequest(prompt, drafter, k, params), details=False)
    return ids(generate(task))


def test_a_chat_template_is_not_copied_and_a_prompt_of_ids_has_none(exact, monkeypatch) -> None:
    monkeypatch.setattr(exact, "chat", SimpleNamespace(around=lambda tokenizer: ([7, 8], [9])))
    for prompt, copied in (("a b", (3, 1)), ([7, 8, 1, 2, 3, 9], (3, 9))):
        drafter = make_task(exact, [7, 8, 1, 2, 3, 9], RunRequest(prompt, "prompt_lookup", 2, SamplingParams())).drafter
        drafter.read_prompt([7, 8, 1, 2, 3, 9])
        assert drafter.propose([7, 8, 1, 2, 3, 9, 1, 2], 2, SamplingParams(), RandomSampler(0)).tokens == copied


@pytest.mark.parametrize("domain", [0, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 2))])
def test_greedy_text_is_plain_text_for_every_drafter(exact, domain: int) -> None:
    prompt = list(PROMPTS.values())[domain][0]
    plain = greedy_ids(exact, prompt, "none", 0, 24)
    for i, drafter in enumerate([*(name for name in exact.drafters if name != "none"), "adaptive"]):
        k = (1, 3, 8)[(i + domain) % 3]
        assert greedy_ids(exact, prompt, drafter, k, 24) == plain, (drafter, k)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.int8], ids=str)
@pytest.mark.parametrize(("domains", "tokens"), [(1, 8), pytest.param(3, 40, marks=pytest.mark.long)])
def test_in_few_bits_texts_part_only_at_near_ties(domains: int, tokens: int, dtype: torch.dtype) -> None:
    family = zoo.load("embedded", dtype)
    for prompts in list(PROMPTS.values())[:domains]:
        plain, fast = (greedy_ids(family, prompts[0], drafter, 4, tokens) for drafter in ("none", "draft_model"))
        parted = next((i for i, (a, b) in enumerate(zip(plain, fast, strict=True)) if a != b), None)
        if parted is not None:
            text = family.encode(prompts[0]) + plain[:parted]
            best = family.target.forward(text, family.target.new_cache(200))[0].float().topk(2).values
            assert float(best[0] - best[1]) <= 2 * 2**-8 * float(best[0].abs())


def test_in_eight_bits_it_is_another_target_and_says_so(exact) -> None:
    family = zoo.load("embedded", torch.int8)
    assert family.name == zoo.load("embedded:int8").name == "embedded:int8"
    assert (family.precision, exact.precision) == ("int8", "float32")
    told = family.describe()
    assert told["dtype"] == told["target"]["weights"] == "int8" and told["threads"] == torch.get_num_threads()
    assert list(family.drafters) == list(exact.drafters)
    text = exact.encode(PROMPT)
    p, q = (f.target.forward(text, f.target.new_cache(64)).softmax(-1) for f in (exact, family))
    assert 1e-4 < float(0.5 * (p - q).abs().sum()) < 0.1
    with pytest.raises(Refused, match="cannot run a target in this precision"):
        race_lanes(family, RunRequest(PROMPT, "draft_model", 4, SamplingParams(), peer=True))
    with pytest.raises(Refused, match="int8 runs only on a CPU"):
        zoo.compute_dtypes(torch.int8, "cuda")


def test_a_precision_has_the_name_that_it_is_told_by() -> None:
    assert [zoo.precision_name(zoo.dtype_of(name)) for name in zoo.PRECISIONS] == [*zoo.PRECISIONS]
    assert set(zoo.PRECISIONS) == set(get_args(Precision))
    assert zoo.dtype_of(None) is None
    with pytest.raises(Refused, match="no precision 'float31'; choose from float32, bfloat16, int8"):
        bench.make_engine("embedded", (), "float31", "cpu")


def test_a_folders_drafter_has_the_acceptance_that_its_training_measured(shallow, tmp_path) -> None:
    folder, measured = tmp_path / "family", {"agreement": [0.66], "overlap": [0.3]}
    shutil.copytree(shallow, folder)
    rewrite(folder / "draft_model", {"trained": measured})
    family = zoo.load(str(folder))
    family.costs |= dict.fromkeys(("draft_model", "eagle3"), Costs(0.0, (1.0, 1.0)))
    assert expect(family, "draft_model", 1, 0.0).speedup == pytest.approx(1.66)
    assert expect(family, "eagle3", 1, 0.0).speedup == pytest.approx(1.6)  # its config.json states none


def test_lanes_of_a_race_take_turns(exact) -> None:
    """By their clocks: `test_interleave.py`."""
    events = race_lanes(exact, RunRequest(PROMPT, "draft_model", 4, SamplingParams(0.8, max_tokens=32, seed=1)))
    lanes = [event.lane for event in events if isinstance(event, Committed)]
    assert len(set(lanes)) == 2 and {*lanes[:3]} == {*lanes}


RECORDED = [  # of the models that are here
    path
    for path in sorted((FAMILY.parent / "traces").glob("*.jsonl"))
    if Trace.load(path).header.models["family"] == "embedded"
]


def verified(events: Iterable[Event]) -> list[Verified]:
    return [e for e in events if isinstance(e, Verified) and e.lane == "speculative"]


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_recorded_traces_are_what_the_engine_does(exact, path: Path) -> None:
    """Golden files: run again, their tokens and decisions come out the same; only the times are free.

    A draft in eight bits rounds as its processor does, so where a coin lies at the edge of its distribution it may draw
    another token here, and from there on the runs part. Plain decoding never does.
    """
    trace = Trace.load(path)
    assert trace.header.source == "recorded"
    started = next(e for e in trace.events if isinstance(e, Started) and e.lane == "speculative")
    asked = RunRequest(trace.header.prompt, started.drafter, started.k, started.params)
    choose(exact, asked.drafter, asked.k)
    again = list(race_lanes(exact, asked))
    assert ids(trace.events, "plain") == ids(again, "plain")
    both = list(zip(verified(trace.events), verified(again), strict=False))
    same = [[p.token for p in old.positions] == [p.token for p in new.positions] for old, new in both]
    kept = same.index(False) if False in same else len(same)
    if kept == len(same):
        assert ids(trace.events) == ids(again)
    for old, new in both[:kept]:
        assert [(p.status, p.u) for p in old.positions] == [(p.status, p.u) for p in new.positions]
        assert [p.p for p in old.positions] == pytest.approx([p.p for p in new.positions], abs=1e-3)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_the_recorded_distributions_are_the_targets(exact, path: Path) -> None:
    trace = Trace.load(path)
    params = next(e.params for e in trace.events if isinstance(e, Started) and e.lane == "speculative")
    text = exact.encode(trace.header.prompt)
    for event in trace.events:
        if isinstance(event, Verified) and event.lane == "speculative" and event.positions:
            draft = [p.token for p in event.positions]
            cache = exact.target.new_cache(len(text) + len(draft))
            distributions = probabilities(exact.target.forward(text + draft, cache, rows=len(draft) + 1), params)
            chances = distributions[torch.arange(len(draft)), torch.tensor(draft)].tolist()
            assert [p.p for p in event.positions] == pytest.approx(chances, abs=1e-4)
        elif isinstance(event, Committed) and event.lane == "speculative":
            text += event.tokens


def test_a_family_has_further_drafts(tmp_path) -> None:
    for name in ("target", "tokenizer", "draft_model"):
        (tmp_path / name).symlink_to(FAMILY / name)
    (tmp_path / "draft_model_story").symlink_to(FAMILY / "draft_model")
    family = zoo.load(str(tmp_path), torch.float32)
    copies = ["prompt_lookup", "suffix", "none"]
    assert [*family.drafters] == [*copies, "early_exit", "draft_model", "draft_model:story"]
    with pytest.raises(Refused, match="by the costs of draft_model:story: measure them first"):
        family.new_drafter("adaptive:draft_model:story", 64)
    family.costs["draft_model:story"] = Costs(0.1, (1.0, 1.2), 0.0)
    _, drafter = family.new_drafter("adaptive:draft_model:story", 64)
    assert isinstance(drafter, AdaptiveDrafter) and drafter.inner.name == "draft_model:story"
    with pytest.raises(Refused, match="choose from prompt_lookup, suffix, none, early_exit, draft_model"):
        race_lanes(family, RunRequest(PROMPT, "medusa", 4, SamplingParams()))
    with pytest.raises(Refused, match="no folder 'target'"):
        zoo.load(str(tmp_path / "nothing"))


@pytest.mark.parametrize(
    ("there", "error", "device"),
    [(False, None, "cpu"), (True, RuntimeError("no kernel image is available"), "cpu"), (True, None, "cuda")],
)
def test_auto_is_a_gpu_that_can_add(monkeypatch, there: bool, error: Exception | None, device: str) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
    monkeypatch.setattr(torch, "ones", Mock(side_effect=error, return_value=1.0))
    assert zoo.resolve_device("auto") == device and zoo.resolve_device("cpu") == "cpu"


@pytest.mark.parametrize("limit, counts", [("", {1, 2, 4}), ("2", {1, 2}), ("1", set())])
def test_no_more_threads_are_tried_than_the_environment_allows(monkeypatch, limit: str, counts: set[int]) -> None:
    family, tried = zoo.load("embedded"), list[int]()
    monkeypatch.setattr(machine, "cores", lambda: 4)
    monkeypatch.setattr(torch, "set_num_threads", tried.append)
    monkeypatch.setenv("OMP_NUM_THREADS", limit)
    before = torch.get_num_threads()
    forward, modes = family.target.forward, list[bool]()

    def time_pass(*arguments: Any, **options: Any) -> torch.Tensor:
        modes.append(torch.is_inference_mode_enabled())
        return forward(*arguments, **options)

    monkeypatch.setattr(family.target, "forward", time_pass)
    best = tune_threads(family, passes=1)
    assert all(modes)
    assert {*tried, *([before] if counts else [])} == counts | ({before} if counts else set())
    assert 1 <= best <= int(limit or 4) and torch.get_num_threads() == before
