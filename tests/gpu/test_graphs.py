"""Static shapes give the model's own logits; captured or not, a cycle on the device is a cycle of the plain loop."""

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, Qwen3Config

from specdec.drafters.base import NoDrafter
from specdec.drafters.draft_model import DraftModelDrafter
from specdec.drafters.prompt_lookup import PromptLookupDrafter
from specdec.gpu import graphs
from specdec.gpu.drafting import draft_of
from specdec.gpu.graphs import bucket_for, Graphs, StaticDecoder
from specdec.gpu.runner import DeviceRunner
from specdec.methods import METHODS
from specdec.models.config import Config
from specdec.models.transformer import Transformer
from specdec.types import SamplingParams
from tests.gpu.hostreads import HostReads
from tests.models.test_models import BASE, FAMILIES, lean, reference, TEXT
from tests.toyheads import DRAFTS, drafts_on, MAKERS, TARGET, view_of
from tests.toyheads import TEXT as TOY_TEXT
from tools.bench.shapes import synthetic

PROMPT = TEXT[:11]
GREEDY = SamplingParams(temperature=0.0, max_tokens=40, seed=3)
KINDS = ("none", "like", "other", "lookup", *DRAFTS)
WARM = SamplingParams(temperature=0.8, top_k=40, top_p=0.95, max_tokens=40, seed=3)


@pytest.fixture(autouse=True)
def small_buckets(monkeypatch) -> None:
    """A text of fifty tokens then grows through three of them."""
    monkeypatch.setattr(graphs, "SMALLEST", 16)
    monkeypatch.setattr(graphs, "ALIGNED", 8)


@lru_cache
def lean_on(device: str) -> Transformer:
    return lean(FAMILIES["qwen3"], device=device)


def target() -> Transformer:
    return lean_on("cpu")


@lru_cache
def draft(like: bool) -> Transformer:
    """The target's own first layers, which often agree with it, or another model."""
    if not like:
        return lean(LlamaConfig(**{**BASE, "num_hidden_layers": 1}))
    whole = FAMILIES["qwen3"]
    config = Qwen3Config(**{**whole.to_dict(), "num_hidden_layers": 3, "layer_types": None})
    return Transformer(Config.parse(config.to_dict()), reference(whole).state_dict(), torch.float32)


@pytest.mark.parametrize("name", FAMILIES)
def test_logits_are_the_models_own(name: str) -> None:
    model = lean(FAMILIES[name])
    decoder, cache = StaticDecoder(model, 64), model.new_cache(64)
    decoder.prefill(TEXT[:20])
    model.forward(TEXT[:20], cache)
    steps = [(20, TEXT[20:25]), (25, TEXT[25:26]), (22, TEXT[5:10]), (24, TEXT[30:34]), (28, [7]), (29, TEXT[:20])]
    for start, tokens in steps:
        cache.keep(start)
        expected = model.forward(tokens, cache, rows=len(tokens))
        for bucket in {bucket_for(start + len(tokens), 64), 64}:
            with HostReads():
                logits = decoder.forward(torch.tensor(tokens), torch.tensor([start]), bucket)
            assert torch.allclose(logits, expected, atol=2e-5)


def test_buckets_double_and_end_with_the_cache() -> None:
    assert [bucket_for(end, 100) for end in (1, 16, 17, 64, 65, 100)] == [16, 16, 32, 64, 100, 100]


def lane_of(kind: str) -> tuple[Any, Any]:
    if kind in DRAFTS:
        view = view_of()
        return view, MAKERS[kind](view)
    if kind == "lookup":
        return target(), PromptLookupDrafter()
    return target(), NoDrafter() if kind == "none" else DraftModelDrafter(draft(kind == "like"))


def runner_of(kind: str, k: int, capacity: int, params: SamplingParams) -> DeviceRunner:
    _, drafter = lane_of(kind)
    return DeviceRunner(TARGET if kind in DRAFTS else target(), draft_of(drafter, k), capacity, params)


def prompt_of(kind: str, seed: int = 1) -> list[int]:
    return TOY_TEXT if kind in DRAFTS else repetitive(seed) if kind == "lookup" else PROMPT


def on_device(kind: str, k: int, params: SamplingParams, prompt: Sequence[int]) -> tuple[DeviceRunner, list[Any]]:
    end = len(prompt) + params.max_tokens
    runner = runner_of(kind, k, end, params)
    records = [runner.begin(prompt, end, params.seed)]
    while runner.length.item() < end:
        with HostReads():
            records.append(runner.run())
    return runner, records


def repetitive(seed: int) -> list[int]:
    rng = random.Random(seed)
    phrase = [rng.randrange(97) for _ in range(5)]
    return [1, *phrase, rng.randrange(97), *phrase[:3], rng.randrange(97), *phrase]


@pytest.mark.parametrize("kind", ["like", *DRAFTS])
def test_what_a_broken_text_left_behind_does_no_harm(kind: str) -> None:
    runner = runner_of(kind, 3, 60, WARM)
    for prompt in ([3], prompt_of(kind)):
        with torch.inference_mode():
            for decoder in (runner.target, getattr(runner.steps, "decoder", runner.target)):
                for kept in (decoder.cache.data, *decoder.cache.states.values()):
                    kept.fill_(float("nan"))
        runner.begin(prompt, 30, 1)
        record = runner.run()
        assert record.finite and record.sound and record.drafted


def broken(kind: str) -> tuple[Transformer, Any]:
    if kind == "model":
        model = lean(LlamaConfig(**BASE))
        model.embedding = model.embedding * float("nan")
        return target(), DraftModelDrafter(model)
    drafter = METHODS[kind].make(view_of(), drafts_on(TARGET)[kind], 60)
    if kind == "medusa":
        drafter.heads.blocks = [(weight * float("nan"), bias) for weight, bias in drafter.heads.blocks]
    else:
        drafter.head.decoder.embedding = drafter.head.decoder.embedding * float("nan")
    return TARGET, drafter


@pytest.mark.parametrize("kind", ["model", "medusa", "eagle3"])
def test_drafts_that_are_not_finite_do_not_count(kind: str) -> None:
    target, drafter = broken(kind)
    for params in (GREEDY, WARM):
        runner = DeviceRunner(target, draft_of(drafter, 3), 60, params)
        runner.begin(TOY_TEXT, 30, 3)
        record = runner.run()
        assert not record.sound and record.finite and record.drafted == ()
        plain = DeviceRunner(target, draft_of(NoDrafter(), 0), 60, replace(params))
        plain.begin(TOY_TEXT, 30, 3)
        if params is GREEDY:
            assert record.token == plain.run().token


def test_what_does_not_fit_is_refused() -> None:
    small = lean(LlamaConfig(**{**BASE, "max_position_embeddings": 32}))
    with pytest.raises(ValueError, match="reads at most 32"):
        DeviceRunner(target(), draft_of(DraftModelDrafter(small), 3), 60, GREEDY)
    with pytest.raises(ValueError, match="do not fit"):
        DeviceRunner(target(), draft_of(NoDrafter(), 0), 20, GREEDY).begin(PROMPT, 21, 0)


def test_synthetic_acceptance_is_as_asked() -> None:
    params, kept, judged = replace(WARM, max_tokens=110), 0, 0
    runner = DeviceRunner(target(), draft_of(DraftModelDrafter(draft(False)), 4), 128, params, synthetic(0.8))
    for seed in range(3):
        runner.begin(PROMPT, 121, seed)
        while runner.length.item() < 121:
            record = runner.run()
            kept, judged = kept + record.accepted, judged + len(record.verdict().trials)
    assert kept / judged == pytest.approx(0.8, abs=0.08)


class Refusing(Graphs):
    """A device whose capture fails, and whose end of the capture then fails, too."""

    def __init__(self, reason: type[Exception]) -> None:
        super().__init__("cuda")
        self.error = reason

    def _capture(self, step: Any, state: torch.Tensor) -> Any:
        try:
            raise self.error
        finally:
            raise RuntimeError("operation not permitted when stream is capturing")


class Replaying(Graphs):
    """Capture and replay as CUDA has them, but eagerly: warm-ups run for real and are undone."""

    def __init__(self) -> None:
        super().__init__("cuda")
        self.replays = 0

    def _capture(self, step: Any, state: torch.Tensor) -> Any:
        before = state.clone()
        for _ in range(graphs.WARM_UPS):
            step()
            state.copy_(before)
        owner = self

        class Graph:
            def replay(self) -> None:
                owner.replays += 1
                step()

        return Graph()


def test_a_step_that_cannot_be_captured_runs_eagerly_with_the_reason() -> None:
    refusing, length = Refusing(ValueError), torch.zeros(1)
    for _ in range(3):
        refusing.run("add", lambda: length.add_(1.0), length)
    assert length.item() == 3.0
    assert "could not be captured: RuntimeError: operation not permitted" in refusing.reason


def test_a_capture_without_room_ends_the_run() -> None:
    runner = DeviceRunner(target(), draft_of(NoDrafter(), 0), 60, GREEDY)
    runner.graphs = Refusing(torch.OutOfMemoryError)
    with pytest.raises(torch.OutOfMemoryError):
        runner.prepare(len(PROMPT), 40)
    assert not graphs.IN_PROCESS.spoiled


@pytest.mark.parametrize("before", [pytest.param(False, marks=pytest.mark.long), True])
@pytest.mark.parametrize("kind", ["like", "lookup", *DRAFTS])
def test_capturing_changes_nothing(kind: str, before: bool) -> None:
    prompt = prompt_of(kind)
    expected, _ = on_device(kind, 4, WARM, prompt)
    end = len(prompt) + 40
    runner = runner_of(kind, 4, end, WARM)
    runner.graphs = replaying = Replaying()
    if before:
        runner.prepare(len(prompt), end)
    prepared = list(replaying.keys)
    runner.begin(prompt, end, WARM.seed)
    cycles = 0
    while runner.length.item() < end:
        runner.run()
        cycles += 1
    assert runner.text[:end].tolist() == expected.text[:end].tolist()
    assert replaying.replays == 2 * cycles and not replaying.reason
    assert (set(prepared) >= set(expected.graphs.keys)) == before == (replaying.keys == prepared)
