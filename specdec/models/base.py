"""What the engine asks of a model: logits for appended tokens, and a cache that can be rolled back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

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
    same = zip(cached, tokens, strict=False)
    return next((i for i, (a, b) in enumerate(same) if a != b), min(len(cached), len(tokens)))


C = TypeVar("C", bound=Cache)


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
