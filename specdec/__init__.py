"""SpecDec: an engine for speculative decoding that reports every decision, and a page that shows them.

Use `from specdec import Engine`. Importing the package does not import torch.
"""

from importlib import import_module
from typing import Any, TYPE_CHECKING

if TYPE_CHECKING:
    from .drafters.base import ChainDrafter as ChainDrafter
    from .drafters.base import Drafter as Drafter
    from .engine import Engine as Engine
    from .events import Event as Event
    from .messages import Step as Step
    from .methods import Choice as Choice
    from .methods import METHODS as METHODS
    from .traces.file import Trace as Trace
    from .types import Proposal as Proposal
    from .types import SamplingParams as SamplingParams
    from .verify import Rule as Rule

__version__ = "0.1.0"

_MODULES = {
    "ChainDrafter": "drafters.base",
    "Choice": "methods",
    "Drafter": "drafters.base",
    "Engine": "engine",
    "Event": "events",
    "METHODS": "methods",
    "Proposal": "types",
    "Rule": "verify",
    "SamplingParams": "types",
    "Step": "messages",
    "Trace": "traces.file",
}
__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)
