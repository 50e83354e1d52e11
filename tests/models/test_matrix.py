"""Packed matrices multiply as plain ones do, and only those are packed that gain by it."""

import pytest
import torch

from specdec.models import matrix
from specdec.models.device import multiplies_bfloat16
from specdec.models.matrix import add_product, linear, pack_weight, Prepacked, WIDE

WIDTH = 192
OUTPUTS = WIDE // WIDTH + 1  # no multiple of anything that a kernel likes

pytestmark = pytest.mark.usefixtures("in_torch")
needs_onednn = pytest.mark.skipif(not Prepacked.pays(torch.zeros(OUTPUTS, WIDTH)), reason="torch packs nothing here")


@needs_onednn
@pytest.mark.parametrize("rows", [1, 2, 5, 16, 33, 200])
def test_a_packed_matrix_multiplies_as_it_did(rows: int) -> None:
    torch.manual_seed(rows)
    plain = torch.randn(OUTPUTS, WIDTH)
    packed = pack_weight(plain, torch.float32, "cpu")
    assert isinstance(packed, Prepacked)
    x, added = torch.randn(rows, WIDTH), torch.randn(rows, OUTPUTS)
    expected = (x.double() @ plain.double().T).float()
    with torch.inference_mode():
        assert torch.allclose(linear(x, packed), expected, atol=1e-4)
        assert torch.allclose(linear(x.repeat(1, 2)[:, :WIDTH], packed), expected, atol=1e-4)  # rows with a gap
        assert torch.allclose(linear(x, packed, added), expected + added, atol=1e-4)
        total = added.clone()
        add_product(total, x, packed)
        assert torch.allclose(total, expected + added, atol=1e-4)


def test_what_is_packed() -> None:
    def packed(outputs: int, dtype: torch.dtype = torch.float32, eight_bit: bool = False) -> bool:
        stored = torch.int8 if eight_bit else None
        return isinstance(pack_weight(torch.zeros(outputs, WIDTH), dtype, "cpu", stored), Prepacked)

    assert not packed(OUTPUTS - 2) and not packed(OUTPUTS, eight_bit=True)
    assert packed(8, torch.bfloat16) in (False, multiplies_bfloat16("cpu"))
    assert not Prepacked.pays(torch.zeros(OUTPUTS, WIDTH, device="meta"))


@needs_onednn
def test_prompts_of_all_lengths_share_a_few_kernels(monkeypatch) -> None:
    """oneDNN keeps one for every number of rows: 400 prompts of their own lengths took 180 MB."""
    packed = pack_weight(torch.zeros(OUTPUTS, WIDTH), torch.float32, "cpu")
    seen, onednn = set[int](), matrix.ONEDNN

    def watched(x: torch.Tensor, *more: object) -> torch.Tensor:
        seen.add(len(x))
        return onednn(x, *more)

    monkeypatch.setattr(matrix, "ONEDNN", watched)
    for rows in range(1, 513):
        assert linear(torch.zeros(rows, WIDTH), packed).shape == (rows, OUTPUTS)
    assert sorted(seen) == [*range(1, 17), 32, 64, 128, 256, 512]
