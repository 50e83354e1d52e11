"""What the page offers, read from the embedded family's files: the menus need no engine.

A test holds these names against the engine's own.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from ..traces.audit import BLOCK, NOISE, REJECTION, TYPICAL
from .text import ASSETS, sentences, strings

FAMILY = ASSETS / "family"
# Every way of drafting, in the menu's order, and the folder that holds its weights.
WEIGHTS = {
    "draft_model": "draft_model",
    "draft_model:tuned": "tuned/draft_model",
    "adaptive": "draft_model",
    "early_exit": "",
    "medusa": "medusa",
    "medusa:tree": "medusa",
    "eagle3": "eagle3",
    "eagle3:tree": "eagle3",
    "prompt_lookup": "",
    "draft_model:scratch": "draft_model_scratch",
    "draft_model:story": "draft_model_story",
    "draft_model:large": "draft_model_large",
    "none": "",
}
# The families that share this folder: the general target, and the one tuned on code with what can draft for it.
EMBEDDED, TUNED = "embedded", "tuned"
TARGETS = {EMBEDDED: "target", TUNED: "tuned/target"}
FOR_TUNED = {"draft_model", "draft_model:tuned", "adaptive", "early_exit", "prompt_lookup", "none"}
ADAPTIVE, TREE = "adaptive:", ":tree"
RULES = ("rejection", "shared_noise", "block", "typical")
RULE_NAMES = dict(zip(RULES, (REJECTION, NOISE, BLOCK, TYPICAL), strict=True))  # as a trace calls them
CHAINS_ONLY, LOSSY = {"block"}, {"typical"}
PEERED = ("draft_model", "prompt_lookup")  # what transformers drafts with, too
MAX_HEADER = 1_000_000  # bytes


def families() -> list[str]:
    """Those whose target is there; without any, the engine says what is missing."""
    return [name for name in TARGETS if name == EMBEDDED or (FAMILY / TARGETS[name]).is_dir()]


def drafters(family: str = EMBEDDED) -> list[str]:
    """Those whose weights are there. The oldest are always named: without weights the engine says what is missing."""
    served = FOR_TUNED if family == TUNED else WEIGHTS.keys() - {"draft_model:tuned"}
    always = ("draft_model", "prompt_lookup", "none")
    return [name for name in WEIGHTS if name in served and (name in always or is_there(name, family))]


def is_there(name: str, family: str) -> bool:
    if name == "early_exit":
        return bool(read_json(FAMILY / TARGETS[family] / "config.json").get("exit_layers"))
    return (FAMILY / WEIGHTS[name]).is_dir()


def drafter_lines(rule: str, family: str = EMBEDDED) -> dict[str, str]:
    """Each drafter in one line: what it is, what it costs, and whether the text stays the target's under this rule."""
    words = strings("page")["settings"]
    lines = words["drafter_lines"] | (words["tuned_lines"] if family == TUNED else {})
    verdict = words["lossy" if rule in LOSSY else "lossless"]
    return {name: sentences(lines[name], cost(name), verdict) for name in drafters(family)}


def cost(name: str) -> str:
    words = strings("page")["settings"]["costs"]
    if not WEIGHTS[name]:
        return words["nothing"]
    count = parameters(FAMILY / WEIGHTS[name])
    return words["weights"].format(size=size(count)) if count else words["some"]


def has_peer(drafter: str) -> bool:
    """Whether transformers can run it, too; `draft_model:NAME` is a draft model like any other."""
    return drafter.partition(":")[0] in PEERED


def peer_lines() -> dict[str, str]:
    """Of each drafter, what the lane of transformers would be, or why there is none."""
    words = strings("page")["settings"]["peer_lines"]
    return {name: words[name.partition(":")[0] if has_peer(name) else "other"] for name in WEIGHTS}


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
