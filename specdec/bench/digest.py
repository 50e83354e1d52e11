"""Digest the code and weights that a report depends on, so that its tables can say when they are out of date."""

import ast
import functools
import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..paths import ASSETS, PACKAGE

CODE = ("loop", "drafters", "models", "verify", "sampling")
WEIGHTS = {"embedded": "family", "smollm2": "models/smollm2"}  # family -> folder below assets


@functools.cache
def digests(family: str) -> dict[str, str]:
    """Return a digest of each part of the engine, without comments, docstrings and blank lines, and of the weights.

    `family` is the name in a report's `models`. A pair of one's own has no weights here.
    """
    code = {name: digest(code_lines(file) for file in files(PACKAGE, name, ".py", ".cpp")) for name in CODE}
    folder = WEIGHTS.get(family)
    weights = files(ASSETS, folder, ".safetensors") if folder else []
    return code | {"weights": digest(file.read_bytes() for file in weights)}


def changed(report: Mapping[str, Any]) -> list[str]:
    """Return the parts that have changed since this report; all of them, if it holds no digests."""
    provenance = report["provenance"]
    now, then = digests(provenance["models"].get("family", "")), provenance.get("digests", {})
    return [name for name in now if now[name] != then.get(name)]


def files(root: Path, name: str, *endings: str) -> list[Path]:
    """List a module, or the files of a folder, that have one of these endings."""
    places = [root / f"{name}.py"] if (root / f"{name}.py").is_file() else (root / name).rglob("*")
    return sorted(file for file in places if file.suffix in endings)


def digest(contents: Iterator[bytes]) -> str:
    state = hashlib.sha256()
    for content in contents:
        state.update(content)
    return state.hexdigest()[:12]


def code_lines(file: Path) -> bytes:
    """Return a source file without comment lines, blank lines and, in Python, docstrings."""
    text = file.read_text(encoding="utf-8")
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)) if file.suffix == ".py" else ():
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            start, end = node.body[0].lineno - 1, node.body[0].end_lineno
            lines[start:end] = [""] * len(lines[start:end])
    stripped, comment = (line.strip() for line in lines), "#" if file.suffix == ".py" else "//"
    return "\n".join(line for line in stripped if line and not line.startswith(comment)).encode()
