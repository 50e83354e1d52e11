"""Protocols of models. The engine needs logits and a cache that it can roll back; some drafters need hidden states."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable, TypeVar

import torch
from torch import Tensor

from ..types import Tree


class Cache(Protocol):
    """Holds the keys and values of the tokens that the model has read."""

    @property
    def length(self) -> int: ...

    def keep(self, length: int, path: Sequence[int] = ()) -> None:
        """Keep the first `length` entries, then the entries `length + i` for i in `path` (ascending); drop the rest."""
        ...


def common_prefix(cached: Sequence[int], tokens: Sequence[int]) -> int:
    """Return the length of the longest common prefix of two token sequences."""
    count = 0
    for cached_token, token in zip(cached, tokens, strict=False):
        if cached_token != token:
            break
        count += 1
    return count


def tree_depths(count: int, parents: Sequence[int]) -> list[int]:
    """Return each new token's distance from the first of `count` new tokens. The last `len(parents)` form a tree."""
    chain_length = count - len(parents)
    return [*range(chain_length), *(chain_length - 1 + depth for depth in Tree(tuple(parents)).depths())]


C = TypeVar("C", bound=Cache)


@runtime_checkable
class LanguageModel(Protocol[C]):
    """A model that the engine can run. It returns `vocabulary` logits for each token, and has `context` positions."""

    vocabulary: int
    context: int
    chains_only: bool  # whether drafts must be chains, because a pass cannot read a tree

    def new_cache(self, capacity: int) -> C: ...

    def forward(self, tokens: Sequence[int], cache: C, parents: Sequence[int] = (), rows: int = 1) -> Tensor:
        """Append `tokens` to the cache and return the logits of the last `rows` tokens.  # [rows, vocabulary]

        The last `len(parents)` tokens form a tree. A parent i is the tree's token i; -1 is the token before the tree.
        """
        ...


class LoadedModel(LanguageModel[Any], Protocol):
    """A `LanguageModel` with the attributes that the loader and the page need."""

    width: int  # size of a hidden state
    depth: int  # number of layers
    parameters: int
    dtype: torch.dtype  # of the hidden states
    stored: torch.dtype  # of the weight matrices
    device: str
    source: Path | None  # the folder or file that the model was read from

    def new_cache(self, capacity: int, taps: Sequence[int] = (), exit_layer: int = 0) -> Any:
        """Make a cache that also stores hidden states: `states[i]` [capacity, width] is the input of layer i.

        i can be any of `taps`, and `exit_layer` if that is not 0. `states[depth]` is the output of the last layer.
        """
        ...

    def cut_vocabulary(self, count: int) -> None:
        """Make later passes return logits for only the first `count` tokens of the vocabulary."""
        ...


class Target(LoadedModel, Protocol):
    """A target that our own decoder runs. Drafters that read its hidden states or output matrix need this interface."""

    embedding: Tensor  # [at least `vocabulary`, width]
    exit_layers: tuple[int, ...]  # layers at which an early-exit drafter can stop, the best first

    def normed(self, x: Tensor) -> Tensor:
        """Apply the final norm to outputs of the last layer.  # [n, width] -> [n, width]"""
        ...

    def project(self, normed: Tensor) -> Tensor:
        """Multiply normed states by the output matrix.  # [n, width] -> [n, vocabulary]"""
        ...
