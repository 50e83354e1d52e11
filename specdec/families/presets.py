"""Say which models a target's name stands for, without torch: the one place that parses such a name."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from .. import exposure
from ..methods import DRAFT_MODEL, EMBEDDED, EMBEDDED_TARGETS, METHODS, QUANTISED, ROUNDED
from ..models.gguf_header import has_gguf_name
from ..paths import ASSETS
from .smollm2 import NAME as SMOLLM2

SEPARATOR = " + "
TARGET_ONLY = tuple(m.name for m in METHODS.values() if not m.part)  # without weights: they copy tokens or draft none
ALONE = ("suffix", "prompt_lookup", QUANTISED)  # methods that a target without a draft can use, the best first
PARTS = [METHODS[name].part for name in (DRAFT_MODEL, "medusa", "eagle3")]  # that published drafts have
PUBLISHED = tuple(m.name for m in METHODS.values() if m.part in PARTS and (not m.variant_of or m.tree))
ON_THE_HUB = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)


@dataclass(frozen=True)
class ModelNames:
    """The models that a target's name stands for. A pair is a checkpoint, or any target with drafts."""

    kind: Literal["embedded", "pair", "family"]  # `family`: a folder with `target/`; loading refuses anything else
    target: str
    drafts: tuple[str, ...] = ()

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the models that may have to be fetched."""
        return (self.target, *self.drafts) if self.kind == "pair" else ()

    @property
    def precision(self) -> str | None:
        """The precision that the target's name fixes."""
        return ROUNDED.get(self.target)

    @property
    def methods(self) -> tuple[str, ...]:
        """The possible drafting methods, the best first: with drafts all, because only loading shows a draft's."""
        if self.drafts or self.kind != "pair":
            return PUBLISHED
        folders = {folder.name for folder in drafters_of(self.target)}
        trained = (method.name for method in METHODS.values() if method.folder in folders)
        return tuple(dict.fromkeys((*trained, *ALONE)))


def drafters_of(target: str) -> list[Path]:
    """Return the folders of the package's drafters for a target; only SmolLM2 (`smollm2.py`) has any."""
    files = (ASSETS / "models" / target).glob("*/config.json") if target == SMOLLM2 else ()
    return sorted(file.parent for file in files)


def parse(name: str, drafts: Sequence[str] = ()) -> ModelNames:
    """Parse the name of a target or pair. Further `drafts` make a pair of any name; loading refuses what is none."""
    target, *written = (part.strip() for part in name.split(SEPARATOR))
    is_family = target in EMBEDDED_TARGETS or os.path.isdir(os.path.join(target, "target"))
    if all(map(is_model, written)) and (is_model(target) or (written and is_family)):
        return ModelNames("pair", target, (*written, *drafts))
    if drafts:
        return ModelNames("pair", name, tuple(drafts))
    return ModelNames("embedded" if name in EMBEDDED_TARGETS else "family", name)


def is_model(name: str) -> bool:
    """Return whether this can name a checkpoint, on the Hub or here."""
    has_form = name == SMOLLM2 or has_gguf_name(name) or bool(ON_THE_HUB.fullmatch(name))
    return has_form or os.path.isfile(os.path.join(name, "config.json"))


def host_pair() -> str:
    """Return the pair that runs if a visitor chooses none: the host's, or else the embedded family."""
    return exposure.host.pair or EMBEDDED


def allowed_pairs() -> tuple[str, ...] | None:
    """Return the pairs that a visitor may name; None: any. By default, others may name only the host's."""
    listed = exposure.host.pairs
    if listed is None and exposure.limits().any_pair:
        return None
    pairs = dict.fromkeys((host_pair(), *(listed or ())))
    return tuple(name for name in pairs if name and parse(name).kind != "embedded")
