"""Medusa: heads on the target's last state predict several tokens at once (Cai et al. 2024, arXiv 2401.10774).

The target itself predicts the next token. Head i predicts the token i + 1 positions after that. A head does not know
which tokens the other heads drafted, so a chain is soon rejected. A tree also holds second choices. The paper
verifies by *typical acceptance* (in `rules.py`); rejection sampling works, too.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from ..models.base import Target
from ..models.checkpoint import check_tensors
from ..models.matrix import linear, pack_weight
from ..models.view import TargetView
from ..sampling import probabilities, Sampler
from ..types import Proposal, SamplingParams
from .base import ChainDrafter, Drafter, siblings, Steps

RankPaths = Sequence[tuple[int, ...]]  # of a tree: (0, 2) is head 1's third choice, after head 0's first choice

# A chain, and a second choice for its first token. More choices are accepted too seldom to pay.
TREE: RankPaths = ((0,), (1,), (0, 0), (0, 0, 0), (0, 0, 0, 0))


class MedusaHeads:
    """Applies residual blocks x + SiLU(W x + b) of all heads at once, then the output matrix of each head.

    `blocks` holds each block's weights [heads, in, out] and biases. Heads without output matrices use the target's.
    """

    def __init__(
        self,
        weights: Mapping[str, Tensor],
        target: Target,
        tree: RankPaths | None = None,
        stored: torch.dtype | None = None,
    ) -> None:
        """Prepare the heads. Output matrices of their own are rounded to the dtype `stored`, if given.
        The default `tree` is TREE, cut to the number of heads. Raises ValueError if the weights do not fit `target`.
        """
        count = sum(re.fullmatch(r"\d+\.0\.linear\.weight", name) is not None for name in weights)
        block_count = sum(re.fullmatch(r"0\.\d+\.linear\.weight", name) is not None for name in weights)
        width, output_name = target.width, f"{block_count}.weight"
        shapes: dict[str, tuple[int, ...]] = {f"{i}.linear.weight": (width, width) for i in range(block_count)}
        shapes |= {f"{i}.linear.bias": (width,) for i in range(block_count)}
        if f"0.{output_name}" in weights:
            shapes[output_name] = (target.vocabulary, width)
        check_tensors(weights, {f"{head}.{name}": shape for head in range(count) for name, shape in shapes.items()})
        if tree is None:
            tree = [path for path in TREE if len(path) <= count]
        self.taps = (target.depth,)
        self.target, self.count, self.tree = target, count, sorted(tree, key=lambda path: (len(path), path))
        self.parameters = sum(tensor.numel() for tensor in weights.values())

        def of_all_heads(name: str) -> Tensor:
            return torch.stack([weights[f"{head}.{name}"].to(target.device, target.dtype) for head in range(count)])

        self.blocks = [
            (of_all_heads(f"{i}.linear.weight").transpose(1, 2).contiguous(), of_all_heads(f"{i}.linear.bias")[:, None])
            for i in range(block_count)
        ]
        outputs = [weights[f"{head}.{output_name}"].float() for head in range(count)] if output_name in shapes else []
        self.outputs = [pack_weight(output, target.dtype, target.device, stored) for output in outputs]

    def logits(self, state: Tensor, count: int) -> Tensor:
        """Return logits of the first `count` heads, from the target's state after its last layer.

        The first row is for the token after the target's next token.  # [1, hidden] -> [count, vocabulary]
        """
        x = self.target.normed(state).expand(count, 1, -1)
        for weight, bias in self.blocks:
            x = x + F.silu(torch.baddbmm(bias[:count], x, weight[:count]))
        if self.outputs:
            return torch.cat([linear(row, output) for row, output in zip(x, self.outputs, strict=False)])
        return self.target.project(x[:, 0])


def last_state(view: TargetView) -> Tensor:
    """Return the target's state after its last layer, at the last token that it has read.  # [1, hidden]"""
    cache = view.cache
    state: Tensor = cache.states[view.model.depth][cache.length - 1 : cache.length]
    return state


class MedusaDrafter(ChainDrafter):
    """Draws token i from the distribution of head i."""

    name = "medusa"

    def __init__(self, view: TargetView, heads: MedusaHeads) -> None:
        self.view, self.heads = view, heads
        self.deepest = heads.count

    def propose(self, tokens: Sequence[int], k: int, params: SamplingParams, sampler: Sampler) -> Proposal:
        k = min(k, self.heads.count)
        return self.chain(self._steps(k), k, params, sampler)

    def _steps(self, k: int) -> Steps:
        # `yield from` would send the drafted tokens to an iterator that takes none.
        for logits in self.heads.logits(last_state(self.view), k).split(1):  # noqa: UP028
            yield logits


class MedusaTreeDrafter(Drafter):
    """Drafts the tree to depth K: each head's best tokens if greedy, otherwise tokens drawn without replacement."""

    name = "medusa:tree"

    def __init__(self, view: TargetView, heads: MedusaHeads) -> None:
        self.view, self.heads = view, heads
        self.deepest = max(map(len, heads.tree))

    def propose(self, tokens: Sequence[int], k: int, params: SamplingParams, sampler: Sampler) -> Proposal:
        paths = [path for path in self.heads.tree if len(path) <= k]
        if not paths:
            return Proposal()
        started = time.perf_counter()
        logits = self.heads.logits(last_state(self.view), max(map(len, paths)))
        ranks = 1 + max(map(max, paths))
        choices: list[list[tuple[int, Tensor | None]]]
        if params.temperature == 0.0:
            choices = [[(token, None) for token in best] for best in logits.topk(ranks).indices.tolist()]
        else:
            rows = enumerate(probabilities(logits, params))
            choices = [[*siblings(distribution, ranks, sampler, level)] for level, distribution in rows]
        # If a distribution has fewer tokens than `ranks`, its last ranks have no token.
        paths = [path for path in paths if all(rank < len(choices[level]) for level, rank in enumerate(path))]
        node_of = {(): -1, **{path: node for node, path in enumerate(paths)}}
        chosen = [choices[len(path) - 1][path[-1]] for path in paths]
        distributions = [distribution for _, distribution in chosen if distribution is not None]
        parents = tuple(node_of[path[:-1]] for path in paths)
        seconds = (time.perf_counter() - started, *[0.0] * (len(paths) - 1))  # the whole time goes to the first token
        return Proposal(
            tuple(token for token, _ in chosen), parents, torch.stack(distributions) if distributions else None, seconds
        )
