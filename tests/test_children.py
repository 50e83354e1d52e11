"""Python children import nothing from the folder that they are started in."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from specdec import children
from specdec.families import hub
from specdec.lanes import worker

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


@pytest.mark.parametrize("pythonpath", [None, "", ".", os.pathsep, "here:"])
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


def test_python_dash_m_leaves_the_folder_that_it_is_started_in(hostile: Path) -> None:
    """Python itself imports some modules before any of ours; whatever ours need comes from elsewhere."""
    for name in ("types", "runpy", "contextlib", "sitecustomize"):
        Path(f"{name}.py").unlink()
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-m", "specdec", "--version"], env=environment, capture_output=True)
    assert done.returncode == 0 and not list(hostile.glob("*.ran")), done.stderr


def test_nobody_else_starts_an_interpreter() -> None:
    for path in (ROOT / "specdec").rglob("*.py"):
        if path in (Path(children.__file__), Path(worker.__file__)):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            imported = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            imported += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {"multiprocessing", "executable", "ProcessPoolExecutor"} & set(imported), path
            assert not isinstance(node, ast.Attribute) or ast.unparse(node) != "sys.executable", f"{path}:{node.lineno}"
