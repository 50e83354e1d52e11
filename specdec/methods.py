"""The table of drafting methods. Menus, families, the bench, model cards and tests read it.

The table names classes by path. They are imported only when a run needs them, because the page must not import torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, Literal, TYPE_CHECKING

if TYPE_CHECKING:
    from .drafters.base import Drafter
    from .models.view import TargetView

EMBEDDED = "embedded"  # the family that comes with the package
ROUNDED = {"embedded:bfloat16": "bfloat16", "embedded:int8": "int8"}  # targets with the same weights in fewer bits
RULES = ("rejection", "match", "shared_noise", "block", "typical")  # the keys of `rules.RULES`
IN_BROWSER = {  # the drafters that assets/page/engine/worker.js runs, by family
    EMBEDDED: ("draft_model", "prompt_lookup", "none"),
    "smollm2": ("prompt_lookup", "none"),
}
LOSSY = frozenset({"typical"})  # rules
CHAINS_ONLY = frozenset({"block"})  # rules that judge no trees
ADAPTIVE = "adaptive"
DRAFT_MODEL = "draft_model"
LOOKUP = "prompt_lookup"
QUANTISED = "quantised"
# Assumed acceptance rates, for drafters whose config.json states none. Only drafters in this table are candidates.
# Drafters that copy from the text are missing, because their speed-up depends too much on the text.
ACCEPTANCE = {DRAFT_MODEL: 0.6, "eagle3": 0.6, "early_exit": 0.5, QUANTISED: 0.95}
DEFAULT_DRAFTER = "default"  # lets `lanes.default.choose` choose the drafter that should be fastest
MODEL = "models.base.LanguageModel"
EXIT = "exit_layer"
Kind = Literal["model", "heads", "layers", "lookup", "wrapper", "none"]


@dataclass(frozen=True)
class Card:
    """The papers of a method, and examples of its drafters on the Hub."""

    papers: Mapping[str, str]  # title -> address
    hub: Mapping[str, str] = field(default_factory=dict)  # drafter -> its target; "" if the model drafts for itself


@dataclass(frozen=True)
class Method:
    """A drafting method. `drafters.json` of each language has its texts, `assets/page/methods/NAME.svg` its picture."""

    name: str  # in menus and traces
    kind: Kind  # what drafts: a language model, heads on the target's states, the target's first layers, a search …
    drafter: str  # path of the drafter's class
    takes: tuple[str, ...] = ()  # the arguments of `make` that its class takes, in order
    part: str = ""  # path of the class that holds its weights; EXIT: a layer's index is enough; "": no part
    folder: str = ""  # where a family stores those weights
    tree: bool = False  # True: it drafts trees; False: chains
    peer: bool = False  # transformers implements it too
    variant_of: str = ""  # the method whose code or weights this method shares
    card: Card | None = None

    @property
    def embedded(self) -> bool:
        """Return whether the embedded family has this method."""
        return bool(self.folder) or self.part in ("", EXIT)

    @property
    def drafter_class(self) -> type[Any]:
        return import_class(self.drafter)

    @property
    def part_class(self) -> type[Any] | None:
        """The class that loads the weights; None if there are none."""
        return None if self.part in ("", EXIT) else import_class(self.part)

    def make(self, view: TargetView, part: Any, capacity: int) -> Drafter:
        """Make a drafter for one run of at most `capacity` tokens on this view of the target.

        A drafter that wraps another is made by `Family.lane`, because it needs the measured costs of the other drafter.
        """
        arguments = {"view": view, "part": part, "capacity": capacity}
        drafter: Drafter = self.drafter_class(*(arguments[name] for name in self.takes))
        return drafter


def import_class(path: str) -> type[Any]:
    """Import the class at `module.Class` below the package."""
    module, _, name = path.rpartition(".")
    cls: type[Any] = getattr(import_module(f".{module}", __package__), name)
    return cls


def tree_variant(method: Method, drafter: str) -> Method:
    """Make the method that drafts trees with the same weights."""
    return replace(method, name=f"{method.name}:tree", drafter=drafter, tree=True, variant_of=method.name, card=None)


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
IN_MENU_ORDER = (
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
    tree_variant(MEDUSA, "drafters.medusa.MedusaTreeDrafter"),
    EAGLE3,
    tree_variant(EAGLE3, "drafters.eagle3.Eagle3TreeDrafter"),
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
METHODS = {method.name: method for method in IN_MENU_ORDER}


def inner_drafter(name: str) -> str:
    """Return the name of the drafter that `adaptive` or `adaptive:NAME` wraps; "" for any other name."""
    outer, _, inner = name.partition(":")
    return (inner or DRAFT_MODEL) if outer == ADAPTIVE else ""


def find_method(name: str) -> Method | None:
    """Return a drafter's method, or None if unknown. The method of `eagle3:FOLDER` and `adaptive:eagle3` is EAGLE-3."""
    name = inner_drafter(name) or name
    while name and name not in METHODS:
        name = name.rpartition(":")[0]
    return METHODS.get(name)


def methods_using(part: object) -> list[Method]:
    """List the methods that draft with the loaded weights `part`."""
    candidates = (m for m in METHODS.values() if m.name != ADAPTIVE and (not m.variant_of or m.tree))
    return [m for m in candidates if m.part_class is not None and isinstance(part, m.part_class)]


def methods_sharing_parts(*names: str) -> tuple[str, ...]:
    """List the methods that use the same parts as the methods `names`."""
    parts = [METHODS[name].part for name in names]
    return tuple(m.name for m in METHODS.values() if m.part in parts and (not m.variant_of or m.tree))
