"""Draft with the target's own first layers (LayerSkip, Elhoushi et al. 2024, arXiv 2404.16710).

This needs no extra weights and no extra cache. Draft and target share keys and values, and verification continues at
the layer where the draft stopped, so the first layers never run twice.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..models.view import TargetView
from ..sampling import Sampler
from ..types import Proposal, SamplingParams
from .base import ChainDrafter, read_one_by_one


class EarlyExitDrafter(ChainDrafter):
    """Draws each token from the logits of the target's first `view.exit_layer` layers and its output matrix."""

    name = "early_exit"

    def __init__(self, view: TargetView) -> None:
        self.view = view

    def propose(self, tokens: Sequence[int], k: int, params: SamplingParams, sampler: Sampler) -> Proposal:
        steps = read_one_by_one(self.view.begin, list(tokens[self.view.cache.length :]))
        return self.chain(steps, k, params, sampler)
