"""Hostile folders to stand in: whatever is started there imports nothing from them."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from .figures import all_of, at_least, Figure, none

ROOT = Path(__file__).resolve().parents[2]
# Beside the standard library: what the app needs, and what Python looks for by itself.
OTHERS = (
    "torch numpy transformers tokenizers safetensors huggingface_hub gradio gradio_client jinja2 typer click starlette "
    "fastapi httpx pandas plotly segno markdown_it tqdm yaml packaging filelock sitecustomize usercustomize spaces "
    "triton"
).split()
COMMAND = "from specdec.__main__ import main\nraise SystemExit(main())\n"  # as pip installs it
# In a process that stands there, and whose children find that PYTHONPATH: each start that worked is a line.
CHILDREN = """
import contextlib, os, subprocess, sys
from specdec import children
from specdec.families import hub, template
from specdec.lanes.worker import Worker
os.chdir(sys.argv[1])
os.environ["PYTHONPATH"] = sys.argv[2]
assert list(hub.fetch([], 0)) == []
print("a download", flush=True)
assert template.around("a {{ messages[0].content }} b", {}) == ("a ", " b", False)
print("a chat template", flush=True)
for module in ("specdec.lanes.worker", "specdec.servers.child"):
    with contextlib.closing(Worker(module)) as worker:
        try:
            list(worker.call("no such call"))
        except RuntimeError as error:
            assert "KeyError" in str(error), error
            print(module, flush=True)
for module, *arguments in (["specdec", "--version"], ["pytest", "--version"]):
    assert children.start(module, *arguments, stdout=subprocess.DEVNULL).wait() == 0
    print(module, flush=True)
"""
STARTS = 6  # of those
PATHS = ("", ".", os.pathsep)


def count(long: bool) -> list[Figure]:
    names = sorted(name for name in {*sys.stdlib_module_names, *OTHERS} if name.isidentifier())
    worked = tried = 0
    with hostile(names) as (place, here, left):
        (place / "children.py").write_text(CHILDREN)
        (place / "specdec_command.py").write_text(COMMAND)
        for path in PATHS if long else PATHS[-1:]:
            done = run(place, str(place / "children.py"), str(here), path)
            worked, tried = worked + len(done.stdout.splitlines()), tried + STARTS
            print(done.stderr[-2000:], file=sys.stderr)
        for words in (["--version"], ["trace", "--help"], ["run", "Once", "--max-tokens", "4", "--temperature", "0"]):
            tried += 1
            worked += run(here, str(place / "specdec_command.py"), *words).returncode == 0
        for name in python_needs():
            (here / f"{name}.py").unlink(missing_ok=True)
        tried += 1
        worked += run(here, "-m", "specdec", "--version").returncode == 0
        ran = sorted(file.name for file in left.iterdir())
    return [
        at_least("modules planted where one stands", len(names), 200),
        all_of("commands and processes that work there", worked, tried, STARTS + 4),
        none("planted modules that were run", len(ran)),
        *[Figure(name, "run", "", False) for name in ran[:5]],
    ]


@contextlib.contextmanager
def hostile(names: list[str]) -> Iterator[tuple[Path, Path, Path]]:
    """A place with a folder of modules of these names, each of which leaves a file in another folder if it is run."""
    with tempfile.TemporaryDirectory() as place:
        here, left = Path(place, "here"), Path(place, "left")
        here.mkdir()
        left.mkdir()
        for name in names:
            (here / f"{name}.py").write_text(f"open({str(left / name)!r}, 'w').close()\nraise SystemExit(9)\n")
        yield Path(place), here, left


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, timeout=600
    )


def python_needs() -> set[str]:
    """What `python -m` imports before the first line of ours, and so from where it is started."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "empty.py").write_text("import sys\nprint(*sys.modules)")
        return set(run(Path(folder), "-m", "empty").stdout.split())
