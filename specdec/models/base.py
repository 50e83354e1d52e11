"""What the engine asks of a model, logits and a cache that can be rolled back, and what drafters ask beside."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable, TypeVar

import torch
from torch import Tensor


class Cache(Protocol):
    """The keys and values of the tokens seen so far."""

    @property
    def length(self) -> int: ...

    def keep(self, length: int, path: Sequence[int] = ()) -> None:
        """Keep the first `length` entries and, after them, those at `length + i` for i in `path` (ascending)."""
        ...


def common_prefix(cached: Sequence[int], tokens: Sequence[int]) -> int:
    """How many tokens of a cache are those of the text, and can stay in it."""
    same = 0
    for one, other in zip(cached, tokens, strict=False):
        if one != other:
            break
        same += 1
    return same


def tree_depths(count: int, parents: Sequence[int]) -> list[int]:
    """The offset of each new token's position from the first one's."""
    first = count - len(parents)
    depths = list(range(first))
    for parent in parents:
        depths.append(depths[first + parent] + 1)
    return depths


C = TypeVar("C", bound=Cache)


@runtime_checkable
class LanguageModel(Protocol[C]):
    """`vocabulary` is the number of logits, `context` the number of positions."""

    vocabulary: int
    context: int

    def new_cache(self, capacity: int) -> C: ...

    def forward(self, tokens: Sequence[int], cache: C, parents: Sequence[int] = (), rows: int = 1) -> Tensor:
        """Append `tokens` to the cache and return the logits of the last `rows` of them.  # [rows, V]

        `parents` makes the last `len(parents)` tokens a tree: -1 is the token before them, i the i-th of them.
        """
        ...


class LoadedModel(LanguageModel[Any], Protocol):
    """A `LanguageModel` with what labels and loading ask of it."""

    width: int  # of its states
    depth: int  # layers
    parameters: int
    dtype: torch.dtype  # of its states
    stored: torch.dtype  # of its matrices
    device: str
    source: Path | None  # the folder that it was read from

    def new_cache(self, capacity: int, taps: Sequence[int] = (), exit_layer: int = 0) -> Any:
        """With `states[i]` [capacity, width] for every i of `taps`: what layer i reads, or the last layer's output."""
        ...

    def cut_vocabulary(self, count: int) -> None:
        """Give logits of the first `count` tokens alone."""
        ...


class Target(LoadedModel, Protocol):
    """A model of our own decoder, as drafters on its states see it."""

    embedding: Tensor  # [at least V, width]
    exit_layers: tuple[int, ...]  # where it may be left early, the best to draft from first

    def normed(self, x: Tensor) -> Tensor:
        """States after the last layer, passed through the final norm.  # [n, width] -> [n, width]"""
        ...

    def project(self, normed: Tensor) -> Tensor:
        """The output matrix alone.  # [n, width] -> [n, V]"""
        ...
