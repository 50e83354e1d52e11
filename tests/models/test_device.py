"""What a model does otherwise where there is a GPU; here without one."""

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
import torch

from specdec.families import zoo
from specdec.models import device, native
from specdec.models.transformer import Transformer
from specdec.paths import FAMILY
from tests.families import toypairs
from tests.models.test_models import FAMILIES, lean, TEXT

DEFAULT = ("llama tied", "mistral window", "qwen3")
PIECES = TEXT[:20], TEXT[20:26], TEXT[26:27]


def test_on_a_gpu_attention_is_not_cudnns_and_sums_are_exact(monkeypatch) -> None:
    """On stand-ins: torch's own settings would stay."""
    matmul, cudnn = SimpleNamespace(allow_bf16_reduced_precision_reduction=True), [True]
    monkeypatch.setattr(torch.backends.cuda, "enable_cudnn_sdp", cudnn.append)
    monkeypatch.setattr(torch.backends.cuda, "matmul", matmul)
    device.configure_cuda("cpu")
    assert cudnn[-1] and matmul.allow_bf16_reduced_precision_reduction
    device.configure_cuda("cuda:0")
    assert not cudnn[-1] and not matmul.allow_bf16_reduced_precision_reduction


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in DEFAULT else pytest.mark.long) for n in FAMILIES])
def test_a_prompt_needs_no_mask_where_no_window_cuts_it(name: str, monkeypatch) -> None:
    model, masked = lean(name), list[tuple[int | None, int]]()
    assert not model.causal_prefill
    expected = [model.forward(part, cache, rows=len(part)) for cache in [model.new_cache(64)] for part in PIECES]
    model.causal_prefill = True
    mask = Transformer._mask

    def watched(self: Any, window: int | None, start: int, count: int, parents: Any) -> Any:
        masked.append((window, start))
        return mask(self, window, start, count, parents)

    monkeypatch.setattr(Transformer, "_mask", watched)
    found = [model.forward(part, cache, rows=len(part)) for cache in [model.new_cache(64)] for part in PIECES]
    for ours, theirs in zip(found, expected, strict=True):
        assert torch.allclose(ours, theirs, atol=2e-5)
    assert (None, 0) not in masked and all((w, 0) in masked for w in model.windows if w is not None)


@pytest.mark.parametrize(("card", "expected"), [(True, torch.bfloat16), (False, torch.float32)])
def test_a_gpu_computes_in_bfloat16_where_it_has_it_in_hardware(card: bool, expected: torch.dtype, monkeypatch) -> None:
    """A T4 says that it can: it emulates."""
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True: including_emulation or card)
    assert zoo.fastest_dtype(FAMILY / "target", "cuda") == expected


def test_loading_for_a_gpu_compiles_nothing(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(native, "library", Mock(side_effect=AssertionError("compiled")))
    monkeypatch.setattr(zoo, "check_memory", lambda *_: None)
    monkeypatch.setattr(zoo, "resolve_device", lambda device: device)  # "meta" stands for a GPU
    family = zoo.load_pair(*toypairs.pair_into(tmp_path), device="meta")
    assert family.precision == "bfloat16" and "draft_model" in family.drafters
    assert "kernels" not in family.describe()
    with pytest.raises(ValueError, match="compiled"):
        zoo.load_pair(*toypairs.pair_into(tmp_path / "cpu"))
