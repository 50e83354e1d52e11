"""Triton's kernels against their specification, by Triton's interpreter; and when torch's operations are taken."""

import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from itertools import product
from multiprocessing import get_context
from typing import Any

import pytest
import torch

from specdec.gpu import trial
from specdec.gpu.ops import Operations
from specdec.models.config import Config
from tests.gpu import kernelcases
from tests.gpu.kernelcases import Case
from tests.models.test_models import FAMILIES, lean, reference, TEXT

needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed: it is for Linux")
LIMITS = {torch.float32: 1e-5, torch.bfloat16: 1e-2}


@pytest.fixture(scope="module")
def interpreter(tmp_path_factory) -> Iterator[ProcessPoolExecutor]:
    """A process of its own: no other test meets Triton interpreting."""
    cache = str(tmp_path_factory.mktemp("triton"))
    with ProcessPoolExecutor(1, get_context("spawn"), kernelcases.set_up, (cache,)) as pool:
        yield pool


def cases() -> Iterator[Any]:
    """Every size of heads and number that shares keys, in turn with every type, window, bucket, bias and norm.

    Behind 290 tokens attention has several splits, and each several blocks of keys.
    """
    for dtype in LIMITS:
        yield pytest.param(Case(dtype, rows=2, start=290, bucket=300), id=f"{dtype}-after-a-text")
    shapes = product((64, 96, 128, 256, 12), ((2, 2), (2, 1), (8, 2), (7, 1)))
    for number, (size, (heads, kv_heads)) in enumerate(shapes, start=1):
        rows, bucket = 1 + number * 5 % 17, (32, 64, 100, 300)[number % 4]
        case = Case(
            list(LIMITS)[number // 5 % 2],
            heads,
            kv_heads,
            size,
            rows,
            start=min((0, bucket // 2, bucket)[number % 3], bucket - rows),
            bucket=bucket,
            window=(None, 1, 7, 50)[number // 2 % 4],
            bias=bool(number & 1),
            norm=bool(number & 2),
            prenormed=number % 7 == 0,
            by_length=bool(number & 4),
            width=(96, 1025, 33)[number % 3],
            inner=(80, 600)[number % 2],
        )
        yield pytest.param(case, marks=() if rows <= 4 else pytest.mark.long, id=f"{number}")


@needs_triton
@pytest.mark.parametrize("case", cases())
def test_kernels_give_what_their_specification_gives(interpreter, case: Case) -> None:
    assert interpreter.submit(kernelcases.distance, case).result() <= LIMITS[case.dtype]


@needs_triton
def test_what_is_out_of_sight_does_no_harm_and_nan_is_told(interpreter) -> None:
    assert interpreter.submit(kernelcases.unseen_and_broken).result() == (True, True)


@pytest.mark.long
@needs_triton
@pytest.mark.parametrize(
    "name",
    ["qwen3", "mistral window", "llama grouped heads"],  # the last with biases
)
def test_logits_are_the_models_own(interpreter, name: str) -> None:
    whole = FAMILIES[name]
    given = Config.parse(whole.to_dict()), reference(whole).state_dict(), TEXT
    assert interpreter.submit(kernelcases.logits_apart, *given).result() <= 2e-5


class Slips(Operations):
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
    ("kind", "dtype", "said"),
    [
        (Operations, torch.float32, ""),
        (Operations, torch.float64, "not for float64"),
        (Slips, torch.float32, "differ from torch by"),
        (Breaks, torch.float32, "differ from torch by nan"),
        (Fails, torch.float32, "do not run here: RuntimeError: out of resource"),
    ],
)
def test_kernels_are_tried_before_they_are_used(kind: type[Operations], dtype: torch.dtype, said: str) -> None:
    model = lean("qwen3", dtype)
    trial.IN_PROCESS.unfit.clear()
    reason = trial.unfit(kind.for_model(model), model)
    assert said in reason and bool(said) == bool(reason)
    trial.IN_PROCESS.unfit.clear()


def test_torch_is_taken_with_a_reason(monkeypatch) -> None:
    model = lean("qwen3")
    assert trial.operations(model).reason == "there is no CUDA device"
    model.device = "cuda"
    monkeypatch.setenv(trial.SWITCH, "0")
    assert trial.operations(model).reason == "SPECDEC_TRITON is 0"
    monkeypatch.delenv(trial.SWITCH)
    monkeypatch.setitem(sys.modules, "specdec.gpu.kernels", None)
    assert trial.operations(model).reason == "Triton is not installed" and type(trial.operations(model)) is Operations
