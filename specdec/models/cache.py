"""A static key-value cache: one tensor, one length. Rolling back is setting the length."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


class StaticCache:
    def __init__(self, layers: int, heads: int, capacity: int, head_dim: int, dtype: torch.dtype, device: str) -> None:
        self.capacity, self.length = capacity, 0
        shape = (layers, 2, heads, capacity, head_dim)
        self.data = torch.zeros(shape, dtype=dtype, device=device)
        self.layers = list(self.data.unbind(0))  # per layer: [2, heads, capacity, head_dim]


    def keep(self, length: int, path: Sequence[int] = ()) -> None:
        if list(path) != list(range(len(path))):
            chosen = torch.tensor([length + i for i in path], device=self.data.device)
            self.data[:, :, :, length : length + len(path)] = self.data[:, :, :, chosen]
        self.length = length + len(path)
