"""Every way of drafting, once: menus, families, bench, cards and tests read this table.

It is data: a class is named by its place below the package and imported when a run needs it, because the page must not
import torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, Literal, TYPE_CHECKING

from .types import check_k, has_lone_surrogate, PromptError, TranslatableText

if TYPE_CHECKING:
    from .drafters.base import Drafter
    from .models.view import TargetView

EMBEDDED = "embedded"  # the family that comes with the package
ROUNDED = {"embedded:bfloat16": "bfloat16", "embedded:int8": "int8"}  # the same weights in fewer bits: other targets
RULES = ("rejection", "match", "shared_noise", "block", "typical")  # the keys of `rules.RULES`
IN_BROWSER = {  # who drafts there, too, for which family (assets/page/engine/worker.js)
    EMBEDDED: ("draft_model", "prompt_lookup", "none"),
    "smollm2": ("prompt_lookup", "none"),
}
LOSSY = frozenset({"typical"})
CHAINS_ONLY = frozenset({"block"})
ADAPTIVE = "adaptive"
DRAFT_MODEL = "draft_model"
LOOKUP = "prompt_lookup"
QUANTISED = "quantised"
DEFAULT_DRAFTER = "default"  # no drafter's name: `lanes.default.choose` chooses the one that is expected to pay
MODEL = "models.base.LanguageModel"
EXIT = "exit_layer"
Kind = Literal["model", "heads", "layers", "lookup", "wrapper", "none"]


@dataclass(frozen=True)
class Card:
    """Where to read about a method, by title, and examples on the Hub: drafter -> its target, "" if it is its own."""

    papers: Mapping[str, str]
    hub: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Method:
    """One way of drafting. Its words are in `assets/text/<language>/drafters.json`, its picture is `NAME.svg`."""

    name: str  # in menus and traces
    kind: Kind  # what drafts: a language model, parts on the target's states, the target's first layers, a search …
    drafter: str  # its class
    takes: tuple[str, ...] = ()  # what the class is made from, in order: view, part, capacity
    part: str = ""  # what it drafts with: a class that loads weights and may name `taps`, or EXIT; "" nothing
    folder: str = ""  # where a family keeps those weights
    tree: bool = False  # else it drafts chains
    peer: bool = False  # transformers can draft so, too
    variant_of: str = ""  # the method whose code it shares, with other weights
    card: Card | None = None

    @property
    def embedded(self) -> bool:
        """Whether the embedded family has it; else pairs alone."""
        return bool(self.folder) or self.part in ("", EXIT)

    @property
    def drafter_class(self) -> type[Any]:
        return located(self.drafter)

    @property
    def part_class(self) -> type[Any] | None:
        """None where no weights are to be loaded."""
        return None if self.part in ("", EXIT) else located(self.part)

    def make(self, view: TargetView, part: Any, capacity: int) -> Drafter:
        """A drafter for one run of at most `capacity` tokens, on the target as that run sees it. `Family.lane` makes
        those that wrap another, since they need its costs.
        """
        given = {"view": view, "part": part, "capacity": capacity}
        drafter: Drafter = self.drafter_class(*(given[name] for name in self.takes))
        return drafter


def located(place: str) -> type[Any]:
    """The class at `module.Class` below the package."""
    module, _, name = place.rpartition(".")
    cls: type[Any] = getattr(import_module(f".{module}", __package__), name)
    return cls


def tree(of: Method, drafter: str) -> Method:
    """The same part, drafting trees."""
    return replace(of, name=f"{of.name}:tree", drafter=drafter, tree=True, variant_of=of.name, card=None)


DRAFT_MODEL_METHOD = Method(
    DRAFT_MODEL,
    "model",
    "drafters.draft_model.DraftModelDrafter",
    ("part", "capacity"),
    part=MODEL,
    folder=DRAFT_MODEL,
    peer=True,
    card=Card(
        {
            "Leviathan et al. 2022": "https://arxiv.org/abs/2211.17192",
            "Chen et al. 2023": "https://arxiv.org/abs/2302.01318",
        },
        {
            "Qwen/Qwen3-0.6B": "Qwen/Qwen3-8B",
            "meta-llama/Llama-3.2-1B-Instruct": "meta-llama/Llama-3.1-8B-Instruct",
        },
    ),
)
MEDUSA = Method(
    "medusa",
    "heads",
    "drafters.medusa.MedusaDrafter",
    ("view", "part"),
    part="drafters.medusa.MedusaHeads",
    folder="medusa",
    card=Card(
        {"Cai et al. 2024": "https://arxiv.org/abs/2401.10774"},
        {"FasterDecoding/medusa-vicuna-7b-v1.3": "lmsys/vicuna-7b-v1.3"},
    ),
)
EAGLE3 = Method(
    "eagle3",
    "heads",
    "drafters.eagle3.Eagle3Drafter",
    ("view", "part", "capacity"),
    part="drafters.eagle3.Eagle3Head",
    folder="eagle3",
    card=Card(
        {"Li et al. 2025": "https://arxiv.org/abs/2503.01840"},
        {
            "RedHatAI/Qwen3-8B-speculator.eagle3": "Qwen/Qwen3-8B",
            "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B": "meta-llama/Llama-3.1-8B-Instruct",
        },
    ),
)
EVERY = (  # in the menu's order
    DRAFT_MODEL_METHOD,
    Method(
        QUANTISED,
        "model",
        "drafters.draft_model.QuantisedDrafter",
        ("part", "capacity"),
        part="models.quantised.QuantisedCopy",
        card=Card(
            {
                "Georganas et al. 2025": "https://arxiv.org/abs/2503.13565",
                "Tiwari et al. 2025": "https://arxiv.org/abs/2502.10424",
            }
        ),
    ),
    Method(
        ADAPTIVE,
        "wrapper",
        "drafters.adaptive.AdaptiveDrafter",
        part=MODEL,
        folder=DRAFT_MODEL,
        card=Card(
            {
                "Huang et al. 2024": "https://arxiv.org/abs/2405.19715",
                "Leviathan et al. 2022, section 3": "https://arxiv.org/abs/2211.17192",
            }
        ),
    ),
    Method(
        "early_exit",
        "layers",
        "drafters.early_exit.EarlyExitDrafter",
        ("view",),
        part=EXIT,
        card=Card(
            {"Elhoushi et al. 2024": "https://arxiv.org/abs/2404.16710"},
            {"facebook/layerskip-llama3.2-1B": "", "facebook/layerskip-llama3-8B": ""},
        ),
    ),
    MEDUSA,
    tree(MEDUSA, "drafters.medusa.MedusaTreeDrafter"),
    EAGLE3,
    tree(EAGLE3, "drafters.eagle3.Eagle3TreeDrafter"),
    Method(
        "mtp",
        "heads",
        "drafters.mtp.MTPDrafter",
        ("view", "part", "capacity"),
        part="drafters.mtp.MTPHead",
        folder="mtp",
        card=Card({"DeepSeek-AI 2024, section 2.2": "https://arxiv.org/abs/2412.19437"}),
    ),
    Method(
        "block",
        "heads",
        "drafters.block.BlockDrafter",
        ("view", "part", "capacity"),
        part="drafters.block.BlockHead",
        folder="block",
        card=Card(
            {"Chen et al. 2026": "https://arxiv.org/abs/2602.06036", "DSpark": "https://arxiv.org/abs/2607.05147"}
        ),
    ),
    Method(
        LOOKUP,
        "lookup",
        "drafters.prompt_lookup.PromptLookupDrafter",
        peer=True,
        card=Card({"Saxena 2023": "https://github.com/apoorvumang/prompt-lookup-decoding"}),
    ),
    Method(
        "suffix",
        "lookup",
        "drafters.suffix.SuffixDrafter",
        card=Card({"Oliaro et al. 2024": "https://arxiv.org/abs/2411.04975"}),
    ),
    replace(
        DRAFT_MODEL_METHOD, name="draft_model:story", folder="draft_model_story", variant_of=DRAFT_MODEL, card=None
    ),
    Method("none", "none", "drafters.base.NoDrafter"),
)
METHODS = {method.name: method for method in EVERY}


def adapted(name: str) -> str:
    """The drafter that `adaptive` or `adaptive:NAME` wraps; "" for any other name."""
    kind, _, inner = name.partition(":")
    return (inner or DRAFT_MODEL) if kind == ADAPTIVE else ""


def find_method(name: str) -> Method | None:
    """The method of a drafter that may carry a name of its own (`eagle3:FOLDER`) or be adapted; None for others."""
    name = adapted(name) or name
    while name and name not in METHODS:
        name = name.rpartition(":")[0]
    return METHODS.get(name)


def check_request(prompt: str, drafter: str, k: int, rule: str) -> None:
    """Refuse a run that no family could do, before anything is loaded or measured for it.

    PromptError for the prompt, ValueError for the rest. The drafters are a family's own: their names are not checked.
    """
    if not prompt.strip():
        raise PromptError(TranslatableText("The prompt is empty. Type a few words to start from."))
    if has_lone_surrogate(prompt):
        raise PromptError(
            TranslatableText("The prompt holds half of a character (a lone surrogate). Delete it and type it again.")
        )
    check_k(k)
    if rule not in RULES:
        raise ValueError(f"there is no rule {rule!r}; choose from {', '.join(RULES)}")
    if adapted(adapted(drafter)):
        raise ValueError(f"{drafter}: what adapts its depth already cannot be adapted once more")
    if rule in CHAINS_ONLY and (method := find_method(drafter)) and method.tree:
        raise ValueError(f"{rule} judges chains only, and {drafter} makes trees; choose another rule or drafter")


def of_part(part: object) -> list[Method]:
    """Find the ways of drafting that use such a loaded part."""
    fitting = (m for m in METHODS.values() if m.name != ADAPTIVE and (not m.variant_of or m.tree))
    return [m for m in fitting if m.part_class is not None and isinstance(part, m.part_class)]


def brought_by(*names: str) -> tuple[str, ...]:
    """Find the ways of drafting that the parts of these methods bring: their trees and their wrappers, too."""
    parts = [METHODS[name].part for name in names]
    return tuple(m.name for m in METHODS.values() if m.part in parts and (not m.variant_of or m.tree))
