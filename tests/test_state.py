"""What a module remembers between calls is little, and each of it is here, with its reason."""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1] / "specdec"
MUTATORS = {"add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "update"}
REASONS = {
    "ui/session.py: session": "a page's process has one engine process and one line of visitors",
    "exposure.py: host": "a process serves one page, and its host decides once who can reach it",
    "gpu/cuda.py: IN_PROCESS": "CUDA has so many streams a process, and old versions stop capturing for ever",
}


def remembered(path: Path) -> set[str]:
    """The names of a module, or of its classes, whose value functions change; and its objects that hold a state."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    classes = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    named = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    found = {
        name
        for name, value in named.items()
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in classes
        and stateful(tree, value.func.id)
    }  # fmt: skip
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    for function in (each for each in functions if each.name != "__init_subclass__"):  # that makes a class
        local = {
            node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        local |= {argument.arg for argument in ast.walk(function) if isinstance(argument, ast.arg)}
        changed = {name for node in ast.walk(function) if isinstance(node, ast.Global) for name in node.names}
        found |= changed
        for node in ast.walk(function):
            place: ast.expr | None = None
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS:
                place = node.func.value
            elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
                place = node.value
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                place = node.value
                if isinstance(place, ast.Name) and place.id in classes | {"cls"}:
                    found.add(f"{place.id}.{node.attr}")
            if isinstance(place, ast.Name) and place.id in named and place.id not in local - changed:
                found.add(place.id)
    return found


def stateful(tree: ast.Module, name: str) -> bool:
    """Whether methods of a class, other than `__init__`, assign to the object's attributes."""
    (found,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)
    methods = [node for node in found.body if isinstance(node, ast.FunctionDef) and node.name != "__init__"]
    attributes = [node for method in methods for node in ast.walk(method) if isinstance(node, ast.Attribute)]
    stored = any(isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self" for node in attributes)
    return stored or any(node.attr in MUTATORS and ast.unparse(node.value).startswith("self.") for node in attributes)


def test_no_module_remembers_more_than_it_says() -> None:
    found = {f"{path.relative_to(ROOT)}: {name}" for path in ROOT.rglob("*.py") for name in remembered(path)}
    assert found == REASONS.keys() and len(REASONS) <= 4
