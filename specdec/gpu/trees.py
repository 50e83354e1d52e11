"""Trees on the device: what follows what, and the walk along them, as tensor operations that ask the host nothing.

The specification of `walk` is `verify.RejectionSampling`: for the same random numbers it accepts the same path and
draws the same token; a test holds the two equal. A tree has a fixed number of nodes. Which node follows which, and
which nodes exist at all, are numbers on the device: one captured graph serves every tree of its size.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .accept import ACCEPTED, draw, left_over, ratio, Test

FIELDS = 6  # numbers of a record for every node


def paths_of(parents: Tensor, levels: int) -> Tensor:
    """Mark which nodes stand on the path to which, itself included.  # [n] -> bool [n + 1, n + 1]

    Row i + 1 is node i's, row and column 0 the text's last token's. `levels` bounds the depth of the tree.
    """
    size = len(parents) + 1
    every = torch.arange(size, device=parents.device)
    up = torch.cat([every[:1], parents + 1])
    paths = ((every == up[:, None]) | (every == every[:, None])).float()  # one step far
    reach = 1
    while reach < levels:
        paths, reach = paths.mm(paths).clamp_(max=1.0), 2 * reach
    return paths > 0.0


@dataclass(frozen=True)
class Walked:
    """What became of a tree, on the device: `path` [n] begins with the accepted nodes; the rest of it is arbitrary."""

    accepted: Tensor  # [1]
    token: Tensor  # [1]
    path: Tensor
    p: Tensor  # [n], as it stood when the node was tried
    q: Tensor
    u: Tensor
    fates: Tensor  # [n]


def walk(
    rows: Tensor,
    drafted: Tensor,
    parents: Tensor,
    distributions: Tensor | None,
    real: Tensor,
    coins: Tensor,
    own: Tensor,
    test: Test = ratio,
) -> Walked:
    """Judge the nodes [n] that are `real`, drawn from `distributions` [n, V] given their elder siblings.

    `distributions` None are point masses. `rows` [n + 1, V] are the target's distributions after the text and after
    every node. Parents stand before their children and are real where these are. The i-th real node has the i-th of the
    `coins` [n]; `own` [1] is the uniform number that draws the target's token.

    One pass over the nodes in order is the whole walk, since the children of an accepted node stand after it.
    """
    n = len(drafted)
    raw = rows.index_select(0, parents + 1).gather(1, drafted[:, None])[:, 0].double()
    q = torch.ones_like(raw) if distributions is None else distributions.gather(1, drafted[:, None])[:, 0].double()
    u = coins.index_select(0, (real.cumsum(0) - 1).clamp(min=0))
    node, before = torch.full_like(parents[:1], -1), torch.full_like(parents[:1], -2)
    # `p` belongs to the children of `node`, where the walk is. `beside` belongs to the later siblings of `node`, below
    # `before`: they are never tried, and recorded with the residual that a rejection of `node` would have left.
    p = beside = rows[0]
    chances, fates = [], []
    for i in range(n):
        token, parent, here = drafted[i : i + 1], parents[i : i + 1], real[i : i + 1]
        tried = (parent == node) & here
        chance = torch.where(parent == before, beside.index_select(0, token).double(), raw[i : i + 1])
        chance = torch.where(tried, p.index_select(0, token).double(), chance)
        accepted = tried & test(chance, q[i : i + 1], u[i : i + 1])
        left = residual(p, None if distributions is None else distributions[i], token)
        beside = torch.where(accepted, left, beside)
        p = torch.where(accepted, rows[i + 1], torch.where(tried, left, p))
        before, node = torch.where(accepted, node, before), node.masked_fill(accepted, i)
        chances.append(chance)
        fates.append(here.long() + tried + accepted)
    fate = torch.cat(fates)
    on_path = fate == ACCEPTED
    place = (on_path.cumsum(0) - 1).masked_fill(~on_path, n)
    path = parents.new_zeros(n + 1).scatter(0, place, torch.arange(n, device=parents.device))[:n]
    return Walked(on_path.sum(0, keepdim=True), draw(p, own), path, torch.cat(chances), q, u, fate)


def residual(p: Tensor, q: Tensor | None, token: Tensor) -> Tensor:
    """Compute `sampling.residual` without asking the host how much is left.  # [V], [V], [1] -> [V]"""
    left = left_over(p, q, token)
    mass = left.sum()
    return torch.where(mass > 0.0, left, p) / torch.where(mass > 0.0, mass, p.sum())


def packed(walked: Walked, drafted: Tensor, parents: Tensor, sound: Tensor, finite: Tensor) -> Tensor:
    """Pack one cycle for the host, as `accept.packed` does.  # [HEAD + FIELDS n], float64"""
    # accepted, token, in place of a chain's limit a number that nobody reads, sound, finite
    head = (walked.accepted, walked.token, walked.accepted, sound, finite)
    nodes = (drafted, parents, walked.fates, walked.p, walked.q, walked.u)
    return torch.cat([part.double() for part in (*head, *nodes)])
