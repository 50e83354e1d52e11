"""Which run the first screen shows: many honest ones, measured by what a first look needs.

A candidate is what the engine gave for a prompt and a seed at the page's settings; nothing is changed in it. Kept are
those that show the idea early: a cycle that keeps drafts, then within three cycles a clear rejection (the draft was
fairly sure, the target was not, and the coin was nowhere near the line), with a draft after it that is never judged.
Of these the ones whose block efficiency τ is nearest to the median of all candidates come first, so the run is neither
a lucky nor an unlucky one; τ and not the clock, because it is the same on every machine. A person picks among the
first by how the words read.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from specdec.events import Committed, Event, Finished, Position, Verified
from specdec.families.zoo import Family
from specdec.figures.stats import repetition
from specdec.lanes.race import race, SPECULATIVE
from specdec.traces.cycle import chances
from specdec.types import SamplingParams

EARLY = 3  # cycles within which the first rejection must come
SURE, DOUBTFUL, CLEAR = (0.3, 0.7), (0.02, 0.15), 0.15  # q, p, and the least distance between the coin and p / q


@dataclass(frozen=True, slots=True)
class Candidate:
    """A run of the speculative lane. `cycle` is that of its first rejection, from 1, and `rejected` the draft."""

    prompt: str
    seed: int
    text: str
    tau: float  # tokens per cycle
    cycle: int = 0
    rejected: Position | None = None
    clear: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole run of a model that answers: at its first rejection, the draft and what came in its place."""

    prompt: str
    temperature: float
    seed: int
    text: str
    tau: float
    rejected: str
    instead: str


def answers(
    family: Family, prompts: Iterable[str], drafter: str, k: int, settings: Iterable[SamplingParams]
) -> list[Answer]:
    """What a first screen may show of a model that answers, the most tokens a cycle first.

    The rule: the answer ends by itself within the run and repeats no eight tokens, and its first cycle keeps a draft,
    so that the idea is seen to work. A person picks among the first by what is right and how it reads.
    """
    found = []
    for params in settings:
        for prompt in prompts:
            events = race(family, prompt, drafter, k, params, details=False)
            answer = answered(prompt, params, [event for event in events if event.lane == SPECULATIVE])
            found += [answer] if answer else []
    return sorted(found, key=lambda one: -one.tau)


def answered(prompt: str, params: SamplingParams, told: Sequence[Event]) -> Answer | None:
    """The answer of one lane; None where the rule leaves it out."""
    commits, cycles, tau = read(told)
    ended = any(isinstance(event, Finished) and event.reason == "end" for event in told)
    ids = [token for event in commits for token in event.tokens]
    first = [one.status for one in cycles[0].positions][:1] if cycles else []
    if not ended or repetition(ids) or first != ["accepted"]:
        return None
    text, after = "".join(event.text for event in commits), {event.cycle: event for event in commits}
    for cycle in cycles:
        rejected = [one.piece for one in cycle.positions if one.status == "rejected"]
        if rejected:
            instead = after[cycle.cycle].pieces[-1]
            return Answer(prompt, params.temperature, params.seed, text, tau, rejected[0], instead)
    return None


def choose(
    family: Family, prompts: Iterable[str], drafter: str, k: int, params: SamplingParams, seeds: Sequence[int]
) -> tuple[list[Candidate], float]:
    """The clear candidates, nearest to the median first, and that median: the τ of all candidates."""
    every = []
    for prompt in prompts:
        for seed in seeds:
            events = race(family, prompt, drafter, k, replace(params, seed=seed), details=False)
            every.append(measured(prompt, seed, (event for event in events if event.lane == SPECULATIVE)))
    middle = statistics.median(one.tau for one in every)
    return sorted((one for one in every if one.clear), key=lambda one: abs(one.tau - middle)), middle


def read(lane: Sequence[Event]) -> tuple[list[Committed], list[Verified], float]:
    """What it wrote, its cycles, tokens per cycle. Cycle 0, the prompt's own pass, has no verdict."""
    commits = [event for event in lane if isinstance(event, Committed)]
    cycles = [event for event in lane if isinstance(event, Verified) and event.cycle > 0]
    return commits, cycles, sum(len(event.tokens) for event in commits[1:]) / max(len(cycles), 1)


def measured(prompt: str, seed: int, events: Iterable[Event]) -> Candidate:
    """Reads one lane's events to their end."""
    commits, cycles, tau = read(list(events))
    plain = Candidate(prompt, seed, "".join(event.text for event in commits), tau)
    for verified in cycles:
        rejected = next((one for one in verified.positions if one.status == "rejected"), None)
        if rejected is not None:
            kept = any(one.status == "accepted" for one in cycles[0].positions)
            shows = verified.cycle <= EARLY and kept and verified.positions[-1].status == "discarded"
            return replace(plain, cycle=verified.cycle, rejected=rejected, clear=shows and gap(rejected))
    return plain


def gap(one: Position) -> bool:
    """Whether a rejection explains itself: q well above p, and the coin far from the line between them."""
    p, q = chances(one)
    if one.u is None or not (SURE[0] <= q <= SURE[1] and DOUBTFUL[0] <= p <= DOUBTFUL[1]):
        return False
    return one.u - p / q >= CLEAR
