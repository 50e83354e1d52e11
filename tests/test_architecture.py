"""Who may import whom. The table is the design; a new edge is a decision, not an accident."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.test_packaging import imports as packages

ROOT = Path(__file__).resolve().parents[1] / "specdec"
# What each file or folder imports besides itself. `specdec` is the package itself, for its version.
IMPORTS = {
    "messages": "",
    "types": "messages",
    "text": "messages",
    "paths": "messages",
    "children": "",
    "exposure": "",
    "sampling": "types",
    "verify": "methods sampling types",
    "rules": "methods sampling types verify",
    "events": "messages types",
    "describe": "events rules sampling types",
    "task": "drafters events models sampling types verify",
    "host": "describe drafters sampling task types",
    "loop": "events host messages models sampling task text types",
    "models": "types",
    "drafters": "models sampling types",
    "figures": "events types",
    "methods": "messages",
    "settings": "exposure messages methods types",
    "families": "children drafters exposure figures messages methods models paths text types",
    "gpu": "describe drafters events host models sampling task types verify",
    "proof": "drafters events families host loop messages models rules sampling task types verify",
    "training": "drafters families figures messages models paths",
    "lanes": "drafters events families figures gpu host loop messages methods models paths rules sampling settings"
    " specdec task traces types verify",
    "traces": "describe events figures messages methods paths rules sampling types",
    "servers": "engine events lanes messages models proof types",
    "engine": "drafters events families gpu lanes messages methods models settings traces types verify",
    "calls": "engine events families gpu loop messages methods proof settings traces",
    "process": "calls models",
    "zero": "calls engine gpu messages process settings",
    "bench": "engine events families figures lanes messages methods paths specdec types",
    "ui": "children events exposure families figures messages methods paths process proof settings traces types",
}


def imports(path: Path) -> set[str]:
    """The parts of the project that a file imports, as names in `IMPORTS`."""
    names = {name.split(".")[1] for name in imported(path)}
    return {part if (ROOT / part).exists() or (ROOT / f"{part}.py").exists() else "specdec" for part in names}


def imported(path: Path) -> set[str]:
    """Every name of the project that a file imports when it runs, wherever it does, dotted."""
    package = path.relative_to(ROOT.parent).with_suffix("").parts
    found, tree = set(), ast.parse(path.read_text())
    guards = [one for one in ast.walk(tree) if isinstance(one, ast.If) and ast.unparse(one.test) == "TYPE_CHECKING"]
    unread = {node for guard in guards for one in guard.body for node in ast.walk(one)}  # for type checkers alone
    for node in ast.walk(tree):
        if node in unread:
            continue
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level] if node.level else ()
            module = ".".join((*base, *(node.module.split(".") if node.module else ())))
            found |= {f"{module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name.startswith("specdec.")}


def module_of(name: str) -> Path | None:
    while name:
        place = ROOT.parent.joinpath(*name.split("."))
        for path in (place.with_suffix(".py"), place / "__init__.py"):
            if path.exists():
                return path
        name = name.rpartition(".")[0]
    return None


def test_no_file_imports_itself_by_way_of_others() -> None:
    after = {path: {found for name in imported(path) if (found := module_of(name))} - {path} for path in modules()}
    while leaves := {path for path, needed in after.items() if not needed & after.keys()}:
        after = {path: needed for path, needed in after.items() if path not in leaves}
    assert sorted(str(path.relative_to(ROOT)) for path in after) == []


def modules() -> list[Path]:
    return [
        path
        for path in sorted(ROOT.rglob("*.py"))
        if path.name not in ("__init__.py", "__main__.py") or path.parent != ROOT
    ]


@pytest.mark.parametrize("part", IMPORTS)
def test_imports_follow_the_design(part: str) -> None:
    files = [path for path in modules() if path.relative_to(ROOT).parts[0].removesuffix(".py") == part]
    assert set().union(*map(imports, files)) - {part} == set(IMPORTS[part].split())


def test_the_table_has_all_parts_but_the_command_above_them() -> None:
    assert {path.relative_to(ROOT).parts[0].removesuffix(".py") for path in modules()} == {*IMPORTS, "cli"}


def test_only_the_session_asks_the_engines_process_and_only_the_browsers_file_starts_one() -> None:
    for path in (ROOT / "ui").rglob("*.py"):
        assert path.name == "session.py" or "process" not in imports(path), path
        assert path.name == "browser.py" or "children" not in imports(path), path


def test_no_drafter_imports_another() -> None:
    for path in (ROOT / "drafters").glob("*.py"):
        others = {name.split(".")[2] for name in imported(path) if name.startswith("specdec.drafters.")}
        assert others <= {"base", "stop"}, path


def test_the_page_needs_no_torch() -> None:
    for path in (ROOT / "ui").rglob("*.py"):
        assert not packages(path) & {"torch", "transformers"}, path
        proof = {name for name in imported(path) if name.startswith("specdec.proof")}
        assert proof <= {"specdec.proof.SAMPLE_SIZES"}, path  # the modules of that room import torch
