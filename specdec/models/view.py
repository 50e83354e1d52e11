"""The target as one run sees it: the same weights, and a cache that a drafter may read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from .base import LoadedModel
from .transformer import Transformer


class TargetView:
    """A `LanguageModel` for one run, whose cache keeps the states at `taps` and knows an `exit_layer`.

    Drafters that work on the target's own states (early exit, Medusa, EAGLE) use it, too. Rolling back the text
    rolls back what they see.
    """

    def __init__(self, model: LoadedModel, taps: Sequence[int] = (), exit_layer: int = 0) -> None:
        self.model, self.taps, self.exit_layer = model, tuple(taps), exit_layer
        self.vocabulary, self.context = model.vocabulary, model.context
        self.cache: Any = model.new_cache(0)

    def new_cache(self, capacity: int) -> Any:
        self.cache = self.model.new_cache(capacity, self.taps, self.exit_layer)
        return self.cache

    def forward(self, tokens: Sequence[int], cache: Any, parents: Sequence[int] = (), rows: int = 1) -> Tensor:
        return self.model.forward(tokens, cache, parents, rows)

    def begin(self, tokens: Sequence[int]) -> Tensor:
        """The first layers alone; they are not run again when the target verifies.  # [1, V]"""
        assert isinstance(self.model, Transformer)  # no other has an exit
        return self.model.begin(tokens, self.cache)
