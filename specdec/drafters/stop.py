"""When a draft is long enough: how sure it is, and what was kept of such tokens before, against what a cycle gives.

More draft tokens are worth their cost while the chances that they are kept add up to more than the tokens that the
same time would give otherwise: survival > rate · marginal cost. (The rule of optimal stopping for a ratio of means;
SpecDec++, arXiv 2405.19715, and Leviathan et al., section 3, weigh the same two sides.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence


class Share:
    """A running share that begins with a prior; old outcomes fade, because texts change."""

    MEMORY = 0.97  # of a judged token

    def __init__(self, prior: float, weight: float = 3.0) -> None:
        self.kept, self.seen = prior * weight, weight

    def add(self, kept: int, judged: int) -> None:
        """Of `judged` tokens, the first `kept` were kept; each fades those before it."""
        memory, later = self.MEMORY**judged, self.MEMORY ** (judged - kept)
        self.kept = memory * self.kept + (later - memory) / (1.0 - self.MEMORY)
        self.seen = memory * self.seen + (1.0 - memory) / (1.0 - self.MEMORY)

    @property
    def value(self) -> float:
        return self.kept / self.seen

    @property
    def upper(self) -> float:
        """One standard error above the share."""
        return min(1.0, self.value + math.sqrt(max(0.0, self.value * (1.0 - self.value)) / self.seen))


class Calibration:
    """How often tokens are kept that a draft is so sure of: a logistic curve, learned as it goes (Platt scaling)."""

    LEVEL, SLOPE = 0.5, 0.5  # before anything was seen: a distilled draft is kept more often than it is sure
    LEVEL_RATE, SLOPE_RATE = 0.2, 0.02  # of learning
    SURE = 0.999  # the most that a draft can say

    def __init__(self) -> None:
        self.level, self.slope = self.LEVEL, self.SLOPE

    def odds(self, confidence: float) -> float:
        """Their logarithm."""
        confidence = min(self.SURE, max(1.0 - self.SURE, confidence))
        return math.log(confidence / (1.0 - confidence))

    def chance(self, odds: float) -> float:
        return 1.0 / (1.0 + math.exp(-self.level - self.slope * odds))

    def learn(self, odds: float, kept: bool) -> None:
        """A step down the gradient of the logarithmic loss."""
        error = kept - self.chance(odds)
        self.level += self.LEVEL_RATE * error
        self.slope += self.SLOPE_RATE * error * odds


class Rate:
    """Tokens a plain step, of recent cycles with and without drafts: what a draft must beat. `plain` is the least."""

    MEMORY = 0.9  # of a cycle

    def __init__(self, plain: float = 1.0) -> None:
        self.plain = plain
        self.spent = self.tokens = 0.0

    def add(self, tokens: int, cost: float) -> None:
        self.tokens = self.MEMORY * self.tokens + tokens
        self.spent = self.MEMORY * self.spent + cost

    @property
    def value(self) -> float:
        return max(self.plain, self.tokens / self.spent if self.spent else 0.0)


class DraftLengthController:
    """Decides after each drafted token whether the draft is long enough, and learns how often tokens were kept that
    the draft was so sure of. The token that ends a draft stays in it, so the output distribution is untouched.
    """

    def __init__(self, rate: Rate) -> None:
        self.rate = rate
        self.acceptance = Share(0.6)  # of any drafted token
        self.calibration = Calibration()
        self._odds: list[float] = []  # of the draft, a token each
        self._survival = 1.0
        self._cycles: Sequence[float] = (1.0,)
        self._next = self._least = 0.0  # the chance that a token is kept which is not drafted yet; tokens a plain step

    def begin(self, cycles: Sequence[float]) -> None:
        """A draft may be as deep as these cycles' costs, by depth, go."""
        self._cycles, self._odds, self._survival = cycles, [], 1.0
        self._next, self._least = self.acceptance.value, self.rate.value

    def __call__(self, confidence: float, index: int) -> bool:
        odds = self.calibration.odds(confidence)
        self._odds.append(odds)
        self._survival = chance = self._survival * self.calibration.chance(odds)
        gain, least, cycles = 0.0, self._least, self._cycles
        so_far = cycles[index + 1]
        # Beyond the next, too: one more row of a check may be dear, and those after it nearly free.
        for cost in cycles[index + 2 :]:
            chance *= self._next
            gain += chance
            if gain > least * (cost - so_far):
                return False
        return True

    def learn(self, kept: int, judged: int) -> None:
        """Of the last draft's first `judged` tokens, `kept` were kept."""
        self.acceptance.add(kept, judged)
        for place, odds in enumerate(self._odds[:judged]):
            self.calibration.learn(odds, place < kept)
