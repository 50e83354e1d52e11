"""Several texts in one pass: their rows share the reading of the weights, and each reads its own cache.

The same weights and layers as `Transformer`, whose passes over one text it equals up to rounding. For measuring what
speculation is worth in a batch; the app itself runs one text at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from .transformer import Transformer


class BatchCache:
    """`data` is [layers, keys and values, texts, heads, capacity, head_dim]; `lengths` has one entry a text.

    Rolling a text back is setting its length.
    """

    def __init__(self, model: Transformer, texts: int, capacity: int) -> None:
        shape = len(model.layers), 2, texts, model.kv_heads, capacity, model.head_dim
        self.data = torch.zeros(shape, dtype=model.dtype, device=model.device)
        self.lengths = [0] * texts

    @property
    def capacity(self) -> int:
        return self.data.shape[4]

    def part(self, start: int, texts: int) -> BatchCache:
        """Those texts alone, on memory of their own."""
        copy = object.__new__(BatchCache)
        which = slice(start, start + texts)
        copy.data, copy.lengths = self.data[:, :, which].clone(), self.lengths[which]
        return copy


def forward(model: Transformer, tokens: Sequence[Sequence[int]], cache: BatchCache, rows: int = 1) -> Tensor:
    """Append as many tokens to every text; logits of the last `rows` of each.  # [texts][n] -> [texts, rows, V]

    ValueError for texts that do not fit, or of which each adds another number of tokens.
    """
    x = states(model, tokens, cache)[:, -rows:]
    with torch.inference_mode():
        return model.logits(x.flatten(0, 1)).view(len(tokens), rows, -1)


@torch.inference_mode()
def states(
    model: Transformer, tokens: Sequence[Sequence[int]], cache: BatchCache, taps: dict[int, Tensor] | None = None
) -> Tensor:  # fmt: skip
    """The same, but the states after the last layer.  # [texts][n] -> [texts, n, hidden]

    `taps` is filled with what the layers that it names read, in the same shape.
    """
    texts, count = len(tokens), len(tokens[0])
    longest = max(cache.lengths) + count
    if texts != len(cache.lengths) or any(len(own) != count for own in tokens):
        raise ValueError(f"{len(cache.lengths)} texts add as many tokens each, not {[len(own) for own in tokens]}")
    if longest > cache.capacity:
        raise ValueError(f"{longest} tokens do not fit a cache of {cache.capacity}")
    places = torch.tensor(cache.lengths, device=model.device)[:, None] + torch.arange(count, device=model.device)
    which, angles = torch.arange(texts, device=model.device)[:, None], model.angles[places.flatten()]
    hidden = {
        window: torch.zeros(texts, 1, count, longest, dtype=model.dtype, device=model.device)
        .masked_fill_(~mask(places, longest, window), float("-inf"))
        .repeat_interleave(model.kv_heads, 0)
        for window in {layer.window for layer in model.layers}
    }  # [texts · kv_heads, 1, n, longest]
    kv_heads, shared = model.kv_heads, model.heads // model.kv_heads  # heads that read the same keys
    x = F.embedding(torch.tensor(tokens, device=model.device).flatten(), model.embedding)
    for i, layer in enumerate(model.layers):
        if taps is not None and i in taps:
            taps[i] = x.view(texts, count, -1).clone()
        qkv = model.project_qkv(model.rms_normalise(x), layer, angles)  # [heads + 2 kv_heads, texts · n, head_dim]
        queries, new = qkv.unflatten(1, (texts, count)).transpose(0, 1).split((model.heads, 2 * kv_heads), 1)
        for own, added in zip(cache.data[i], new.chunk(2, 1), strict=True):
            own[which, :, places] = added.transpose(1, 2)
        # As plain products: torch's attention for 16 bits took three times as long as all the rest on a CPU.
        keys, values = (own.flatten(0, 1)[:, :longest] for own in cache.data[i])  # [texts · kv_heads, longest, d]
        scores = torch.bmm(queries.reshape(texts * kv_heads, shared * count, -1), keys.transpose(1, 2))
        seen = (scores.unflatten(1, (shared, count)) + hidden[layer.window]).softmax(-1).flatten(1, 2)
        y = torch.bmm(seen, values).view(texts, model.heads, count, -1).transpose(0, 1)
        x = model.attention_out_and_mlp(x, y.flatten(1, 2), layer)
    cache.lengths = [length + count for length in cache.lengths]
    return x.view(texts, count, -1)


def mask(places: Tensor, longest: int, window: int | None) -> Tensor:
    """What each new token may see of its own text.  # [texts, n] -> bool [texts, 1, n, longest]"""
    all_places, own = torch.arange(longest, device=places.device), places[:, None, :, None]
    seen = all_places <= own
    if window is not None:
        seen &= all_places > own - window
    return seen
