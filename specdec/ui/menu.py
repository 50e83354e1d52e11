"""What the page offers, read from the embedded family's files: the menus need no engine.

A test holds these names against the engine's own.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from ..methods import adapted, DEFAULT, EMBEDDED, EXIT, known, LOSSY, METHODS, RULES, TUNED
from ..traces.rulings import BLOCK, NOISE, REJECTION, TYPICAL
from .text import ASSETS, of_drafters, sentences, strings

FAMILY = ASSETS / "family"
# The families that share this folder: the general target, and the one tuned on code, each with its drafters.
TARGETS = {EMBEDDED: "target", TUNED: "tuned/target"}
RULE_NAMES = dict(zip(RULES, (REJECTION, NOISE, BLOCK, TYPICAL), strict=True))  # as a trace calls them
MAX_HEADER = 1_000_000  # bytes


def families() -> list[str]:
    """Those whose target is there; without any, the engine says what is missing."""
    return [name for name in TARGETS if name == EMBEDDED or (FAMILY / TARGETS[name]).is_dir()]


def drafters(family: str = EMBEDDED) -> list[str]:
    """Those whose weights are there. The default is always named: without weights the engine says what is missing."""
    return [name for name, method in METHODS.items() if family in method.families and is_there(name, family)]


def is_there(name: str, family: str) -> bool:
    method = METHODS[name]
    if method.part == EXIT:
        return bool(read_json(FAMILY / TARGETS[family] / "config.json").get("exit_layers"))
    return name == DEFAULT or not method.part or (FAMILY / method.folder).is_dir()


def drafter_lines(rule: str, family: str = EMBEDDED) -> dict[str, str]:
    """Each drafter in one line: what it is, what it costs, and whether the text stays the target's under this rule."""
    words = strings("page")["settings"]
    lines = of_drafters("line") | (of_drafters("line_tuned") if family == TUNED else {})
    verdict = words["lossy" if rule in LOSSY else "lossless"]
    return {name: sentences(lines[name], cost(name), verdict) for name in drafters(family)}


def cost(name: str) -> str:
    words = strings("page")["settings"]["costs"]
    if not METHODS[name].folder:
        return words["nothing"]
    count = parameters(FAMILY / METHODS[name].folder)
    return words["weights"].format(size=size(count)) if count else words["some"]


def has_peer(drafter: str) -> bool:
    """Whether transformers can run it, too; `draft_model:NAME` is a draft model like any other."""
    method = known(drafter)
    return method is not None and method.peer and not adapted(drafter)


def peer_lines() -> dict[str, str]:
    """Of each drafter, what the lane of transformers would be, or why there is none."""
    words = of_drafters("peer_line")
    return {m.name: words[(m.variant_of or m.name) if m.peer else "other"] for m in METHODS.values()}


def parameters(folder: Path) -> int:
    """As the headers of its files tell; scales and tables of whole numbers are none. 0 if they cannot be read."""
    count = 0
    try:
        for path in folder.glob("*.safetensors"):
            with path.open("rb") as file:
                length = int.from_bytes(file.read(8), "little")
                tensors = json.loads(file.read(min(length, MAX_HEADER)))
            count += sum(
                math.prod(tensor["shape"])
                for name, tensor in tensors.items()
                if not name.endswith(".scale") and ("F" in tensor.get("dtype", "") or f"{name}.scale" in tensors)
            )
    except (OSError, ValueError, AttributeError, KeyError, TypeError):
        return 0
    return count


def read_json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def size(count: int) -> str:
    return f"{count / 1e6:.1f} M" if count >= 1e6 else f"{round(count / 1e3)} k"
