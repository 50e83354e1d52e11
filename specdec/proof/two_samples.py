"""Do two samples come from one distribution, whatever it is? The G-test of two samples, exact where counts are small.

Given how often each cell came in both samples together, which of these draws were the first sample's is pure chance
if the distributions are equal: that is the permutation test. To draw permutations shows no tail of one in ten million;
a Chernoff bound does, with each cell's moments summed exactly.
"""

from __future__ import annotations

import math
from collections import Counter

import torch
from torch import Tensor

from .goodness_of_fit import Counts, GTest, SMALLEST

TILTS = torch.linspace(0.02, 0.98, 49, dtype=torch.float64)  # where Chernoff's bound is tried


def two_samples(first: Counts, second: Counts) -> GTest:
    """Cells that came fewer than ten times in both together share one."""
    a, b = sum(first.values()), sum(second.values())
    together = {cell: first.get(cell, 0) + second.get(cell, 0) for cell in first.keys() | second.keys()}
    cells = [(first.get(cell, 0), m) for cell, m in together.items() if m >= 2 * SMALLEST]
    small = [(first.get(cell, 0), m) for cell, m in together.items() if m < 2 * SMALLEST]
    if small:
        cells.append((sum(x for x, _ in small), sum(m for _, m in small)))
    share = a / (a + b) if a + b else 0.0
    if len(cells) < 2 or not 0.0 < share < 1.0:
        return GTest(0.0, 0, 1.0)
    statistic = sum(float(deviance(m, share)[x]) for x, m in cells)
    return GTest(statistic, len(cells) - 1, tail(statistic, [m for _, m in cells], a, b))


def deviance(m: int, share: float) -> Tensor:
    """2 m KL(x / m || share): how unlike `share` it is that x of m draws are the first sample's.  # [m + 1]"""
    x = torch.arange(m + 1, dtype=torch.float64)
    return 2 * (torch.xlogy(x, x / (m * share)) + torch.xlogy(m - x, (m - x) / (m * (1 - share))))


def tail(statistic: float, sizes: list[int], a: int, b: int) -> float:
    """A bound on P(G >= statistic) over all ways to deal the draws of these cells to samples of a and b.

    So dealt, the first sample's counts are independent binomial variables under the condition that they sum to a.
    Hence P(G >= g) <= e^(-tg) Π E e^(td) / P(Binomial(a + b, a / (a + b)) = a) for every t > 0.
    """
    n, share = a + b, a / (a + b)
    moments = torch.zeros_like(TILTS)
    for m, many in Counter(sizes).items():
        moments += many * (log_binomial(m, share) + TILTS[:, None] * deviance(m, share)).logsumexp(1)
    exponent = float((moments - TILTS * statistic).min()) - float(log_binomial(n, share)[a])
    return math.exp(min(0.0, exponent))


def log_binomial(m: int, share: float) -> Tensor:
    """ln of each chance of Binomial(m, share).  # [m + 1]"""
    x = torch.arange(m + 1, dtype=torch.float64)
    logs = torch.lgamma(x + 1)
    return logs[m] - logs - logs.flip(0) + x * math.log(share) + (m - x) * math.log1p(-share)
