"""A view of the target for one run. It shares the target's weights, and lets drafters read the cache of the run."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from .base import LoadedModel
from .transformer import Transformer


class TargetView:
    """A `LanguageModel` for one run. Its cache also stores the inputs of the layers `taps` and `exit_layer` (0: none).

    The engine and drafters (early exit, Medusa, EAGLE) share the view. When the engine rolls the cache back, the stored
    states are rolled back too.
    """

    def __init__(self, model: LoadedModel, taps: Sequence[int] = (), exit_layer: int = 0) -> None:
        self.model, self.taps, self.exit_layer = model, tuple(taps), exit_layer
        self.vocabulary, self.context = model.vocabulary, model.context
        self.chains_only = model.chains_only
        self.cache: Any = model.new_cache(0)

    def new_cache(self, capacity: int) -> Any:
        self.cache = self.model.new_cache(capacity, self.taps, self.exit_layer)
        return self.cache

    def forward(self, tokens: Sequence[int], cache: Any, parents: Sequence[int] = (), rows: int = 1) -> Tensor:
        return self.model.forward(tokens, cache, parents, rows)

    def begin(self, tokens: Sequence[int]) -> Tensor:
        """Run `tokens` up to the exit layer; return the last token's logits. `forward` runs the rest.  # [1, V]"""
        assert isinstance(self.model, Transformer)  # no other model has an early exit
        return self.model.begin(tokens, self.cache)
