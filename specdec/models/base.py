"""The protocols of models: the engine needs logits and a cache that can be rolled back, drafters also hidden states."""

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
    """Return how many of the first tokens of two sequences are equal."""
    count = 0
    for cached_token, token in zip(cached, tokens, strict=False):
        if cached_token != token:
            break
        count += 1
    return count


def tree_depths(count: int, parents: Sequence[int]) -> list[int]:
    """Return how far each of `count` new tokens is behind the first. The last `len(parents)` form a tree."""
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
    """A `LanguageModel` with the facts that labels and loading need."""

    width: int  # of the hidden states
    depth: int  # number of layers
    parameters: int
    dtype: torch.dtype  # of the hidden states
    stored: torch.dtype  # of the weight matrices
    device: str
    source: Path | None  # the folder or file that it was read from

    def new_cache(self, capacity: int, taps: Sequence[int] = (), exit_layer: int = 0) -> Any:
        """Make a cache. For every i of `taps`, `states[i]` [capacity, width] holds the input of layer i.

        For i = `depth` it holds the output of the last layer. The input of `exit_layer` is kept, too.
        """
        ...

    def cut_vocabulary(self, count: int) -> None:
        """Make later passes return logits of the first `count` tokens only."""
        ...


class Target(LoadedModel, Protocol):
    """A model of our own decoder, with what drafters on its hidden states need."""

    embedding: Tensor  # [at least V, width]
    exit_layers: tuple[int, ...]  # layers at which early exit may draft, the best first

    def normed(self, x: Tensor) -> Tensor:
        """Apply the final norm to states after the last layer.  # [n, width] -> [n, width]"""
        ...

    def project(self, normed: Tensor) -> Tensor:
        """Multiply normed states by the output matrix.  # [n, width] -> [n, V]"""
        ...
