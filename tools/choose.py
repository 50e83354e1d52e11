"""Which of many honest runs of SmolLM2 a first screen may show; a person picks among the first by how they read.

Nothing in a run is changed. The rules ask for an example that comes early, never for speed: block efficiency τ is the
same on every machine, the clock is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from specdec.events import Committed, Event, Finished, Position, Verified
from specdec.figures.stats import repetition
from specdec.traces.cycle import chances
from specdec.types import SamplingParams

FIRST_CYCLES = 3  # within which a run that shows the coin has its first rejection
SURE = (0.3, 0.7)  # q of that draft
DOUBTFUL = (0.02, 0.15)  # its p
CLEAR = 0.15  # the least distance between its coin and p / q


@dataclass(frozen=True, slots=True)
class Candidate:
    """A run whose first cycle keeps a draft and whose `cycle` is the first to reject one, `instead` of which came."""

    prompt: str
    params: SamplingParams
    text: str
    tau: float  # tokens per cycle
    is_whole: bool  # the answer ends by itself and repeats no eight tokens
    cycle: int
    rejected: Position
    instead: str
    discards: bool  # drafts after the rejected one were never judged


def whole_answers(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Order whole answers by τ, the highest first."""
    return sorted((one for one in candidates if one.is_whole), key=lambda one: -one.tau)


def clear_coins(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Order runs whose coin explains itself early by τ, the most usual first: neither lucky nor unlucky."""
    middle = median(one.tau for one in candidates)
    clear = (one for one in candidates if one.cycle <= FIRST_CYCLES and one.discards and is_clear(one.rejected))
    return sorted(clear, key=lambda one: abs(one.tau - middle))


def is_clear(position: Position) -> bool:
    """Whether q is well above p, and the coin far from the line between them."""
    p, q = chances(position)
    in_range = SURE[0] <= q <= SURE[1] and DOUBTFUL[0] <= p <= DOUBTFUL[1]
    return in_range and position.u is not None and position.u - p / q >= CLEAR


def candidate(prompt: str, params: SamplingParams, events: Sequence[Event]) -> Candidate | None:
    """Sum up one lane; None where its first cycle keeps nothing, or no cycle rejects a draft."""
    commits = {event.cycle: event for event in events if isinstance(event, Committed)}
    cycles = [event for event in events if isinstance(event, Verified) and event.cycle > 0]  # 0 reads the prompt
    if not cycles or [one.status for one in cycles[0].positions][:1] != ["accepted"]:
        return None
    ids = [token for event in commits.values() for token in event.tokens]
    is_whole = isinstance(events[-1], Finished) and events[-1].reason == "end" and not repetition(ids)
    text, tau = "".join(event.text for event in commits.values()), (len(ids) - 1) / len(cycles)
    for cycle in cycles:
        for position in cycle.positions:
            if position.status == "rejected":
                instead, discards = commits[cycle.cycle].pieces[-1], cycle.positions[-1].status == "discarded"
                return Candidate(prompt, params, text, tau, is_whole, cycle.cycle, position, instead, discards)
    return None
