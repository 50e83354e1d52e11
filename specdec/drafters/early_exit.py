"""The target's own first layers draft (LayerSkip, Elhoushi et al. 2024, arXiv 2404.16710).

No extra weights, no extra cache: the draft's keys and values are the target's, and verification goes on from
where the draft stopped, so the first layers never run twice.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from ..models.view import TargetView
from ..sampling import Sampler
from ..types import Proposal, SamplingParams
from .base import ChainDrafter


class EarlyExitDrafter(ChainDrafter):
    """Draws each token from the distribution that the layers below `view.exit_layer` and the target's output matrix
    give.
    """

    name = "early_exit"

    def __init__(self, view: TargetView) -> None:
        self.view = view

    def propose(self, tokens: Sequence[int], k: int, params: SamplingParams, sampler: Sampler) -> Proposal:
        return self.chain(list(tokens[self.view.cache.length :]), k, params, sampler)

    def step(self, pending: list[int]) -> Tensor:
        return self.view.begin(pending)
