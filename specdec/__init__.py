"""Speculative decoding that can be watched: an engine that tells every decision, and a page that shows it.

`from specdec import load, generate, race`; the package itself loads no torch.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "generate": "engine",
    "load": "families.zoo",
    "load_pair": "families.zoo",
    "METHODS": "methods",
    "race": "lanes.race",
    "SamplingParams": "types",
    "Task": "engine",
    "Trace": "traces.file",
}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
