"""Do a lane's coins come from its seed? A run on a CPU draws everything from one generator, so its coins are among
the generator's numbers, in their order. Lanes that draw elsewhere (on a GPU, or a peer) cannot be checked so."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from .cycle import AuditedCycle

SPARE = 64  # numbers a run may have drawn beyond two a drafted token and eight a cycle


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
