"""Checkpoints from the Hub: fetched, stopped, gone on with, and refused with a sentence."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import hubserver
import pytest

from specdec.families import hub, star
from specdec.types import TranslatableText

CONTENT = b"0123456789" * 2_400_000  # the library counts in steps of 10 MiB


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[hubserver.Hub]:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(CONTENT)
    (folder / "pytorch_model.bin").write_bytes(b"pickled")
    with hubserver.hub(monkeypatch, tmp_path / "cache") as server:
        server.repositories["some/model"] = folder
        yield server


def refusal(name: str = "some/model", memory: int = 10**9) -> str:
    with pytest.raises(ValueError) as refused:
        list(hub.fetch([name], memory))
    assert isinstance(refused.value.args[0], TranslatableText) and not hub.is_on_disk(name)
    return str(refused.value)


def test_a_stopped_download_goes_on_where_it_was_and_is_found_without_the_hub(server: hubserver.Hub) -> None:
    server.held = 12_000_000
    with contextlib.closing(hub.fetch(["some/model"], 10**9)) as states:
        seen = next(state for state in states if state.done > 10_000_000)
    assert seen.name == "some/model" and seen.done < seen.total == len(CONTENT)
    assert not hub.is_here("some/model")
    server.release.set()
    list(hub.fetch(["some/model"], 10**9))
    assert server.ranges and min(server.ranges) > 10_000_000
    server.shutdown()
    place = hub.find("some/model")
    assert {file.name for file in place.iterdir()} == {"config.json", "model.safetensors"}
    assert (place / "model.safetensors").read_bytes() == CONTENT


def test_what_was_spoilt_while_it_lay_there_is_fetched_anew(
    tmp_path: Path, server: hubserver.Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    part, digest = tmp_path / "x.part", hubserver.oid(server.repositories["some/model"] / "model.safetensors")
    url = f"{server.address}/some/model/resolve/main/model.safetensors"
    for spoilt in (b"spoilt", bytes(len(CONTENT))):
        part.write_bytes(spoilt)
        star.fill(part, url, digest, len(CONTENT))
        assert part.read_bytes() == CONTENT
    server.garbles = True
    with pytest.raises(ValueError, match="arrived twice with other content"):
        star.fill(tmp_path / "y.part", url, digest, len(CONTENT))
    assert not (tmp_path / "y.part").exists()


def test_what_cannot_be_had_is_told_in_one_sentence(server: hubserver.Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "needs about 0.0 GB of memory here" in refusal(memory=len(CONTENT))
    (server.repositories["some/model"] / "model.safetensors").unlink()
    assert "holds no .safetensors file" in refusal()
    server.gated.add("some/model")
    assert "accept it at https://huggingface.co/some/model" in refusal()
    assert "There is no model no/model on the Hub" in refusal("no/model")
    assert "such a name is OWNER/MODEL" in refusal("no such/name")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert "HF_HUB_OFFLINE" in refusal()
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert "Hub cannot be reached" in refusal()


def test_a_full_disk_is_told_before_the_download(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"some/model needs 1000001\.0 GB of disk, and .* are free\. Make room"):
        star.check_disk("some/model", 10**15, tmp_path / "cache")
