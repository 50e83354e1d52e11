"""Checkpoints from the Hub: fetched, stopped, gone on with, and refused with a sentence."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

import hubserver
import pytest

from specdec.families import hub
from specdec.types import TranslatableText

BYTES = 24_000_000  # the library counts in steps of 10 MiB


@pytest.fixture
def server(monkeypatch, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"0123456789" * (BYTES // 10))
    (folder / "pytorch_model.bin").write_bytes(b"pickled")
    with hubserver.hub(monkeypatch, tmp_path / "cache") as server:
        server.repositories["some/model"] = folder
        yield server


def refusal(*names: str, memory: int = 10**9) -> str:
    with pytest.raises(ValueError) as refused:
        list(hub.fetch(names, memory))
    assert isinstance(refused.value.args[0], TranslatableText)
    return str(refused.value)


def test_a_checkpoint_is_fetched_and_found_again_without_the_hub(server):
    assert not hub.is_here("some/model")
    states = list(hub.fetch(["some/model"], 10**9))
    assert all(state.total in (0, BYTES) for state in states)
    server.shutdown()
    assert hub.is_here("some/model")
    found = hub.find("some/model")
    assert {file.name for file in found.iterdir()} == {"config.json", "model.safetensors"}


def test_a_stopped_download_goes_on_where_it_was(server):
    server.held = 12_000_000
    with contextlib.closing(hub.fetch(["some/model"], 10**9)) as states:
        seen = next(state for state in states if state.done > 10_000_000)
    assert seen.name == "some/model" and seen.done < seen.total == BYTES
    assert not hub.is_here("some/model")
    server.release.set()
    list(hub.fetch(["some/model"], 10**9))
    assert server.ranges and min(server.ranges) > 10_000_000
    got = (hub.find("some/model") / "model.safetensors").read_bytes()
    assert hashlib.sha1(got).digest() == hashlib.sha1(b"0123456789" * (BYTES // 10)).digest()


@pytest.mark.parametrize("length", [None, BYTES, BYTES + 1])
def test_what_was_spoilt_while_it_lay_there_is_fetched_anew(server, tmp_path, length):
    server.held = 12_000_000
    with contextlib.closing(hub.fetch(["some/model"], 10**9)) as states:
        next(state for state in states if state.done > 10_000_000)
    (part,) = (tmp_path / "cache").rglob("*.part")
    with part.open("r+b") as file:
        file.write(b"spoilt")
        file.truncate(length or part.stat().st_size)
    server.release.set()
    list(hub.fetch(["some/model"], 10**9))
    assert (hub.find("some/model") / "model.safetensors").read_bytes() == b"0123456789" * (BYTES // 10)


def test_bytes_that_are_not_the_hubs_are_not_kept(server, tmp_path):
    server.garbles = True
    assert refusal("some/model") == (
        "model.safetensors of some/model arrived twice with other content than the Hub names. "
        "Check what stands between this machine and the Hub, a proxy or a mirror, and try again."
    )
    assert not hub.is_here("some/model") and not list((tmp_path / "cache").rglob("*.part"))


def test_what_cannot_be_had_is_told_in_one_sentence(server, monkeypatch):
    server.gated.add("some/model")
    assert "accept it at https://huggingface.co/some/model" in refusal("some/model")
    assert "There is no model no/model on the Hub" in refusal("no/model")
    assert "such a name is OWNER/MODEL" in refusal("no such/name")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert "HF_HUB_OFFLINE" in refusal("some/model")
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert "Hub cannot be reached" in refusal("some/model")


def test_only_safetensors_are_fetched(server):
    (server.repositories["some/model"] / "model.safetensors").unlink()
    assert "holds no .safetensors file" in refusal("some/model")


def test_a_checkpoint_that_cannot_fit_is_not_fetched(server):
    assert "needs about 0.0 GB of memory here" in refusal("some/model", memory=BYTES)
    assert not hub.is_here("some/model")


def test_a_full_disk_is_told_before_the_download(tmp_path):
    with pytest.raises(ValueError, match=r"some/model needs 1000001\.0 GB of disk, and .* are free\. Make room"):
        hub.check_disk("some/model", 10**15, tmp_path / "cache")


def test_a_folder_is_found_as_it_is(tmp_path: Path):
    assert hub.is_here(str(tmp_path)) and hub.find(tmp_path) == tmp_path
