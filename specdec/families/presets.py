"""Parse pairs of published models, `TARGET + DRAFT`, each a name on the Hub or a path, without torch."""

import contextlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from .. import exposure
from ..methods import DRAFT_MODEL, EMBEDDED, is_embedded, METHODS, QUANTISED
from ..models.gguf_header import has_gguf_name
from ..paths import ASSETS
from . import chat, hub
from .smollm2 import NAME as SMOLLM2

SEPARATOR = " + "
TARGET_ONLY = tuple(m.name for m in METHODS.values() if not m.part)  # without weights: they copy tokens or draft none
ALONE = ("suffix", "prompt_lookup", QUANTISED)  # methods that a target without a draft can use, the best first
PARTS = [METHODS[name].part for name in (DRAFT_MODEL, "medusa", "eagle3")]  # that published drafts have
PUBLISHED = tuple(m.name for m in METHODS.values() if m.part in PARTS and (not m.variant_of or m.tree))
ON_THE_HUB = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)


@dataclass(frozen=True)
class Pair:
    """The models that `zoo.load_pair` loads. `methods` are the possible drafting methods, the best first."""

    target: str
    drafts: tuple[str, ...] = ()
    methods: tuple[str, ...] = PUBLISHED  # all are listed, because only loading a draft shows its method

    @property
    def models(self) -> tuple[str, ...]:
        return self.target, *self.drafts


def drafters_of(target: str) -> list[Path]:
    """Return the folders of the package's drafters for a target; only SmolLM2 (`smollm2.py`) has any."""
    files = (ASSETS / "models" / target).glob("*/config.json") if target == SMOLLM2 else ()
    return sorted(file.parent for file in files)


def parse_pair(spec: str) -> Pair | None:
    """Parse `TARGET`, `TARGET + DRAFT`, `FAMILY + DRAFT`, or SmolLM2's name; None for other text, as "embedded"."""
    if spec == SMOLLM2:
        folders = {folder.name for folder in drafters_of(SMOLLM2)}
        trained = (method.name for method in METHODS.values() if method.folder in folders)
        return Pair(SMOLLM2, methods=tuple(dict.fromkeys((*trained, *ALONE))))
    target, *drafts = (part.strip() for part in spec.split(SEPARATOR))
    is_family = is_embedded(target) or os.path.isdir(os.path.join(target, "target"))
    if not all(map(is_model, drafts)) or not (is_model(target) or (drafts and is_family)):
        return None
    return Pair(target, tuple(drafts)) if drafts else Pair(target, methods=ALONE)


def is_model(name: str) -> bool:
    """Return whether this can name a checkpoint, on the Hub or here."""
    return (
        name == SMOLLM2
        or bool(ON_THE_HUB.fullmatch(name))
        or has_gguf_name(name)
        or os.path.isfile(os.path.join(name, "config.json"))
    )


def has_chat_template(spec: str) -> bool:
    """Return whether a pair's target has a chat template, as one that is not here yet is assumed to."""
    pair = parse_pair(spec)
    if pair is None or pair.target == SMOLLM2:
        return pair is not None
    with contextlib.suppress(ValueError):
        place = Path(pair.target) if hub.is_on_disk(pair.target) else hub.cached(pair.target)
        return place is None or bool(chat.template_of(place)[0])
    return True


def host_pair() -> str:
    """Return the pair that runs if a visitor chooses none: the host's, or else the embedded family."""
    return exposure.host.pair or EMBEDDED


def allowed_pairs() -> tuple[str, ...] | None:
    """Return the pairs that a visitor may name; None: any. By default, others may name only the host's."""
    listed = exposure.host.pairs
    if listed is None and exposure.limits().any_pair:
        return None
    pairs = dict.fromkeys((host_pair(), *(listed or ())))
    return tuple(name for name in pairs if name and not is_embedded(name))
