"""A static key-value cache: one tensor, one length. Rolling back is setting the length."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


class StaticCache:
    """`data` is [layers, entries, capacity, head_dim]; the entries are keys of all heads, then values.

    `states[i]` is [capacity, hidden], the input of layer i at every position (the last: its output),
    for those i that a drafter asked for.
    """

    def __init__(
        self, layers: int, entries: int, capacity: int, head_dim: int, dtype: torch.dtype, device: str,
        hidden: int = 0, taps: Sequence[int] = (), exit_layer: int = 0,
    ) -> None:  # fmt: skip
        self.capacity, self.length, self.exit_layer = capacity, 0, exit_layer
        self.begun: list[int] = []  # tokens after `length` that have passed the layers below `exit_layer`
        self.data = torch.zeros(layers, entries, capacity, head_dim, dtype=dtype, device=device)
        wanted = {*taps, exit_layer} - {0} if exit_layer else set(taps)
        self.states: dict[int, Tensor] = {
            i: torch.zeros(capacity, hidden, dtype=dtype, device=device) for i in sorted(wanted)
        }

    def keep(self, length: int, path: Sequence[int] = ()) -> None:
        """Keep the first `length` positions and, moved up after them, those at `length + i` for i in `path`."""
        if any(node != place for place, node in enumerate(path)):
            chosen = torch.tensor([length + node for node in path], device=self.data.device)
            self.data[:, :, length : length + len(path)] = self.data[:, :, chosen]
            for states in self.states.values():
                states[length : length + len(path)] = states[chosen]
        self.length = length + len(path)
        self.begun.clear()
