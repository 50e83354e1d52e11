"""Decides when a draft is long enough: the expected accepted tokens against the cost of drafting and checking them.

One more draft token pays while the chance that it is accepted exceeds the tokens that the same time would give
otherwise: survival > rate · marginal cost. (This is optimal stopping for a ratio of means; SpecDec++, arXiv 2405.19715,
and Leviathan et al., section 3, weigh the same two sides.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence


class Share:
    """A running share that begins with a prior; old outcomes fade, because texts change."""

    MEMORY = 0.97  # of a judged token

    def __init__(self, prior: float, weight: float = 3.0) -> None:
        self.accepted, self.judged = prior * weight, weight

    def add(self, accepted: int, judged: int) -> None:
        """Count `judged` tokens, the first `accepted` of them accepted; each fades those before it."""
        memory, later = self.MEMORY**judged, self.MEMORY ** (judged - accepted)
        self.accepted = memory * self.accepted + (later - memory) / (1.0 - self.MEMORY)
        self.judged = memory * self.judged + (1.0 - memory) / (1.0 - self.MEMORY)

    @property
    def value(self) -> float:
        return self.accepted / self.judged

    @property
    def upper(self) -> float:
        """One standard error above the share."""
        return min(1.0, self.value + math.sqrt(max(0.0, self.value * (1.0 - self.value)) / self.judged))


class Calibration:
    """How often tokens of a given confidence are accepted: a logistic curve, learned during the run (Platt scaling)."""

    LEVEL = 0.5  # before anything was seen: a distilled draft is accepted more often than it is sure
    SLOPE = 0.5
    LEVEL_RATE = 0.2  # of learning
    SLOPE_RATE = 0.02
    MAX_CONFIDENCE = 0.999

    def __init__(self) -> None:
        self.level, self.slope = self.LEVEL, self.SLOPE

    def odds(self, confidence: float) -> float:
        """The logarithm of the odds of that probability."""
        confidence = min(self.MAX_CONFIDENCE, max(1.0 - self.MAX_CONFIDENCE, confidence))
        return math.log(confidence / (1.0 - confidence))

    def chance(self, odds: float) -> float:
        """The probability that a token of such odds is accepted."""
        return 1.0 / (1.0 + math.exp(-self.level - self.slope * odds))

    def learn(self, odds: float, accepted: bool) -> None:
        """Take a step down the gradient of the logarithmic loss."""
        error = accepted - self.chance(odds)
        self.level += self.LEVEL_RATE * error
        self.slope += self.SLOPE_RATE * error * odds


class Rate:
    """Tokens per plain step in recent cycles, which a draft must beat; never less than `plain` decoding's."""

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
    """Decides after each drafted token whether the draft is long enough, and learns what its confidence is worth.

    The token that ends a draft stays in it, so the output distribution is untouched.
    """

    def __init__(self, rate: Rate) -> None:
        self.rate = rate
        self.acceptance = Share(0.6)  # of any drafted token
        self.calibration = Calibration()
        self._odds: list[float] = []  # of each token of the draft
        self._survival = 1.0
        self._cycles: Sequence[float] = (1.0,)
        self._next = 0.0  # the chance that a token which is not drafted yet will be accepted
        self._least = 0.0  # tokens per plain step that a draft must beat

    def begin(self, cycles: Sequence[float]) -> None:
        """Begin a draft. `cycles` are the costs of a cycle by depth; the draft is no deeper than they go."""
        self._cycles, self._odds, self._survival = cycles, [], 1.0
        self._next, self._least = self.acceptance.value, self.rate.value

    def __call__(self, confidence: float, index: int) -> bool:
        """Whether the draft ends after token `index`, which it drafted with that confidence."""
        odds = self.calibration.odds(confidence)
        self._odds.append(odds)
        self._survival = chance = self._survival * self.calibration.chance(odds)
        gain, least, cycles = 0.0, self._least, self._cycles
        so_far = cycles[index + 1]
        # Look beyond the next token: one more row of a check may be dear, and those after it nearly free.
        for cost in cycles[index + 2 :]:
            chance *= self._next
            gain += chance
            if gain > least * (cost - so_far):
                return False
        return True

    def learn(self, accepted: int, judged: int) -> None:
        """Learn that of the last draft's first `judged` tokens `accepted` were accepted."""
        self.acceptance.add(accepted, judged)
        for place, odds in enumerate(self._odds[:judged]):
            self.calibration.learn(odds, place < accepted)
