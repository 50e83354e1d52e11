"""Python children import nothing from the folder that they are started in."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from specdec import children
from specdec.families import hub

ROOT = Path(__file__).resolve().parents[1]
PLANTED = "random", "queue", "types", "runpy", "contextlib", "sitecustomize", "huggingface_hub", "torch"


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to stand in, whose modules leave a file behind if they are imported."""
    folder = tmp_path / "here"
    folder.mkdir()
    for name in PLANTED:
        left = tmp_path / f"{name}.ran"
        (folder / f"{name}.py").write_text(f"open({str(left)!r}, 'w').close()\nraise SystemExit(9)\n")
    monkeypatch.chdir(folder)
    return tmp_path


@pytest.mark.parametrize("pythonpath", [None, "", "here:"])
def test_a_child_imports_nothing_from_where_it_is_started(
    hostile: Path, monkeypatch: pytest.MonkeyPatch, pythonpath: str | None
) -> None:
    if pythonpath is None:
        monkeypatch.delenv("PYTHONPATH", raising=False)
    else:
        monkeypatch.setenv("PYTHONPATH", pythonpath)
    assert list(hub.fetch([], 0)) == []
    assert not list(hostile.glob("*.ran"))


def test_a_child_sees_its_arguments_and_the_folders_that_were_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "asked.py").write_text("import sys, specdec\nprint(sys.argv[1:], __name__, specdec.__file__)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    said, _ = children.start("asked", "-m", "b c", stdout=subprocess.PIPE, text=True).communicate()
    assert said.split() == f"['-m', 'b c'] __main__ {ROOT / 'specdec' / '__init__.py'}".split()
