"""A static KV cache: one tensor and a length. Reducing the length rolls the cache back."""

from collections.abc import Sequence

import torch


class StaticCache:
    """Holds keys and values in `data` [layers, 2 kv_heads, capacity, head_dim]: keys of all heads, then values.

    For every i of `taps`, `states[i]` [capacity, hidden] holds the input of layer i at every position. If i is the
    number of layers, `states[i]` holds the output of the last layer. An `exit_layer` above 0 counts as a tap.
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
        self.capacity, self.length, self.exit_layer = shape[2], 0, exit_layer
        self.begun: list[int] = []  # tokens after `length` that have already passed the layers below `exit_layer`
        self.data = torch.zeros(shape, dtype=dtype, device=device)
        layers = {*taps, exit_layer} if exit_layer else set(taps)
        self.states = {i: torch.zeros(self.capacity, hidden, dtype=dtype, device=device) for i in sorted(layers)}

    def keep(self, length: int, path: Sequence[int] = ()) -> None:
        """Keep the first `length` positions, then the positions `length + i` for i in `path`; drop all others."""
        if any(node != index for index, node in enumerate(path)):
            chosen = torch.tensor([length + node for node in path], device=self.data.device)
            self.data[:, :, length : length + len(path)] = self.data[:, :, chosen]
            for states in self.states.values():
                states[length : length + len(path)] = states[chosen]
        self.length = length + len(path)
        self.begun.clear()
