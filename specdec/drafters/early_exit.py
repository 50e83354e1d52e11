"""The target's own first layers draft (LayerSkip, Elhoushi et al. 2024, arXiv 2404.16710).

No further weights, no further cache: the draft's keys and values are the target's, and verification goes on from
where the draft stopped, so the first layers never run twice.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import torch
from torch import Tensor

from ..models.view import TargetView
from ..sampling import Chooser, probabilities
from ..types import Proposal, SamplingParams


class EarlyExitDrafter:
    """Draws each token from the law that the layers below `view.exit_layer` and the target's output matrix give."""

    name = "early_exit"

    def __init__(self, view: TargetView) -> None:
        self.view = view

    def propose(self, tokens: Sequence[int], k: int, params: SamplingParams, chooser: Chooser) -> Proposal:
        started, pending = time.perf_counter(), list(tokens[self.view.cache.length :])
        drafted: list[int] = []
        laws: list[Tensor] = []
        seconds: list[float] = []
        while len(drafted) < k:
            law = probabilities(self.view.begin(pending), params)[0]
            token = chooser.categorical(law, ("draft", len(drafted)))
            drafted.append(token)
            laws.append(law)
            pending = [token]
            now = time.perf_counter()
            seconds.append(now - started)
            started = now
        return Proposal.chain(drafted, torch.stack(laws), tuple(seconds)) if drafted else Proposal()
