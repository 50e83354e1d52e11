"""Packed weights: what 8 bits lose, and that every reader finds the same tensors."""

import subprocess

import pytest
import torch
from safetensors.torch import save_file

from specdec.models import packed
from specdec.models.checkpoint import read_weights
from specdec.paths import FAMILY
from specdec.ui import menu

ROOT = FAMILY.parents[1]


def test_packing_what_was_unpacked_changes_nothing() -> None:
    matrix = torch.randn(48, 64, generator=torch.Generator().manual_seed(0))
    first = packed.pack_rows({"m": matrix})
    again = packed.pack_rows(packed.unpack(first))
    assert all(torch.equal(again[name], tensor) for name, tensor in first.items())


def test_a_packed_head_is_read_as_before(tmp_path) -> None:
    generator = torch.Generator().manual_seed(2)
    tensors = {"0.m": torch.randn(8, 64, generator=generator), "0.b": torch.randn(8, generator=generator)}
    save_file(packed.pack_rows(tensors), tmp_path / packed.FILE, {"packed": packed.ROWS})
    assert menu.parameters(tmp_path) == 8 * 64 + 8
    read = read_weights(tmp_path)
    assert read.keys() == tensors.keys()
    assert all(torch.allclose(read[name], tensors[name], atol=0.02) for name in tensors)


def test_the_repository_stays_light() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("this is no git checkout")
    sizes = {name: (ROOT / name).stat().st_size for name in listed.stdout.split("\0") if (ROOT / name).is_file()}
    assert sum(sizes.values()) <= 64 * 2**20
    weights = {name: size for name, size in sizes.items() if name.endswith(".safetensors")}
    smollm2 = sum(size for name, size in weights.items() if name.startswith("assets/models/"))
    assert smollm2 <= 16e6 and sum(weights.values()) - smollm2 <= 48e6
    assert max(sizes.values()) < 9_000_000
