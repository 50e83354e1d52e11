"""Python children find this package, and whatever else the one that starts them finds."""

import subprocess
from pathlib import Path

from specdec import children

ROOT = Path(__file__).resolve().parents[1]


def test_a_child_sees_its_arguments_and_the_folders_that_were_asked_for(tmp_path, monkeypatch) -> None:
    (tmp_path / "asked.py").write_text("import sys, specdec\nprint(sys.argv[1:], __name__, specdec.__file__)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.chdir("/")
    said, _ = children.start("asked", "-m", "b c", stdout=subprocess.PIPE, text=True).communicate()
    assert said.split() == f"['-m', 'b c'] __main__ {ROOT / 'specdec' / '__init__.py'}".split()
