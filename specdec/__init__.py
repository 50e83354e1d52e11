"""SpecDec: an engine for speculative decoding that reports every decision, and a page that shows them.

Use `from specdec import load, generate, race`. Importing the package does not import torch.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_MODULES = {
    "generate": "engine",
    "load": "families.zoo",
    "load_pair": "families.zoo",
    "METHODS": "methods",
    "race": "lanes.race",
    "SamplingParams": "types",
    "Task": "engine",
    "Trace": "traces.file",
}
__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)
