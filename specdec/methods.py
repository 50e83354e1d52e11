"""The tables of drafting methods and of verification rules. Menus, families, model cards, audits and tests read them.

The tables need no torch: classes are named by path, and imported only when a run needs them.
"""

from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Literal, NamedTuple, TYPE_CHECKING

from .messages import Refused

if TYPE_CHECKING:
    from .drafters.base import Drafter
    from .models.view import TargetView

EMBEDDED = "embedded"  # the family that comes with the package
ROUNDED = {"embedded:bfloat16": "bfloat16", "embedded:int8": "int8"}  # targets with the same weights in fewer bits
EMBEDDED_TARGETS = (EMBEDDED, *ROUNDED)
IN_BROWSER = {  # the drafters that assets/page/engine/worker.js runs, by family
    EMBEDDED: ("draft_model", "prompt_lookup", "none"),
    "smollm2": ("prompt_lookup", "none"),
}
ADAPTIVE = "adaptive"
DRAFT_MODEL = "draft_model"
LOOKUP = "prompt_lookup"
QUANTISED = "quantised"
# Assumed acceptance rates, for drafters whose config.json states none. Only drafters in this table are candidates.
# Drafters that copy from the text are missing, because their speed-up depends too much on the text.
ACCEPTANCE = {DRAFT_MODEL: 0.6, "eagle3": 0.6, "early_exit": 0.5, QUANTISED: 0.95}
DEFAULT_DRAFTER = "default"  # lets `lanes.probe.choose` choose the drafter that should be fastest
MODEL = "models.base.LanguageModel"
COPY = "models.quantised.QuantisedCopy"
EXIT = "exit_layer"
EVERYTHING = ("view", "part", "capacity")  # what a drafter can be made from
MethodKind = Literal["model", "heads", "layers", "lookup", "wrapper", "none"]


class RuleFacts(NamedTuple):
    """What is known of a verification rule without its class in `rules.py`."""

    name: str  # in traces
    lossless: bool = True
    trees: bool = True  # judges trees, not only chains
    own_draws: bool = False  # the text consists only of the target's own draws, so that no drafter can bias it


# By the name in settings
RULE_FACTS = {
    "rejection": RuleFacts("rejection sampling"),
    "match": RuleFacts("sample and match", own_draws=True),
    "shared_noise": RuleFacts("shared noise", own_draws=True),
    "block": RuleFacts("block verification", trees=False),
    "typical": RuleFacts("typical acceptance", lossless=False),
}
DEFAULT_RULE = "rejection"


def rule_facts(key: str) -> RuleFacts:
    """Return what is known of the rule of this key. An unknown key raises Refused, which lists the choices."""
    if key not in RULE_FACTS:
        raise Refused(f"there is no rule {key!r}; choose from {', '.join(RULE_FACTS)}")
    return RULE_FACTS[key]


@dataclass(frozen=True)
class Method:
    """A drafting method. `drafters.json` of each language has its texts, `assets/page/methods/NAME.svg` its picture.

    `assets/cards.json` has the papers, and examples of its drafters on the Hub with their targets ("": none is needed).
    """

    name: str  # in menus and traces
    kind: MethodKind  # what drafts: a language model, heads on the target's states, its first layers, a search …
    drafter: str  # path of the drafter's class
    takes: tuple[str, ...] = ()  # the arguments of `make` that its class takes, in order
    part: str = ""  # path of the class that holds its weights; EXIT: a layer's index is enough; "": no part
    folder: str = ""  # where a family stores those weights
    tree: bool = False  # True: it drafts trees; False: chains
    peer: bool = False  # transformers implements it too
    variant_of: str = ""  # the method whose code or weights this method shares

    @property
    def embedded(self) -> bool:
        return bool(self.folder) or self.part in ("", EXIT)

    @property
    def drafter_class(self) -> type[Any]:
        return import_class(self.drafter)

    @property
    def part_class(self) -> type[Any] | None:
        """The class that loads the weights; None if there are none."""
        return None if self.part in ("", EXIT) else import_class(self.part)

    def make(self, view: "TargetView", part: Any, capacity: int, around: tuple[int, int] = (0, 0)) -> "Drafter":
        """Make a drafter for one run of at most `capacity` tokens on this view of the target.

        `around` counts the chat template's tokens before and after the prompt, which are not copied.
        `Family.new_drafter` makes a drafter that wraps another, because it knows the measured costs of the other.
        """
        arguments = {"view": view, "part": part, "capacity": capacity, "around": around}
        drafter: Drafter = self.drafter_class(*(arguments[name] for name in self.takes))
        return drafter


def import_class(path: str) -> type[Any]:
    """Import the class at `module.Class` below the package."""
    module, _, name = path.rpartition(".")
    cls: type[Any] = getattr(import_module(f".{module}", __package__), name)
    return cls


def tree_variant(method: Method, drafter: str) -> Method:
    return replace(method, name=f"{method.name}:tree", drafter=drafter, tree=True, variant_of=method.name)


DRAFT_MODEL_METHOD = Method(
    DRAFT_MODEL, "model", "drafters.draft_model.DraftModelDrafter", ("part", "capacity"), MODEL, DRAFT_MODEL, peer=True
)
MEDUSA = Method(
    "medusa", "heads", "drafters.medusa.MedusaDrafter", ("view", "part"), "drafters.medusa.MedusaHeads", "medusa"
)
EAGLE3 = Method("eagle3", "heads", "drafters.eagle3.Eagle3Drafter", EVERYTHING, "drafters.eagle3.Eagle3Head", "eagle3")
IN_MENU_ORDER = (
    DRAFT_MODEL_METHOD,
    Method(QUANTISED, "model", "drafters.draft_model.QuantisedDrafter", ("part", "capacity"), COPY),
    Method(ADAPTIVE, "wrapper", "drafters.adaptive.AdaptiveDrafter", part=MODEL, folder=DRAFT_MODEL),
    Method("early_exit", "layers", "drafters.early_exit.EarlyExitDrafter", ("view",), EXIT),
    MEDUSA,
    tree_variant(MEDUSA, "drafters.medusa.MedusaTreeDrafter"),
    EAGLE3,
    tree_variant(EAGLE3, "drafters.eagle3.Eagle3TreeDrafter"),
    Method("mtp", "heads", "drafters.mtp.MTPDrafter", EVERYTHING, "drafters.mtp.MTPHead", "mtp"),
    Method("block", "heads", "drafters.block.BlockDrafter", EVERYTHING, "drafters.block.BlockHead", "block"),
    Method(LOOKUP, "lookup", "drafters.prompt_lookup.PromptLookupDrafter", ("around",), peer=True),
    Method("suffix", "lookup", "drafters.suffix.SuffixDrafter", ("around",)),
    replace(DRAFT_MODEL_METHOD, name="draft_model:story", folder="draft_model_story", variant_of=DRAFT_MODEL),
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


@dataclass(frozen=True, slots=True)
class Choice:
    """A drafter, the depth K of its drafts, and their expected speed-up, which is 0 if no costs were measured."""

    drafter: "str | Drafter"
    k: int
    speedup: float = 0.0
