"""The progress of what a run waits for: fetching, loading, compiling, measuring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# What the engine does: `fetch` (in bytes), `compile`, `load`, `measure` (in short runs), `read` (tokens of a prompt).
# Then, for the page alone: what a platform with shared GPUs does, a visitor's run, and how it ended.
StepName = Literal[
    "fetch", "compile", "load", "measure", "read", "asking", "refused", "waiting", "running", "done", "cut", "error"
]


@dataclass(frozen=True, slots=True)
class Step:
    """How far something is that a run waits for; on the page, also that it runs or has ended.

    `total` is 0 if it is not known beforehand. `seconds` have passed since the step began. `text` is a sentence on it.
    """

    name: StepName
    done: float = 0
    total: float = 0
    seconds: float = 0.0
    text: str = ""
