"""When a draft is long enough: how sure it is, and what was kept of such tokens before, against what a cycle gives.

More draft tokens are worth their cost while the chances that they are kept add up to more than the tokens that the
same time would give otherwise: survival > rate · marginal cost. (The rule of optimal stopping for a ratio of means;
SpecDec++, arXiv 2405.19715, and Leviathan et al., section 3, weigh the same two sides.)
"""

from __future__ import annotations

import math

from ..types import Costs


class Share:
    """A running share with a prior; old outcomes fade, because texts change."""

    def __init__(self, prior: float, weight: float = 3.0, memory: float = 0.97) -> None:
        self.kept, self.seen, self.memory = prior * weight, weight, memory

    def add(self, kept: bool) -> None:
        self.kept = self.kept * self.memory + kept
        self.seen = self.seen * self.memory + 1.0

    @property
    def value(self) -> float:
        return self.kept / self.seen

    @property
    def optimistic(self) -> float:
        """One standard error above the mean: if in doubt, trying is cheaper than not drafting."""
        return min(1.0, self.value + math.sqrt(self.value * (1.0 - self.value) / self.seen))


class Rate:
    """Tokens a plain step, of recent cycles with and without drafts: what a draft must beat. `plain` is the least."""

    MEMORY = 0.9  # of a cycle

    def __init__(self, plain: float = 1.0) -> None:
        self.plain = plain
        self.tokens = self.spent = 0.0

    def add(self, tokens: int, cost: float) -> None:
        self.tokens = self.MEMORY * self.tokens + tokens
        self.spent = self.MEMORY * self.spent + cost

    @property
    def value(self) -> float:
        return max(self.plain, self.tokens / self.spent if self.spent else 0.0)


class Stop:
    """Asked after each drafted token: is that enough? It learns how often tokens were kept that the draft was so sure
    of. The token that ends a draft stays in it, so the output law is untouched.

    With `patience` below 1, tokens are enough that give that share of the rate.
    """

    BINS = 8

    def __init__(self, rate: Rate, patience: float = 1.0) -> None:
        self.rate, self.patience = rate, patience
        self.acceptance = Share(0.6)  # of any drafted token
        # A distilled draft is kept more often than it is sure, a greedy one far more often.
        self.by_confidence = [Share(((i + 0.5) / self.BINS) ** (1 / 3), 2.0) for i in range(self.BINS)]
        self._bins: list[int] = []  # of the draft, a token each
        self._survival, self._most, self._costs = 1.0, 0, Costs(0.0, (1.0,))

    def begin(self, k: int, costs: Costs) -> None:
        """A draft of at most `k` tokens, at these costs."""
        self._most, self._costs, self._bins, self._survival = k, costs, [], 1.0

    def __call__(self, confidence: float, index: int) -> bool:
        place = min(self.BINS - 1, int(confidence * self.BINS))
        self._bins.append(place)
        self._survival *= self.by_confidence[place].value
        gain, chance, so_far = 0.0, self._survival, self._costs.cycle(index + 1)
        # Beyond the next, too: one more row of a check may be dear, and those after it nearly free.
        for depth in range(index + 2, self._most + 1):
            chance *= self.acceptance.value
            gain += chance
            if gain > self.patience * self.rate.value * (self._costs.cycle(depth) - so_far):
                return False
        return True

    def learn(self, kept: int, judged: int) -> None:
        """Of the last draft's first `judged` tokens, `kept` were kept."""
        for place in range(judged):
            self.acceptance.add(place < kept)
            if place < len(self._bins):
                self.by_confidence[self._bins[place]].add(place < kept)
