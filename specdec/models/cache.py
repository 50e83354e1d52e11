"""A static key-value cache: one tensor, one length. Rolling back is setting the length."""

from __future__ import annotations

from collections.abc import Sequence

import torch


class StaticCache:
    """`data` is [layers, entries, capacity, head_dim]; the entries are keys of all heads, then values.

    `states[i]` is [capacity, hidden], the input of layer i at every position (the last: its output),
    for those i that a drafter asked for.
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
        """`shape` is that of `data`, and `hidden` the width of the states."""
        self.capacity, self.length, self.exit_layer = shape[2], 0, exit_layer
        self.begun: list[int] = []  # tokens after `length` that have passed the layers below `exit_layer`
        self.data = torch.zeros(shape, dtype=dtype, device=device)
        wanted = {*taps, exit_layer} - {0} if exit_layer else set(taps)
        self.states = {i: torch.zeros(self.capacity, hidden, dtype=dtype, device=device) for i in sorted(wanted)}

    def keep(self, length: int, path: Sequence[int] = ()) -> None:
        """Keep the first `length` positions, then move the ones at `length + i`, for i in `path`, up behind them."""
        if any(node != place for place, node in enumerate(path)):
            chosen = torch.tensor([length + node for node in path], device=self.data.device)
            self.data[:, :, length : length + len(path)] = self.data[:, :, chosen]
            for states in self.states.values():
                states[length : length + len(path)] = states[chosen]
        self.length = length + len(path)
        self.begun.clear()
