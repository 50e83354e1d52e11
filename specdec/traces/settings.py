"""What a lane was started with, against what it did: rule, temperature, filters, K, the limits of the text, the seed.

A run on a CPU draws everything from one generator, so its coins are among the numbers of that one, in their order.
Lanes that draw elsewhere (on a GPU, or another engine) cannot be checked so.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from random import Random

from ..events import Distribution, Finished, Started
from ..types import TranslatableText
from .cycle import AuditedCycle
from .distributions import ROUNDING
from .rulings import JUDGES, TYPICAL

SPARE = 64  # numbers a run may have drawn beyond two a drafted token and eight a cycle


def check_claim(started: Started, rule: str) -> Iterator[TranslatableText]:
    """Lossless is a known rule's own claim."""
    if rule == TYPICAL and started.lossless:
        yield TranslatableText("typical acceptance is lossy, and the trace calls it lossless")
    elif rule in JUDGES and rule != TYPICAL and not started.lossless:
        yield TranslatableText("the rule is lossless, and the trace calls it lossy")


def check_limits(started: Started, cycle: AuditedCycle) -> Iterator[TranslatableText]:
    """One cycle against the settings."""
    params = started.params
    yield from check_depth(started, cycle)
    distributions = [x.target for x in cycle.positions] + (
        [cycle.verified.distribution, cycle.verified.bonus] if cycle.verified else []
    )
    for distribution in filter(None, distributions):
        if params.temperature == 0.0 and not is_point(distribution):
            yield TranslatableText("the temperature is 0, and a distribution is spread over several tokens")
            return
        if 0 < params.top_k < held(distribution):
            yield TranslatableText("top-k is {k}, and a distribution holds more tokens", k=params.top_k)
            return


def check_depth(started: Started, cycle: AuditedCycle) -> Iterator[TranslatableText]:
    if (deepest := max(cycle.tree.depths(), default=0)) > started.k:
        yield TranslatableText("the draft is {depth} deep, and K is {k}", depth=deepest, k=started.k)


def is_point(distribution: Distribution) -> bool:
    return distribution.rest <= ROUNDING and any(candidate.prob >= 1.0 - ROUNDING for candidate in distribution.top)


def held(distribution: Distribution) -> int:
    """A lower bound on how many tokens have mass."""
    return sum(candidate.prob > 0.0 for candidate in distribution.top) + (
        distribution.rest > len(distribution.top) * ROUNDING
    )


def check_ending(started: Started, finished: Finished, total: int, text: str) -> Iterator[TranslatableText]:
    params, reason = started.params, finished.reason
    if total > params.max_tokens:
        yield TranslatableText("the text has {total} tokens, of at most {limit}", total=total, limit=params.max_tokens)
    elif (reason == "length" and total < params.max_tokens) or (reason == "context" and total == params.max_tokens):
        yield TranslatableText("the lane ended with {total} tokens of {limit}", total=total, limit=params.max_tokens)
    if (reason == "stop" and not params.stop) or (reason == "end" and params.ignore_end and not started.guided):
        yield TranslatableText("the lane ended in a way that its settings exclude")
    if any(stop in text for stop in params.stop):
        yield TranslatableText("a stop string stands in the text")


class Coins:
    """Takes the cycles of a lane in their order."""

    def __init__(self) -> None:
        self.tossed: list[tuple[int, float]] = []  # cycle, u
        self.most = SPARE

    def take(self, cycle: AuditedCycle, from_the_end: bool) -> None:
        """Block verification tosses from the end of the draft."""
        coins = [(cycle.number, x.u) for x in cycle.positions if x.u is not None]
        self.tossed += coins[::-1] if from_the_end else coins
        self.most += 3 * len(cycle.positions) + 8

    def foreign(self, seed: int) -> list[tuple[int, float]] | None:
        """The coins that the seed does not give there; None where most come from another source."""
        source = Random(seed)
        place = {source.random(): number for number in range(self.most)}
        found = [(coin, place.get(coin[1])) for coin in self.tossed]
        if not found or 2 * sum(at is not None for _, at in found) < len(found):
            return None
        known = [(coin, at) for coin, at in found if at is not None]
        late = [coin for (_, before), (coin, at) in pairwise(known) if at <= before]
        return [coin for coin, at in found if at is None] + late
