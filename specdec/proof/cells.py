"""The likely continuations of a text as cells, so that a distribution over every text of several tokens fits into a
test.
"""

from __future__ import annotations

import math
from collections import Counter

from .enumeration import JointDistribution
from .goodness_of_fit import Counts
from .rows import Row

ROUNDING = 1e-9
OTHER = -1  # ends a cell: any token that has no cell of its own, and whatever follows it


def distributions_of_cells(row: Row, length: int, smallest: float) -> list[JointDistribution]:
    """The distributions of the next 1, 2, … `length` tokens, each over cells that share out all texts.

    A cell is a text, or a text whose last place is `OTHER`. One that is less likely than `smallest` never stands
    alone, and one that cannot have two such parts is not split further.
    """
    distributions: list[JointDistribution] = [{(): 1.0}]
    for _ in range(length):
        longer: JointDistribution = {}
        for text, chance in distributions[-1].items():
            if text[-1:] == (OTHER,) or chance < 2 * smallest:
                longer[text] = chance
                continue
            each = row(text)
            listed = {token: chance * p for token, p in each.items() if chance * p >= smallest}
            longer |= {(*text, token): p for token, p in listed.items()}
            if len(listed) < len(each) or math.fsum(each.values()) < 1.0 - ROUNDING:
                longer[(*text, OTHER)] = max(0.0, chance - math.fsum(listed.values()))
        distributions.append(longer)
    return distributions[1:]


def counts_in(distribution: JointDistribution, counts: Counts) -> Counter[tuple[int, ...]]:
    """How often each cell of `distribution` was drawn. A text that the distribution excludes counts as a cell that it
    lacks.
    """
    inner = {cell[:i] for cell in distribution for i in range(len(cell))}
    found: Counter[tuple[int, ...]] = Counter()
    for text, count in counts.items():
        found[cell_of(text, distribution, inner)] += count
    return found


def cell_of(text: tuple[int, ...], distribution: JointDistribution, inner: set[tuple[int, ...]]) -> tuple[int, ...]:
    """`inner` are the beginnings of cells."""
    end = 0
    while text[:end] not in distribution and text[:end] in inner:
        end += 1
    return text[:end] if text[:end] in distribution else (*text[: end - 1], OTHER)
