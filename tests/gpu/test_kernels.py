"""Triton's kernels against their specification, by Triton's interpreter; how few they are; when torch's are taken."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from typing import Any

import kernelcases
import pytest
import torch
from apart import process
from kernelcases import Case
from test_models import FAMILIES, reference, TEXT

from specdec.gpu import trial
from specdec.gpu.ops import Operations
from specdec.models.config import Config
from specdec.models.transformer import Transformer
from specdec.types import SamplingParams
from tools import launches

needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed: it is for Linux")
LIMITS = {torch.float32: 1e-5, torch.bfloat16: 1e-2}
SHARED = {75: 64, 80: 163, 86: 99, 90: 227, 100: 227}  # KiB that one program may have, by compute capability
GREEDY = SamplingParams(temperature=0.0)
OTHER_FAMILIES = [name for name in FAMILIES if name not in ("qwen3", "mistral window", "llama grouped heads")]
# Each shape once, and each generation of GPUs, where it has least memory.
COMPILED = {
    (90, "qwen"): [],
    (75, "small"): [pytest.mark.long],
    (86, "wide"): [pytest.mark.long],
    (100, "llama"): [pytest.mark.long],
}


@pytest.fixture(scope="module")
def interpreter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessPoolExecutor]:
    with process(True, tmp_path_factory.mktemp("triton")) as pool:
        yield pool


def cases() -> Iterator[Any]:
    """Every type, size of heads and number that shares keys with eight steps each; those of few rows are short.

    Behind 290 tokens attention has several splits, and each several blocks of keys.
    """
    number = 0
    for dtype in LIMITS:
        yield pytest.param(Case(dtype, rows=2, start=290, bucket=300), id=f"{dtype}-after-a-text")
        for size in (64, 96, 128, 256, 12):
            for heads, kv_heads in ((2, 2), (2, 1), (8, 2), (7, 1)):
                for variant in range(8):
                    number += 1
                    rows = 1 + (number * 5 + variant) % 17
                    bucket = (32, 64, 100, 300)[(variant + number // 8) % 4]
                    start = (0, bucket // 2, bucket - rows)[variant % 3]
                    case = Case(
                        dtype, heads, kv_heads, size, rows, min(start, bucket - rows), bucket,
                        (None, 1, 7, 50)[number % 4], bool(variant & 1), bool(variant & 2), variant != 5, variant == 6,
                        bool(variant & 4), (96, 1025, 33)[number % 3], (80, 600)[variant % 2],
                    )  # fmt: skip
                    short = rows <= 3 and heads <= 2 and size in (64, 96, 12)
                    marks = [] if short else [pytest.mark.long, pytest.mark.exhaustive]
                    yield pytest.param(case, marks=marks, id=f"{number}-{case}")


@needs_triton
@pytest.mark.parametrize("case", cases())
def test_kernels_give_what_their_specification_gives(interpreter: ProcessPoolExecutor, case: Case) -> None:
    assert interpreter.submit(kernelcases.distance, case).result() <= LIMITS[case.dtype]


@pytest.mark.long
def test_torch_itself_would_be_taken() -> None:
    """The way without kernels, by the measure and the limits that kernels are tried with."""
    for case in (param.values[0] for param in cases()):
        assert kernelcases.distance(case, Operations) <= trial.LIMITS[case.dtype], str(case)


def test_there_are_three_hundred_cases() -> None:
    found = [param.values[0] for param in cases()]
    assert len({str(case) for case in found}) >= 250 and len(found) >= 300
    assert {case.rows for case in found} == set(range(1, 18))
    assert {case.start + case.rows == case.bucket for case in found} == {True, False}


@needs_triton
def test_what_is_out_of_sight_does_no_harm_and_nan_is_told(interpreter: ProcessPoolExecutor) -> None:
    assert interpreter.submit(kernelcases.unseen_and_broken).result() == (True, True)


@needs_triton
@pytest.mark.parametrize(
    "name",
    [
        "qwen3",
        pytest.param("mistral window", marks=pytest.mark.long),
        pytest.param("llama grouped heads", marks=pytest.mark.long),  # with biases
        # The kernels give what torch gives (above), and with torch `test_trees` has every family's own logits.
        *(pytest.param(name, marks=[pytest.mark.long, pytest.mark.exhaustive]) for name in OTHER_FAMILIES),
    ],
)
def test_logits_are_the_models_own(interpreter: ProcessPoolExecutor, name: str) -> None:
    whole = FAMILIES[name]
    given = Config.read(whole.to_dict()), reference(whole).state_dict(), TEXT
    assert interpreter.submit(kernelcases.logits_apart, *given).result() <= 2e-5


@needs_triton
def test_nothing_else_is_interpreted() -> None:
    assert "TRITON_INTERPRET" not in os.environ
    from specdec.gpu import kernels

    assert type(kernels.gate_kernel).__name__ == "JITFunction" and "triton.runtime.interpreter" not in sys.modules


def targets() -> Iterator[Any]:
    qwen = Case(torch.bfloat16, 32, 8, 128, 5, 0, 512, width=4096, inner=12288)
    llama = Case(torch.bfloat16, 32, 8, 64, 17, 0, 4096, norm=False, width=2048, inner=8192)
    small = Case(torch.float32, 9, 3, 64, 5, 0, 512, norm=False, width=576, inner=1536)
    wide = Case(torch.bfloat16, 4, 2, 256, 17, 0, 512, width=1024, inner=3072)
    for capability in SHARED:
        for name, case in {"qwen": qwen, "llama": llama, "small": small, "wide": wide}.items():
            if capability == 75 and case.dtype == torch.bfloat16:  # has none
                continue
            marks = COMPILED.get((capability, name), [pytest.mark.long, pytest.mark.exhaustive])
            yield pytest.param(capability, case, marks=marks, id=f"sm_{capability}-{name}")


@needs_triton
@pytest.mark.parametrize(("capability", "case"), targets())
def test_kernels_compile_for_gpus_and_fit_their_memory(capability: int, case: Case, tmp_path: Any) -> None:
    with process(False, tmp_path) as pool:
        shared = pool.submit(kernelcases.compiled, capability, case).result()
    assert len(shared) == 4 and max(shared.values()) <= SHARED[capability] * 1024


CONFIGS = {
    "qwen3": Config.read(FAMILIES["qwen3"].to_dict()),
    "llama": Config.read(FAMILIES["llama tied"].to_dict()),
}


@needs_triton
@pytest.mark.parametrize(("name", "most"), [("qwen3", 9), ("llama", 8)])
def test_a_layer_is_few_launches(name: str, most: int) -> None:
    for rows in (1, 5):
        count = launches.of_a_layer(CONFIGS[name], torch.bfloat16, rows, 64, True)
        assert count.total() <= most and sum(number for kernel, number in count.items() if "mm" in kernel) == 4


@pytest.mark.parametrize(
    ("name", "rows", "most"), [("qwen3", 1, 18), ("qwen3", 5, 20), ("llama", 1, 16), ("llama", 5, 18)]
)
def test_without_triton_a_layer_is_at_most_so_many(name: str, rows: int, most: int) -> None:
    assert launches.of_a_layer(CONFIGS[name], torch.bfloat16, rows, 64, False).total() <= most


def test_views_and_allocations_are_no_launches() -> None:
    x = torch.empty(3, 4, device="meta")

    def step() -> None:
        y = x.view(4, 3).t()[1:].unsqueeze(0)  # looks
        torch.empty_like(x)
        x.add_(1.0)  # one
        y.reshape(-1)  # one: it copies
        torch.addmm(x, x, torch.empty(4, 4, device="meta"))  # two: it copies x first
        x.addmm_(x, torch.empty(4, 4, device="meta"))  # one

    assert launches.counted(step, False) == {"add_": 1, "reshape": 1, "addmm": 2, "addmm_": 1}


@needs_triton
def test_a_cycle_is_counted_with_its_drafts() -> None:
    target, draft = CONFIGS["qwen3"], CONFIGS["llama"]
    plain, few = (launches.of_a_cycle(target, draft, torch.float32, 3, 64, GREEDY, triton) for triton in (False, True))
    assert plain.keys() == few.keys() == {"draft", "verify"}
    assert all(0 < few[name] < plain[name] for name in few)
    alone = launches.of_a_cycle(target, None, torch.float32, 0, 64, GREEDY, True)
    assert alone.keys() == {"verify"} and alone["verify"] <= few["verify"]
    assert few["draft"] >= 3 * 8 * draft.num_hidden_layers


class Slips(Operations):
    """A kernel that is off by a little."""

    def gate(self, product: torch.Tensor, stream: torch.Tensor | None) -> torch.Tensor:
        return super().gate(product, stream) * 1.01


class Breaks(Operations):
    """Its attention, the third of four results, is not a number."""

    def attend(self, *args: Any) -> torch.Tensor:
        return super().attend(*args) * float("nan")


class Fails(Operations):
    def attend(self, *args: Any) -> torch.Tensor:
        raise RuntimeError("out of resource: shared memory")


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (Operations, ""),
        (Slips, "differ from torch by"),
        (Breaks, "differ from torch by nan"),
        (Fails, "do not run here: RuntimeError: out of resource"),
    ],
)
def test_kernels_are_tried_before_they_are_used(kind: type[Operations], said: str) -> None:
    model = Transformer(CONFIGS["qwen3"], reference(FAMILIES["qwen3"]).state_dict(), torch.float32)
    trial._found.clear()
    reason = trial.unfit(kind.of(model), model)
    assert said in reason and bool(said) == bool(reason)
    trial._found.clear()


def test_a_model_in_float64_is_left_to_torch() -> None:
    model = launches.hollow(CONFIGS["qwen3"], torch.float64)
    assert "not for float64" in trial.unfit(Operations.of(model), model)


def test_torch_is_taken_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    model = launches.hollow(CONFIGS["qwen3"], torch.float32)
    assert trial.operations(model).reason == "there is no CUDA device"
    model.device = "cuda"
    monkeypatch.setenv(trial.SWITCH, "0")
    assert trial.operations(model).reason == "SPECDEC_TRITON is 0"
    monkeypatch.delenv(trial.SWITCH)
    monkeypatch.setitem(sys.modules, "specdec.gpu.kernels", None)
    assert trial.operations(model).reason == "Triton is not installed" and type(trial.operations(model)) is Operations
