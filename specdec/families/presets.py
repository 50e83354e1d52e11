"""Pairs of published models, written `TARGET + DRAFT`: names on the Hub, or folders.

It imports no torch: the page's menu reads it.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..exposure import limits
from ..methods import DRAFT_MODEL, EMBEDDED, METHODS, methods_sharing_parts, QUANTISED, ROUNDED
from ..models.gguf_header import is_named
from ..paths import ASSETS
from . import chat, hub
from .star import NAME as STAR

BESIDE = " + "
ALWAYS = tuple(m.name for m in METHODS.values() if not m.part)  # ways of drafting that need nothing but the target
# Of a target without a draft, the quickest to begin first.
ALONE = ("suffix", "prompt_lookup", QUANTISED)
ANY = methods_sharing_parts(DRAFT_MODEL, "medusa", "eagle3")  # which others publish
ON_THE_HUB = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)


@dataclass(frozen=True)
class Pair:
    """What `zoo.load_pair` loads. `methods` are the ways of drafting for it, the best first."""

    target: str
    drafts: tuple[str, ...] = ()
    methods: tuple[str, ...] = ANY  # of a stranger's draft: until it is loaded, any may serve

    @property
    def models(self) -> tuple[str, ...]:
        return self.target, *self.drafts


def drafters_of(target: str) -> list[Path]:
    """The folders of drafters that the package has for a target that it does not have."""
    return sorted(file.parent for file in (ASSETS / "models" / target).glob("*/config.json")) if target == STAR else []


def of_star() -> Pair:
    folders = {folder.name for folder in drafters_of(STAR)}
    trained = (method.name for method in METHODS.values() if method.folder in folders)
    return Pair(STAR, methods=tuple(dict.fromkeys((*trained, *ALONE))))


def named(spec: str) -> Pair | None:
    """Return the pair that is written so, or of the star; None for a family of ours, or where it is no pair."""
    if spec == STAR:
        return of_star()
    target, *drafts = (part.strip() for part in spec.split(BESIDE))
    if not all(map(is_model, (target, *drafts))):
        return None
    if not drafts:
        return Pair(target, methods=ALONE)
    return Pair(target, tuple(drafts))


def is_model(name: str) -> bool:
    """Whether it may be a checkpoint: the star, OWNER/MODEL, a folder with a config.json, or a GGUF file."""
    return (
        name == STAR
        or bool(ON_THE_HUB.fullmatch(name))
        or is_named(name)
        or os.path.isfile(os.path.join(name, "config.json"))
    )


def answers(spec: str) -> bool:
    """Whether the target of a pair answers a prompt, as one with a chat template does; others continue it. Of one that
    is not on this machine yet nobody knows: most that people name do.
    """
    pair = named(spec)
    if pair is None or pair.target == STAR:
        return pair is not None
    with contextlib.suppress(ValueError):
        place = Path(pair.target) if hub.is_on_disk(pair.target) else hub.cached(pair.target)
        return place is None or bool(chat.template_of(place)[0])
    return True


def written(target: str, drafts: Sequence[str] = ()) -> str:
    return BESIDE.join((target, *drafts))


def hosts() -> str:
    """The pair that this host starts with (SPECDEC_PAIR)."""
    return os.environ.get("SPECDEC_PAIR", "").strip() or EMBEDDED


def allowed() -> tuple[str, ...] | None:
    """The pairs beside ours that a visitor may ask for (SPECDEC_PAIRS, commas between); None for any.

    Where others reach the page that is its own pair alone, unless the owner says more: it would be downloaded there.
    """
    names = os.environ.get("SPECDEC_PAIRS")
    if names is None and limits().any_pair:
        return None
    pairs = dict.fromkeys(name.strip() for name in (hosts(), *(names or "").split(",")))
    return tuple(name for name in pairs if name not in ("", EMBEDDED, *ROUNDED))
