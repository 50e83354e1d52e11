"""Checkpoints from the Hub: fetched, stopped, gone on with, and refused with a sentence."""

import contextlib
import json
from collections.abc import Iterator

import pytest

from specdec.families import hub
from specdec.figures import machine
from specdec.messages import Refused, TranslatableText
from tests.families import hubserver

CONTENT = b"0123456789" * 2_400_000  # the library counts in steps of 10 MiB


@pytest.fixture
def server(monkeypatch, tmp_path) -> Iterator[hubserver.Hub]:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(CONTENT)
    (folder / "pytorch_model.bin").write_bytes(b"pickled")
    with hubserver.hub(monkeypatch, tmp_path / "cache") as server:
        server.repositories["some/model"] = folder
        yield server


def refusal(name: str = "some/model") -> str:
    with pytest.raises(Refused) as refused:
        list(hub.fetch([name], "cpu"))
    assert isinstance(refused.value.args[0], TranslatableText) and not hub.is_on_disk(name)
    return str(refused.value)


def test_a_stopped_download_goes_on_where_it_was_and_is_found_without_the_hub(server) -> None:
    server.held = 12_000_000
    with contextlib.closing(hub.fetch(["some/model"], "cpu")) as states:
        assert next(states).text == "some/model"  # before anything has arrived
        seen = next(state for state in states if state.done > 10_000_000)
    assert seen.text == "some/model" and seen.done < seen.total == len(CONTENT)
    assert not hub.is_here("some/model")
    server.release.set()
    list(hub.fetch(["some/model"], "cpu"))
    assert server.ranges and min(server.ranges) > 10_000_000
    server.close()
    place = hub.find("some/model")
    assert {file.name for file in place.iterdir()} == {"config.json", "model.safetensors"}
    assert (place / "model.safetensors").read_bytes() == CONTENT


def test_what_was_spoilt_while_it_lay_there_is_fetched_anew(tmp_path, server, monkeypatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    digest = hubserver.oid(server.repositories["some/model"] / "model.safetensors")
    part, url = tmp_path / f"{digest}.part", f"{server.address}/some/model/resolve/main/model.safetensors"
    for spoilt in (b"spoilt", bytes(len(CONTENT))):
        part.write_bytes(spoilt)
        with pytest.raises(ValueError, match="downloaded file has a wrong SHA-256"):
            hub.fill(tmp_path / "x", url, digest, hub.Progress())
        assert not part.exists()
        hub.fill(tmp_path / "x", url, digest, hub.Progress())
        assert (tmp_path / "x").read_bytes() == CONTENT and not part.exists()
    (tmp_path / f"{digest}.part").write_bytes(CONTENT)  # of a process that was killed before it had the digest
    hub.fill(tmp_path / "z", url, digest, hub.Progress())
    assert (tmp_path / "z").read_bytes() == CONTENT
    server.garbles = True
    with pytest.raises(ValueError, match="downloaded file has a wrong SHA-256"):
        hub.fill(tmp_path / "y", url, digest, hub.Progress())
    assert not (tmp_path / "y").exists()


def test_a_part_of_a_checkpoint_is_not_here(monkeypatch, tmp_path) -> None:
    hubserver.use_cache(monkeypatch, tmp_path / "cache")
    shards = [f"model-0000{i}-of-00002.safetensors" for i in (1, 2)]
    index = json.dumps({"weight_map": {"a": shards[0], "b": shards[1]}})
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")  # all that transformers' AutoConfig leaves in the cache
    place = hubserver.put(tmp_path / "cache", "some/model", model)
    assert not hub.is_here("some/model")
    (place / "eagle.safetensors").write_bytes(b"")
    assert hub.cached("some/model") == place
    (place / "model.safetensors.index.json").write_text(index)
    assert not hub.is_here("some/model")
    (place / shards[0]).write_bytes(b"")
    assert not hub.is_here("some/model")
    (place / shards[1]).write_bytes(b"")
    assert hub.cached("some/model") == place
    (place / shards[1]).unlink()
    (place / shards[1]).symlink_to("../../blobs/gone")
    assert not hub.is_here("some/model")
    (place / "model.safetensors.index.json").write_text("{")
    assert hub.cached("some/model") == place  # loading says what is wrong
    (place / "config.json").unlink()
    assert not hub.is_here("some/model")


def test_a_checkpoint_whose_index_names_what_it_lacks_is_one_sentence(server) -> None:
    folder = server.repositories["some/model"]
    (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert "its index names files that it lacks" in refusal()


@pytest.mark.long
def test_what_cannot_be_had_is_one_sentence(server, monkeypatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(machine, "free_memory", lambda: len(CONTENT))
        assert "needs about 0.0 GB of memory here" in refusal()
    for name in ("config.json", "model.safetensors"):
        file = server.repositories["some/model"] / name
        content = file.read_bytes()
        file.unlink()
        assert "lacks a config.json or a .safetensors file" in refusal()
        file.write_bytes(content)
    server.gated.add("some/model")
    assert refusal().startswith("some/model is not on this machine, and could not be fetched (")
    assert "Repository Not Found" in refusal("no/model")
    assert "Repo id must" in refusal("no such/name")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert "HF_HUB_OFFLINE" in refusal()
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert "Check the name and the network" in refusal()
