"""Decide when a draft is long enough, by the expected number of accepted tokens and by the costs.

One more drafted token costs time. In that time, decoding at its recent `Rate` would yield rate × time tokens. So the
token pays off if the chance that it is accepted is larger than this number. See SpecDec++ (arXiv 2405.19715) and
Leviathan et al., section 3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


class Share:
    """Estimates the share of judged tokens that are accepted. It starts from a prior; older outcomes count less."""

    MEMORY = 0.97  # each judged token multiplies the weight of older outcomes by this factor

    def __init__(self, prior: float, weight: float = 3.0) -> None:
        self.accepted, self.judged = prior * weight, weight

    def add(self, accepted: int, judged: int) -> None:
        """Count `judged` tokens, of which the first `accepted` were accepted."""
        fade, fade_of_accepted = self.MEMORY**judged, self.MEMORY ** (judged - accepted)
        self.accepted = fade * self.accepted + (fade_of_accepted - fade) / (1.0 - self.MEMORY)
        self.judged = fade * self.judged + (1.0 - fade) / (1.0 - self.MEMORY)

    @property
    def value(self) -> float:
        return self.accepted / self.judged

    @property
    def upper(self) -> float:
        """The share plus one standard error, at most 1."""
        return min(1.0, self.value + math.sqrt(max(0.0, self.value * (1.0 - self.value)) / self.judged))


class Calibration:
    """Predicts how often tokens of a given confidence are accepted, with a logistic curve that is fitted in the run.

    This is Platt scaling. It starts above low confidences: unsure tokens are accepted more often than they say.
    """

    LEVEL = 0.5
    SLOPE = 0.5
    LEVEL_RATE = 0.2  # learning rates
    SLOPE_RATE = 0.02
    MAX_CONFIDENCE = 0.999

    def __init__(self) -> None:
        self.level, self.slope = self.LEVEL, self.SLOPE

    def log_odds(self, confidence: float) -> float:
        """Return the log-odds of a probability."""
        confidence = min(self.MAX_CONFIDENCE, max(1.0 - self.MAX_CONFIDENCE, confidence))
        return math.log(confidence / (1.0 - confidence))

    def chance(self, log_odds: float) -> float:
        """Return the probability that a token is accepted, given the log-odds of its confidence."""
        return 1.0 / (1.0 + math.exp(-self.level - self.slope * log_odds))

    def learn(self, log_odds: float, accepted: bool) -> None:
        """Take one gradient step on the logarithmic loss of this outcome."""
        error = accepted - self.chance(log_odds)
        self.level += self.LEVEL_RATE * error
        self.slope += self.SLOPE_RATE * error * log_odds


class Rate:
    """Measures the tokens per unit of cost in recent cycles. It is at least `plain`, the rate of plain decoding."""

    MEMORY = 0.9  # each cycle multiplies the weight of older cycles by this factor

    def __init__(self, plain: float = 1.0) -> None:
        self.plain = plain
        self.cost = self.tokens = 0.0

    def add(self, tokens: int, cost: float) -> None:
        self.tokens = self.MEMORY * self.tokens + tokens
        self.cost = self.MEMORY * self.cost + cost

    @property
    def value(self) -> float:
        return max(self.plain, self.tokens / self.cost if self.cost else 0.0)


class DraftLengthController:
    """Decides after each drafted token whether the draft ends, and learns how reliable the draft's confidence is."""

    def __init__(self, rate: Rate) -> None:
        self.rate = rate
        self.acceptance = Share(0.6)
        self.calibration = Calibration()
        self._log_odds: list[float] = []  # the confidence of each token of this draft, as log-odds
        self._survival = 1.0  # the chance that all tokens of this draft are accepted
        self._cycle_costs: Sequence[float] = (1.0,)
        self._next_chance = 0.0  # the chance that a further token will be accepted
        self._rate_to_beat = 0.0

    def begin(self, cycle_costs: Sequence[float]) -> None:
        """Begin a draft. `cycle_costs[d]` is the cost of a cycle whose draft has depth d, up to the largest depth."""
        self._cycle_costs, self._log_odds, self._survival = cycle_costs, [], 1.0
        self._next_chance, self._rate_to_beat = self.acceptance.value, self.rate.value

    def __call__(self, confidence: float, index: int) -> bool:
        """Return whether the draft ends after token `index`."""
        log_odds = self.calibration.log_odds(confidence)
        self._log_odds.append(log_odds)
        self._survival = chance = self._survival * self.calibration.chance(log_odds)
        gain, rate_to_beat, cycle_costs = 0.0, self._rate_to_beat, self._cycle_costs
        so_far = cycle_costs[index + 1]
        # Look several tokens ahead: one more in the target's pass can be costly, and those after it nearly free.
        for cost in cycle_costs[index + 2 :]:
            chance *= self._next_chance
            gain += chance
            if gain > rate_to_beat * (cost - so_far):
                return False
        return True

    def learn(self, accepted: int, judged: int) -> None:
        """Learn from the last draft: of its first `judged` tokens, the first `accepted` were accepted."""
        self.acceptance.add(accepted, judged)
        for index, log_odds in enumerate(self._log_odds[:judged]):
            self.calibration.learn(log_odds, index < accepted)
