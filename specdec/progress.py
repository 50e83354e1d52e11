"""The progress of what a run waits for: fetching, loading, compiling, measuring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# `ask` is for a shared GPU. Amounts are bytes to `fetch`, short runs to `measure`, and tokens of a prompt to `read`.
StepName = Literal["fetch", "compile", "load", "measure", "ask", "read"]


@dataclass(frozen=True, slots=True)
class Step:
    """How far the engine is with something that a run waits for.

    `total` is 0 if it is not known beforehand. `seconds` have passed since the step began. `text` is the model that is
    fetched, the lane that reads, or why there is no GPU.
    """

    name: StepName
    done: float = 0
    total: float = 0
    seconds: float = 0.0
    text: str = ""
