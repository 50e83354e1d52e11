"""What is done otherwise on a GPU, and changes no number: order of matrices, form of norms, the whole output matrix."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from specdec.drafters.block import BlockDrafter
from specdec.drafters.mtp import MTPDrafter
from specdec.gpu.drafting import draft_of
from specdec.gpu.graphs import StaticDecoder
from specdec.gpu.runner import DeviceRunner
from specdec.methods import METHODS
from specdec.models import device, matrix
from specdec.models.folding import Folding
from specdec.models.transformer import Transformer
from specdec.types import SamplingParams
from tests.models.test_models import FAMILIES, lean, TEXT
from tests.toyheads import block_on, drafts_on, MODEL, mtp_on, ours, Run, view_of
from tests.toyheads import TEXT as TOY_TEXT


def logits(model: Transformer) -> torch.Tensor:
    """Read by the model itself, then in static shapes."""
    decoder = StaticDecoder(model, 64)
    rows = [decoder.prefill(TEXT[:20]), decoder.forward(torch.tensor(TEXT[20:24]), torch.tensor([20]), 32)]
    return torch.cat([*rows, decoder.forward(torch.tensor(TEXT[24:25]), torch.tensor([24]), 32)])


def as_on_a_gpu(monkeypatch) -> None:
    monkeypatch.setattr(Folding, "on_cpu", property(lambda self: False, lambda self, value: None), raising=False)


SHORT = ("qwen3", "llama grouped heads", "mistral window")


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in SHORT else pytest.mark.long) for n in FAMILIES])
def test_norms_by_the_root_mean_square_are_norms_by_the_length(name: str, monkeypatch) -> None:
    expected = logits(lean(name))
    as_on_a_gpu(monkeypatch)
    other = lean(name)
    assert not other.rms_normalise.by_length and torch.allclose(logits(other), expected, atol=2e-5)


@pytest.mark.parametrize("kind", ["medusa", "eagle3", "early_exit"])
def test_heads_read_norms_of_either_form(kind: str, monkeypatch) -> None:
    def records() -> list[Any]:
        view = view_of(ours(MODEL))
        draft = draft_of(METHODS[kind].make(view, drafts_on(view.model)[kind], 40), 3)
        runner = DeviceRunner(view.model, draft, 40, SamplingParams(temperature=0.8, max_tokens=20))
        return [runner.begin(TOY_TEXT, 30, 1), *(runner.run() for _ in range(3))]

    by_length = records()
    as_on_a_gpu(monkeypatch)
    for a, b in zip(by_length, records(), strict=True):
        assert a.drafted == b.drafted and a.token == b.token
        assert (*a.p, *a.q) == pytest.approx((*b.p, *b.q), abs=1e-5)


@pytest.mark.parametrize(("drafter", "part"), [(BlockDrafter, block_on), (MTPDrafter, mtp_on)])
def test_drafters_read_norms_of_either_form(drafter: Any, part: Any, monkeypatch) -> None:
    def distributions() -> torch.Tensor:
        target = ours(MODEL)
        return Run(lambda view: drafter(view, part(target), 160), target=target).propose(3).probs

    by_length = distributions()
    as_on_a_gpu(monkeypatch)
    assert torch.allclose(distributions(), by_length, atol=1e-5)


def test_a_matrix_in_the_other_order_is_the_same_matrix(in_torch, monkeypatch) -> None:
    first = lean("qwen3")
    monkeypatch.setattr(matrix, "outputs_first", lambda matrix: True)
    other = lean("qwen3")
    assert torch.equal(first.layers[0].qkv, other.layers[0].qkv)
    assert first.head.stride() != other.head.stride()
    assert torch.allclose(logits(first), logits(other), atol=2e-5)


def test_a_cut_vocabulary_leaves_the_matrix_whole() -> None:
    cut_model = lean("llama tied")
    cache, cut = cut_model.new_cache(64), 89
    whole = cut_model.forward(TEXT[:9], cache, rows=3), cut_model.forward([5], cache)
    cut_model.cut_vocabulary(cut)
    cache.keep(0)
    assert cut_model.vocabulary == cut and matrix.linear(torch.zeros(1, cut_model.width), cut_model.head).shape[1] >= 97
    assert torch.equal(cut_model.forward(TEXT[:9], cache, rows=3), whole[0][:, :cut])
    assert torch.equal(cut_model.forward([5], cache), whole[1][:, :cut])
    states = torch.randn(2, cut_model.width)
    assert torch.allclose(cut_model.project(cut_model.normed(states)), cut_model.logits(states), atol=1e-5)


def test_layouts_are_not_timed_before_cuda_has_started() -> None:
    """ZeroGPU emulates CUDA while models are loaded."""
    emulated = SimpleNamespace(device=torch.device("cuda"), shape=(8, 8), dtype=torch.float32)
    assert not device.outputs_first(emulated)
