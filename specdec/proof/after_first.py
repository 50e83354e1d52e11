"""Do drawn texts follow a known distribution after their first token? That one is never drafted, and its noise is left
out.
"""

from __future__ import annotations

import math

from .cells import counts_in
from .enumeration import JointDistribution
from .goodness_of_fit import beyond, Counts, divergence, GTest

DEGREE = 1.4  # of a squared Gaussian's moments, for each degree of freedom


def g_test_after_first(counts: Counts, first: JointDistribution, distribution: JointDistribution) -> GTest:
    """The G-test of `distribution` less that of `first`: of the texts' next tokens, given their first ones.

    The cells of both are fixed before anything is drawn, and need not be large. Given its beginning, the next token
    of a text is a chain of yes and no, each a binomial variable x of n with a known chance p, and G is the sum of
    their d = 2 n KL(x / n || p). E e^(td) <= (1 - 2t)^(-c / 2) for every n, p and t in (0, 1/2), c = 1.4 (2 ln 2 for
    one fair coin; computed, see the test of this bound), so that the sum has a tail as in `false_alarm` with w = c df.
    """
    draws = sum(counts.values())
    statistic, degrees = 0.0, len(distribution) - len(first)
    for sign, one in ((-1, first), (1, distribution)):
        seen = counts_in(one, counts)
        if any(one.get(cell, 0.0) <= 0.0 for cell in seen):
            return GTest(math.inf, 1, 0.0)
        statistic += sign * draws * divergence([(p, seen[cell] / draws) for cell, p in one.items() if p > 0.0])
    w = DEGREE * degrees
    if degrees < 1 or statistic <= w:
        return GTest(max(0.0, statistic), max(0, degrees), 1.0)
    return GTest(statistic, degrees, math.exp(max(-700.0, (w * (1 + math.log(statistic / w)) - statistic) / 2)))


def limit_after_first(degrees: int, alarm: float) -> float:
    """The G beyond which the tail lies below `alarm`."""
    return beyond(DEGREE * degrees, -math.log(alarm))
