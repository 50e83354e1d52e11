"""List the entries of the page's menus, which come from the embedded target's files and from the host's pairs.

A test compares the names here with the names that the engine accepts.
"""

import json
import math
from pathlib import Path
from typing import Any

from safetensors import safe_open

from ..families import hub, presets
from ..figures import machine
from ..methods import DEFAULT_DRAFTER, DRAFT_MODEL, EMBEDDED, EXIT, METHODS, ROUNDED, RULE_FACTS
from ..paths import FAMILY
from .text import of_drafters, prompts, questions, sentences, strings

RULE_KEYS = {rule.name: key for key, rule in RULE_FACTS.items()}  # name in traces -> in settings
MAX_PAIR = 300  # characters of a pair that a visitor types


def targets() -> list[str]:
    """List the embedded target in its precisions, SmolLM2 if loadable, and this host's pairs."""
    ours = [EMBEDDED, *(name for name, numbers in ROUNDED.items() if numbers != "int8" or not machine.gpu_memory())]
    allowed = presets.allowed_pairs()
    if allowed is None or hub.is_here(presets.SMOLLM2):
        ours.append(presets.SMOLLM2)
    return list(dict.fromkeys((*ours, *([presets.host_pair()] if allowed is None else allowed))))


def kinds(answers: bool = False) -> list[str]:
    """List the kinds of example prompts: questions if `answers`, otherwise texts to continue."""
    return [kind for kind in prompts() if (kind in questions()) == answers]


def answers(target: str) -> bool:
    """Say whether a target answers a prompt, as a chat model does, instead of continuing it."""
    return not is_ours(target) and presets.has_chat_template(target)


def target_of(kind: str) -> str:
    """Return the target that ran this kind of prompt in the recordings."""
    return presets.SMOLLM2 if kind in questions() else EMBEDDED


def drafter_of(kind: str) -> str:
    """Return the drafter of the recording that is shown first for this kind."""
    return drafters(presets.SMOLLM2)[0] if kind in questions() else DRAFT_MODEL


def is_offered(target: Any) -> bool:
    """Whether a visitor may run this target. Some hosts allow pairs that are not in the menu."""
    if target in targets():
        return True
    may_be_typed = isinstance(target, str) and len(target) <= MAX_PAIR and presets.allowed_pairs() is None
    return may_be_typed and presets.parse_pair(target) is not None


def drafters(target: str = EMBEDDED) -> list[str]:
    """List a target's drafters. On a GPU, tree drafters are left out.

    Embedded drafters whose files are missing are left out, except the draft model.
    """
    if is_ours(target):
        names = [name for name, method in METHODS.items() if method.embedded and has_weights(name)]
    else:
        pair = presets.parse_pair(target) or presets.Pair(target)
        names = list(dict.fromkeys((*pair.methods, *presets.TARGET_ONLY)))
    return [name for name in names if not (METHODS[name].tree and machine.gpu_memory())]


def is_ours(target: str) -> bool:
    """Say whether `target` is the embedded target, in any precision."""
    return target == EMBEDDED or target in ROUNDED


def target_name(target: str) -> str:
    words = strings("page")["settings"]
    pairs = {name: words["name"] for name, words in strings("pairs").items()}
    names = {EMBEDDED: words["embedded"]} | words["rounded"] | pairs
    return names.get(target, target)


def target_line(target: str) -> str:
    words = strings("page")["settings"]
    if target == EMBEDDED:
        return sentences(words["embedded_line"], words["target_note"] if presets.allowed_pairs() is None else "")
    if target in ROUNDED:
        return words["rounded_line"]
    if target == presets.SMOLLM2:
        return strings("pairs")[target]["shows"]
    return words["own_pair"]


def has_weights(name: str) -> bool:
    method = METHODS[name]
    if method.part == EXIT:
        return bool(read_json(FAMILY / "target" / "config.json").get("exit_layers"))
    return name == DRAFT_MODEL or not method.part or (FAMILY / method.folder).is_dir()


def drafter_lines(rule: str, target: str = EMBEDDED) -> dict[str, str]:
    """Describe each drafter in a line: what it is, what it costs, and whether it is lossless under this rule."""
    words = strings("page")["settings"]
    lines = of_drafters("line")
    verdict = words["lossless" if RULE_FACTS[rule].lossless else "lossy"]
    costs = {name: cost(name) if is_ours(target) else "" for name in drafters(target)}
    default = {DEFAULT_DRAFTER: sentences(words["chosen"]["line"], verdict)}
    return default | {name: sentences(lines[name], costs[name], verdict) for name in costs}


def cost(name: str) -> str:
    words = strings("page")["settings"]["costs"]
    if not METHODS[name].folder:
        return words["nothing"]
    count = parameters(FAMILY / METHODS[name].folder)
    return words["weights"].format(size=size(count)) if count else words["some"]


def has_peer(drafter: str) -> bool:
    return drafter in METHODS and METHODS[drafter].peer


def peer_lines() -> dict[str, str]:
    """Describe the lane that transformers would run for each drafter, or say why there is none."""
    words = of_drafters("peer_line")
    lines = {m.name: words[(m.variant_of or m.name) if m.peer else "other"] for m in METHODS.values()}
    return lines | {DEFAULT_DRAFTER: words[DRAFT_MODEL]}


def parameters(folder: Path) -> int:
    """Count the weights in a folder's files, except quantisation scales and integer tables; 0 without files."""
    count = 0
    for path in folder.glob("*.safetensors"):
        with safe_open(path, "numpy") as file:
            names = set(file.keys())
            for name in names:
                tensor = file.get_slice(name)
                is_weight = "F" in tensor.get_dtype() or f"{name}.scale" in names
                if is_weight and not name.endswith(".scale"):
                    count += math.prod(tensor.get_shape())
    return count


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON file; {} if there is none."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def size(count: int) -> str:
    return f"{count / 1e6:.1f} M" if count >= 1e6 else f"{round(count / 1e3)} k"
