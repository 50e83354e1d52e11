"""Borrows a GPU for one run on Hugging Face's shared hardware; does nothing elsewhere. Imported before torch."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

if os.environ.get("SPACES_ZERO_GPU"):  # set only there, and there a missing package must fail loudly
    import spaces

    GPU = spaces.GPU
else:

    def GPU(function: Callable[..., Any] | None = None, **_: Any) -> Any:
        return function if callable(function) else lambda inner: inner
