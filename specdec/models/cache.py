"""A static key-value cache: one tensor and its length. To roll it back, set the length."""

from __future__ import annotations

from collections.abc import Sequence

import torch


class StaticCache:
    """Holds keys and values, `data` [layers, entries, capacity, head_dim]: the keys of all heads, then the values.

    For every i of `taps`, `states[i]` [capacity, hidden] holds the input of layer i at every position. If i is the
    number of layers, it holds the output of the last one.
    """

    def __init__(
        self,
        shape: tuple[int, int, int, int],
        dtype: torch.dtype,
        device: str,
        hidden: int,
        taps: Sequence[int] = (),
        exit_layer: int = 0,
    ) -> None:
        """Allocate `data` of `shape`; states have the width `hidden`."""
        self.capacity, self.length, self.exit_layer = shape[2], 0, exit_layer
        self.begun: list[int] = []  # tokens after `length` that have passed the layers below `exit_layer`
        self.data = torch.zeros(shape, dtype=dtype, device=device)
        layers = {*taps, exit_layer} - {0} if exit_layer else set(taps)
        self.states = {i: torch.zeros(self.capacity, hidden, dtype=dtype, device=device) for i in sorted(layers)}

    def keep(self, length: int, path: Sequence[int] = ()) -> None:
        """Keep the first `length` positions, and after them those at `length + i` for i in `path`."""
        if any(node != index for index, node in enumerate(path)):
            chosen = torch.tensor([length + node for node in path], device=self.data.device)
            self.data[:, :, length : length + len(path)] = self.data[:, :, chosen]
            for states in self.states.values():
                states[length : length + len(path)] = states[chosen]
        self.length = length + len(path)
        self.begun.clear()
