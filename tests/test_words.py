"""Names and docstrings can be read without a dictionary. The limits below may only fall."""

import ast
from collections.abc import Callable
from pathlib import Path

SPECDEC = Path(__file__).resolve().parents[1] / "specdec"
VAGUE = {"told", "found", "kept", "said", "known", "asked"}  # write verbs first, and the field's nouns
MAX_VAGUE_NAMES = 9
MAX_VAGUE_FUNCTIONS = 0  # named only `read` or `of`: say what is read, or made of what
MAX_PAIRS_OF_CONSTANTS = 0  # write one constant a line
MAX_SHORT_DOCSTRINGS = 0  # write a sentence with a verb
MIN_WORDS = 3  # of a docstring's first line
TREES = {path.relative_to(SPECDEC): ast.parse(path.read_text("utf-8")) for path in sorted(SPECDEC.rglob("*.py"))}


def places(chosen: Callable[[ast.AST], bool]) -> list[str]:
    every = ((file, node) for file, tree in TREES.items() for node in ast.walk(tree))
    return [f"{file}:{getattr(node, 'lineno', 1)} {name_of(node)}" for file, node in every if chosen(node)]


def name_of(node: ast.AST) -> str:
    """The identifier that a node brings; "" for a node without one."""
    names = (getattr(node, field, None) for field in ("id", "attr", "arg", "asname", "name"))
    return str(next(filter(None, names), "")).rpartition(".")[2]


def is_vague_function(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name in ("read", "of")


def is_pair_of_constants(node: ast.AST) -> bool:
    targets = node.targets[0] if isinstance(node, ast.Assign) else None
    return isinstance(targets, ast.Tuple) and all(name_of(one).isupper() for one in targets.elts)


def has_short_docstring(node: ast.AST) -> bool:
    if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    text = ast.get_docstring(node)
    return text is not None and len(text.partition("\n")[0].split()) < MIN_WORDS


def test_names_and_docstrings_need_no_dictionary() -> None:
    for chosen, limit in (
        (lambda node: bool(VAGUE & {*name_of(node).lower().split("_")}), MAX_VAGUE_NAMES),
        (is_vague_function, MAX_VAGUE_FUNCTIONS),
        (is_pair_of_constants, MAX_PAIRS_OF_CONSTANTS),
        (has_short_docstring, MAX_SHORT_DOCSTRINGS),
    ):
        assert len(names := places(chosen)) <= limit, names
