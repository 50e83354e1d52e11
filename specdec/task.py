"""A run of the loop: its `Task`, and the `Executor` that computes its cycles."""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from .drafters.base import Drafter, NoDrafter
from .events import Details, SPECULATIVE
from .models.base import LanguageModel
from .models.device import Resources
from .sampling import Sampler
from .types import Proposal, SamplingParams, Verdict
from .verify import RejectionSampling, Rule


@dataclass
class Task:
    """Defines a run. Every run needs a new drafter, because drafters keep state."""

    target: LanguageModel[Any]
    prompt: Sequence[int]
    params: SamplingParams = field(default_factory=SamplingParams)
    drafter: Drafter = field(default_factory=NoDrafter)
    k: int = 4
    rule: Rule = field(default_factory=RejectionSampling)
    end_tokens: frozenset[int] = frozenset()
    token_bytes: Callable[[int], bytes] = lambda token: f" {token}".encode()
    piece: Callable[[int], str] = lambda token: f" {token}"
    lane: str = SPECULATIVE
    details: bool = True  # whether events describe the distributions at every position; benchmarks switch this off
    resources: Resources = field(default_factory=Resources)

    @property
    def depth(self) -> int:
        """The largest depth of a draft: K, or the drafter's own limit `deepest` if that is smaller."""
        return self.k if self.drafter.deepest is None else min(self.k, self.drafter.deepest)


@dataclass(frozen=True)
class CycleResult:
    """What an executor computed in one cycle, and the seconds (`_s`) that each part took."""

    proposal: Proposal
    verdict: Verdict
    describe: Callable[[Sampler | None], Details]  # without noise: `positions` alone, without distributions
    draft_s: float
    verify_s: float  # the target's pass and the judgement of its rows; in the prefill, also the drafter's pass
    failure: str = ""  # the reason, if the drafter failed


class Executor(Protocol):
    """Computes the cycles of one run."""

    eager: str | None  # why a GPU ran without captured graphs; can change until the run is over

    def allocated(self, limit: int) -> contextlib.AbstractContextManager[None]:
        """Allocate memory for a text of at most `limit` tokens, for the time of the `with` block."""
        ...

    def cycle(self, tokens: Sequence[int], k: int) -> CycleResult:
        """Draft up to depth `k` after `tokens`, verify, and cache the accepted path. The first call is the prefill.

        An exception ends the run. If only the drafter fails, the cycle has no draft.
        """
        ...

    def stop_drafting(self) -> None:
        """Draft nothing from the next cycle on."""
        ...
