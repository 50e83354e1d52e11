"""Draft with the target's own first layers (LayerSkip, Elhoushi et al. 2024, arXiv 2404.16710).

This needs no extra weights and no extra cache. Draft and target share keys and values, and verification continues at
the layer where the draft stopped, so the first layers never run twice.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from ..models.view import TargetView
from ..sampling import Sampler
from ..types import Proposal, SamplingParams
from .base import ChainDrafter


class EarlyExitDrafter(ChainDrafter):
    """Draws each token from the logits of the target's first `view.exit_layer` layers and its output matrix."""

    name = "early_exit"

    def __init__(self, view: TargetView) -> None:
        self.view = view

    def propose(self, tokens: Sequence[int], k: int, params: SamplingParams, sampler: Sampler) -> Proposal:
        return self.chain(list(tokens[self.view.cache.length :]), k, params, sampler)

    def step(self, pending: list[int]) -> Tensor:
        return self.view.begin(pending)
