"""What a model does otherwise where there is a GPU; here without one."""

from __future__ import annotations

import gc
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from test_models import FAMILIES, reference, TEXT

from specdec.families import zoo
from specdec.models import device, hugging_face, transformer
from specdec.models.config import Config
from specdec.models.transformer import Transformer

DEFAULT = ("llama tied", "mistral window", "qwen3")


def lean(name: str, dtype: torch.dtype = torch.float32) -> Transformer:
    config = FAMILIES[name]
    return Transformer(Config.read(config.to_dict()), reference(config).state_dict(), dtype)


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """In place of torch's, which would stay."""
    told = SimpleNamespace(cudnn=True, matmul=SimpleNamespace(allow_bf16_reduced_precision_reduction=True))
    monkeypatch.setattr(torch.backends.cuda, "enable_cudnn_sdp", lambda on: setattr(told, "cudnn", on))
    monkeypatch.setattr(torch.backends.cuda, "matmul", told.matmul)
    return told


def test_on_a_gpu_attention_is_not_cudnns_and_sums_are_exact(settings: SimpleNamespace) -> None:
    device.settle("cpu")
    assert settings.cudnn and settings.matmul.allow_bf16_reduced_precision_reduction
    device.settle("cuda:0")
    assert not settings.cudnn and not settings.matmul.allow_bf16_reduced_precision_reduction


def test_every_model_that_is_made_settles_its_device(monkeypatch: pytest.MonkeyPatch) -> None:
    settled: list[str] = []
    monkeypatch.setattr(transformer, "settle", settled.append)
    monkeypatch.setattr(hugging_face, "settle", settled.append)
    lean("qwen3")
    config = FAMILIES["qwen3"]
    hugging_face.HuggingFaceModel(config, reference(config).state_dict(), torch.float32, "cpu")
    assert settled == ["cpu", "cpu"]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in DEFAULT else [pytest.mark.long]) for name in FAMILIES]
)
def test_a_prompt_needs_no_mask_where_no_window_cuts_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does a prompt that is read in pieces, in its first piece; the logits are the same."""
    model, masked = lean(name), list[tuple[int | None, int]]()
    assert not model.causal_prefill
    expected = [model.forward(part, cache, rows=len(part)) for cache in [model.new_cache(64)] for part in pieces()]
    model.causal_prefill = True
    mask = Transformer._mask

    def watched(self: Any, window: int | None, start: int, count: int, parents: Any) -> Any:
        masked.append((window, start))
        return mask(self, window, start, count, parents)

    monkeypatch.setattr(Transformer, "_mask", watched)
    found = [model.forward(part, cache, rows=len(part)) for cache in [model.new_cache(64)] for part in pieces()]
    for ours, theirs in zip(found, expected, strict=True):
        assert torch.allclose(ours, theirs, atol=2e-5)
    assert (None, 0) not in masked and all((w, 0) in masked for w in model._windows if w is not None)
    tree = model.new_cache(64)
    assert torch.allclose(model.forward([5, 6, 7], tree, parents=(-1, 0), rows=3), found_tree(model), atol=2e-5)


def pieces() -> list[list[int]]:
    return [TEXT[:20], TEXT[20:26], TEXT[26:27]]


def found_tree(model: Transformer) -> torch.Tensor:
    return model.forward([5, 6, 7], model.new_cache(64), rows=3)


def test_a_tree_right_at_the_start_keeps_its_mask() -> None:
    model = lean("llama grouped heads")
    expected = model.forward([5, 6, 7], model.new_cache(8), parents=(-1, -1), rows=3)
    model.causal_prefill = True
    assert torch.allclose(model.forward([5, 6, 7], model.new_cache(8), parents=(-1, -1), rows=3), expected, atol=2e-5)


@pytest.mark.parametrize("tied", [True, False])
def test_large_matrices_in_float32_are_gone_before_the_layers_load(tied: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """An 8B model would have five gigabytes of them on the card all the while."""
    config = FAMILIES["llama tied" if tied else "qwen2"]
    weights = {name: weight.bfloat16() for name, weight in reference(config).state_dict().items()}
    seen, layer = [], Transformer._layer

    def watched(self: Any, *arguments: Any) -> Any:
        found = [x for x in gc.get_objects() if type(x) is torch.Tensor and x.dtype == torch.float32 and x.dim() == 2]
        seen.append([tuple(x.shape) for x in found if 97 in x.shape])
        return layer(self, *arguments)

    gc.collect()
    before = [x for x in gc.get_objects() if type(x) is torch.Tensor and x.dtype == torch.float32 and 97 in x.shape]
    monkeypatch.setattr(Transformer, "_layer", watched)
    Transformer(Config.read(config.to_dict()), weights, torch.bfloat16)
    assert len(seen) == 4 and all(len(one) == len(before) for one in seen)


def test_small_models_run_in_float32_and_large_ones_in_bfloat16_if_the_card_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A T4 says that it can: it emulates."""
    monkeypatch.setattr(zoo, "SMALL", 100)
    file = tmp_path / "model.safetensors"
    for stored, native, expected in (
        (90, True, torch.float32),
        (110, True, torch.bfloat16),
        (110, False, torch.float32),
    ):
        file.write_bytes(bytes(stored))
        monkeypatch.setattr(
            torch.cuda,
            "is_bf16_supported",
            lambda including_emulation=True, native=native: including_emulation or native,
        )
        assert zoo.fastest_dtype(tmp_path, "cuda") == expected
