"""A static key-value cache: one tensor, one length. Rolling back is setting the length."""

from __future__ import annotations

from collections.abc import Sequence

import torch


class StaticCache:
    """`layers[i]` is [entries, capacity, head_dim]: a layer's keys of all heads, then its values."""

    def __init__(
        self, layers: int, entries: int, capacity: int, head_dim: int, dtype: torch.dtype, device: str
    ) -> None:
        self.capacity, self.length = capacity, 0
        self.data = torch.zeros(layers, entries, capacity, head_dim, dtype=dtype, device=device)
        self.layers = list(self.data.unbind(0))

    def keep(self, length: int, path: Sequence[int] = ()) -> None:
        """Keep the first `length` positions and, moved up behind them, those at `length + i` for i in `path`."""
        if any(node != place for place, node in enumerate(path)):
            chosen = torch.tensor([length + node for node in path], device=self.data.device)
            self.data[:, :, length : length + len(path)] = self.data[:, :, chosen]
        self.length = length + len(path)
