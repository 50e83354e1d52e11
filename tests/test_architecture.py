"""Who may import whom. The table is the design; a new edge is a decision, not an accident."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.test_packaging import imports as packages

ROOT = Path(__file__).resolve().parents[1] / "specdec"
READING = "messages types sampling verify rules events text describe task host loop".split()
ALLOWED = {
    "messages": set(),
    "types": {"messages"},
    "text": {"messages"},
    "paths": {"messages"},
    "children": set(),
    "exposure": set(),
    "sampling": {"types"},
    "verify": {"types", "sampling"},
    "rules": {"types", "methods", "sampling", "verify"},
    "events": {"messages", "types"},
    "describe": {"types", "events", "sampling", "rules"},
    "task": {"types", "events", "sampling", "verify", "models", "drafters"},
    "host": {"types", "sampling", "describe", "task", "drafters"},
    "loop": {*READING, "models"} - {"rules", "verify", "describe", "drafters"},
    "models": {"types", "models"},
    "drafters": {"types", "sampling", "models", "drafters"},
    "figures": {"types", "events", "paths", "figures"},
    "methods": {"messages", "models", "drafters"},
    "settings": {"messages", "types", "exposure", "methods"},
    "families": {"types", "exposure", "methods", "text", "paths", "models", "drafters", "figures", "families", "loop"}
    | {"messages", "task"},
    "gpu": {*READING, "models", "drafters", "gpu"} - {"messages", "text", "rules"},
    "proof": {*READING, "paths", "models", "drafters", "families", "proof"} - {"text", "describe"},
    "training": {"messages", "types", "paths", "models", "drafters", "families", "figures", "training"},
    "lanes": {"", *READING, "methods", "settings", "paths", "models", "drafters", "figures", "families", "gpu", "lanes"}
    | {"traces"} - {"text"},
    "traces": {"messages", "types", "methods", "events", "paths", "figures", "families", "lanes", "traces"}
    | {"sampling", "verify", "rules", "describe"},  # of the audit, which judges again
    "servers": {"messages", "types", "methods", "events", "models", "engine", "proof", "lanes", "servers"},
    "engine": {*READING, "methods", "settings", "models", "drafters", "figures", "families", "gpu", "lanes", "traces"}
    - {"sampling", "describe", "loop", "text"},
    "process": {"messages", "events", "methods", "settings", "traces", "engine", "families"}
    | {"loop", "gpu", "models", "proof"},
    "zero": {"messages", "settings", "engine", "gpu", "process"},
    "bench": {"", "types", "paths", "events", "engine", "methods", "families", "gpu", "lanes", "servers", "bench"}
    | {"messages", "figures"},
}
for part in ("families", "lanes", "proof"):  # they start processes
    ALLOWED[part].add("children")
# Of `families` what is data, and the way to the Hub.
SESSION = {"exposure", "methods", "settings", "messages", "families", "process", "ui"}
PAGE = {*"exposure paths methods settings events families traces figures proof types messages ui".split()}
STARTING = {"browser.py"}  # what of it starts a process
NOBODY = {"ui", "bench", "tools"}


def imports(path: Path) -> set[str]:
    """The parts of the project that a file imports, as names below `specdec` ("" is the package itself)."""
    names = {name.split(".")[1] if "." in name else "" for name in imported(path)}
    return {part if (ROOT / part).exists() or (ROOT / f"{part}.py").exists() else "" for part in names}


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


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_follow_the_design(path: Path) -> None:
    part = path.relative_to(ROOT).parts[0].removesuffix(".py")
    if part == "cli" or path.name == "__main__.py":  # above all others
        return
    if part == "ui":
        allowed = SESSION if path.name == "session.py" else PAGE
        allowed = allowed | ({"children"} if path.name in STARTING else set())
    else:
        allowed = ALLOWED[part]
        assert not imports(path) & (NOBODY - {part})
    assert imports(path) <= allowed


def test_no_drafter_imports_another() -> None:
    for path in (ROOT / "drafters").glob("*.py"):
        others = {name.split(".")[2] for name in imported(path) if name.startswith("specdec.drafters.")}
        assert others <= {"base", "stop"}, path


def test_the_page_needs_no_torch() -> None:
    for path in (ROOT / "ui").rglob("*.py"):
        assert not packages(path) & {"torch", "transformers"}, path
        proof = {name for name in imported(path) if name.startswith("specdec.proof")}
        assert proof <= {"specdec.proof.SAMPLE_SIZES"}, path  # the modules of that room import torch
