"""List the entries of the page's menus, from the embedded target's files and the host's pairs."""

import contextlib
from pathlib import Path
from typing import Any

from huggingface_hub import parse_local_safetensors_file_metadata

from ..families import chat, hub, presets
from ..figures import machine
from ..methods import DEFAULT_DRAFTER, DRAFT_MODEL, EMBEDDED, EXIT, METHODS, ROUNDED, RULE_FACTS
from ..paths import FAMILY
from .text import of_drafters, questions, read_json, sentences, strings

RULE_KEYS = {rule.name: key for key, rule in RULE_FACTS.items()}  # name in traces -> in settings
MAX_PAIR = 300  # characters of a pair that a visitor types


def targets() -> list[str]:
    ours = [EMBEDDED, *(name for name, numbers in ROUNDED.items() if numbers != "int8" or not machine.gpu_memory())]
    allowed = presets.allowed_pairs()
    if allowed is None or hub.is_here(presets.SMOLLM2):
        ours.append(presets.SMOLLM2)
    return list(dict.fromkeys((*ours, *([presets.host_pair()] if allowed is None else allowed))))


def answers(target: str) -> bool:
    """Say whether a target answers a prompt, instead of continuing it, as one that is not here yet is assumed to."""
    names = presets.parse(target)
    if names.kind == "pair" and names.target != presets.SMOLLM2:
        with contextlib.suppress(ValueError):
            place = hub.find_here(names.target)
            return place is None or bool(chat.template_of(place)[0])
    return names.kind == "pair"


def target_of(kind: str) -> str:
    """Return the target of this kind's recordings."""
    return presets.SMOLLM2 if kind in questions() else EMBEDDED


def drafter_of(kind: str) -> str:
    """Return the drafter of this kind's main recording."""
    return drafters(presets.SMOLLM2)[0] if kind in questions() else DRAFT_MODEL


def is_offered(target: Any) -> bool:
    """Say whether a visitor may run this target, which need not be in the menu."""
    may_be_typed = isinstance(target, str) and len(target) <= MAX_PAIR and presets.allowed_pairs() is None
    return target in targets() or (may_be_typed and presets.parse(target).kind == "pair")


def drafters(target: str = EMBEDDED) -> list[str]:
    """List a target's drafters, without trees on a GPU, and without embedded ones that lack files."""
    models = presets.parse(target)
    if models.kind == "embedded":
        names = [name for name, method in METHODS.items() if method.embedded and has_weights(name)]
    else:
        names = list(dict.fromkeys((*models.methods, *presets.TARGET_ONLY)))
    return [name for name in names if not (METHODS[name].tree and machine.gpu_memory())]


def target_name(target: str) -> str:
    words = strings("page")["settings"]
    pairs = {name: words["name"] for name, words in strings("pairs").items()}
    names = {EMBEDDED: words["embedded"]} | words["rounded"] | pairs
    return names.get(target, target)


def target_sentence(target: str) -> str:
    words = strings("page")["settings"]
    if target == EMBEDDED:
        return sentences(words["embedded_line"], words["target_note"] if presets.allowed_pairs() is None else "")
    if target in ROUNDED:
        return words["rounded_line"]
    return strings("pairs")[target]["shows"] if target == presets.SMOLLM2 else words["own_pair"]


def has_weights(name: str) -> bool:
    method = METHODS[name]
    if method.part == EXIT:
        return bool(read_json(FAMILY / "target" / "config.json").get("exit_layers"))
    return name == DRAFT_MODEL or not method.part or (FAMILY / method.folder).is_dir()


def drafter_sentences(rule: str, target: str = EMBEDDED) -> dict[str, str]:
    """Describe each drafter in a line: what it is, its cost, whether it is lossless."""
    words = strings("page")["settings"]
    lines = {DEFAULT_DRAFTER: words["chosen"]["line"]} | of_drafters("line")
    verdict = words["lossless" if RULE_FACTS[rule].lossless else "lossy"]
    ours = presets.parse(target).kind == "embedded"
    costs = {DEFAULT_DRAFTER: ""} | {name: cost(name) if ours else "" for name in drafters(target)}
    return {name: sentences(lines[name], costs[name], verdict) for name in costs}


def cost(name: str) -> str:
    words = strings("page")["settings"]["costs"]
    if not METHODS[name].folder:
        return words["nothing"]
    count = parameters(FAMILY / METHODS[name].folder)
    return words["weights"].format(size=size(count)) if count else words["some"]


def peer_sentences() -> dict[str, str]:
    """Describe transformers' lane for each drafter, or say why there is none."""
    words = of_drafters("peer_line")
    lines = {m.name: words[(m.variant_of or m.name) if m.peer else "other"] for m in METHODS.values()}
    return lines | {DEFAULT_DRAFTER: words[DRAFT_MODEL]}


def parameters(folder: Path) -> int:
    """Count the weights in a folder's files, without scales and integer tables."""
    count = 0
    for path in folder.glob("*.safetensors"):
        tensors = parse_local_safetensors_file_metadata(path).tensors
        for name, tensor in tensors.items():
            is_weight = "F" in tensor.dtype or f"{name}.scale" in tensors
            if is_weight and not name.endswith(".scale"):
                count += tensor.parameter_count
    return count


def size(count: int) -> str:
    return f"{count / 1e6:.1f} M" if count >= 1e6 else f"{round(count / 1e3)} k"
