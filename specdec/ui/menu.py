"""What the page offers, read from the embedded family's files: the menus need no engine.

A test holds these names against the engine's own.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from .text import ASSETS, strings

FAMILY = ASSETS / "family"
# Every way of drafting, in the menu's order, and the folder that holds its weights.
WEIGHTS = {
    "draft_model": "draft_model",
    "adaptive": "draft_model",
    "early_exit": "",
    "medusa": "medusa",
    "medusa:tree": "medusa",
    "eagle3": "eagle3",
    "eagle3:tree": "eagle3",
    "prompt_lookup": "",
    "none": "",
}
ADAPTIVE, TREE = "adaptive:", ":tree"
RULES = ("rejection", "shared_noise", "block", "typical")
CHAINS_ONLY, LOSSY = {"block"}, {"typical"}
MAX_HEADER = 1_000_000  # bytes


def drafters() -> list[str]:
    """Those whose weights are there. The oldest are always named: without weights the engine says what is missing."""
    return [name for name in WEIGHTS if name in ("draft_model", "prompt_lookup", "none") or is_there(name)]


def is_there(name: str) -> bool:
    if name == "early_exit":
        return bool(read_json(FAMILY / "target" / "config.json").get("exit_layers"))
    return (FAMILY / WEIGHTS[name]).is_dir()


def drafter_lines(rule: str) -> dict[str, str]:
    """Each drafter in one line: what it is, what it costs, and whether the text stays the target's under this rule."""
    words = strings("page")["settings"]
    verdict = words["lossy" if rule in LOSSY else "lossless"]
    return {name: f"{words['drafter_lines'][name]} {cost(name)} {verdict}" for name in drafters()}


def cost(name: str) -> str:
    words = strings("page")["settings"]["costs"]
    if not WEIGHTS[name]:
        return words["nothing"]
    count = parameters(FAMILY / WEIGHTS[name])
    return words["weights"].format(size=size(count)) if count else words["some"]


def parameters(folder: Path) -> int:
    """As the headers of its files tell; tables of whole numbers are none. 0 if they cannot be read."""
    count = 0
    try:
        for path in folder.glob("*.safetensors"):
            with path.open("rb") as file:
                length = int.from_bytes(file.read(8), "little")
                tensors = json.loads(file.read(min(length, MAX_HEADER))).values()
            count += sum(math.prod(tensor["shape"]) for tensor in tensors if "F" in tensor.get("dtype", ""))
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
