"""A machine that is rented for an hour has torch and transformers, and seldom what the page needs."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SELDOM = {"gradio", "gradio_client", "playwright", "plotly", "starlette", "segno"}


def imported_by(module: str) -> tuple[set[str], set[str]]:
    """The modules of the project, and the packages of others, that a module needs to be imported."""
    path = ROOT.joinpath(*module.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    package = (module if path.name == "__init__.py" else module.rpartition(".")[0]).split(".")
    ours, theirs = set[str](), set[str]()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = [*package[: len(package) - node.level + 1], *filter(None, [node.module])]
            base = base if node.level else [str(node.module)]
            names = [".".join([*base, alias.name]) for alias in node.names] + [".".join(base)]
        for name in names:
            if name.startswith("specdec"):
                place = ROOT.joinpath(*name.split("."))
                ours |= {name} if place.is_dir() or place.with_suffix(".py").exists() else set()
            else:
                theirs.add(name.split(".")[0])
    return ours, theirs


def test_no_suite_needs_the_pages_packages_to_start() -> None:
    waiting, seen, packages = {"specdec.bench.suites", "specdec.cli"}, set[str](), dict[str, str]()
    while waiting:
        module = waiting.pop()
        seen.add(module)
        ours, theirs = imported_by(module)
        packages |= dict.fromkeys(theirs, module)
        waiting |= ours - seen
    assert {"specdec.gpu.lane"} <= seen and "torch" in packages
    assert {name: packages[name] for name in SELDOM & packages.keys()} == {}
