"""Run the frozen target over many texts at once, all at the same position; `Transformer` runs one."""

import time
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from ..models.transformer import Transformer

THREADS = torch.get_num_threads()
CLEARLY = 0.8  # all threads compute if they need less than this share of one thread's time


def choose_threads() -> None:
    """Compute with one thread where that is faster: a product waits for its slowest thread."""
    x, matrix, seconds = torch.ones(64, 512), torch.ones(512, 512), dict.fromkeys((1, THREADS), 0.0)
    for count in (1, THREADS) * 5:  # in turn, as a short moment may be quiet
        torch.set_num_threads(count)
        start = time.perf_counter()
        for _ in range(30):
            x @ matrix
        seconds[count] += time.perf_counter() - start
    torch.set_num_threads(THREADS if seconds[THREADS] < CLEARLY * seconds[1] else 1)


def new_cache(target: Transformer, rows: int, capacity: int) -> Tensor:
    """Allocate a cache.  # [layers, keys and values, rows, kv_heads, capacity, head_dim]"""
    shape = (len(target.layers), 2, rows, target.kv_heads, capacity, target.head_dim)
    return torch.empty(shape, dtype=target.dtype, device=target.device)


@torch.no_grad()
def hidden_states(
    target: Transformer, tokens: Tensor, taps: Sequence[int] = (), cache: Tensor | None = None, start: int = 0
) -> tuple[Tensor, list[Tensor]]:
    """Return the states after the last layer, and the inputs of the layers `taps`.

    A given `cache` holds `start` tokens and is extended.
    # [rows, n] -> [rows, n, width], len(taps) × [rows, n, width]
    """
    rows, count = tokens.shape
    end = start + count
    if end > target.context:
        raise ValueError(f"a text of {end} tokens exceeds the target's context of {target.context} tokens")
    angles = target.angles[start:end].repeat(rows, 1)
    masks = {layer.window: attention_mask(start, end, layer.window, tokens.device) for layer in target.layers}
    x = F.embedding(tokens.flatten(), target.embedding)
    inputs = {}
    for i, layer in enumerate(target.layers):
        if i in taps:
            inputs[i] = x.view(rows, count, -1).clone()
        qkv = target.project_qkv(target.rms_normalise(x), layer, angles)
        qkv = qkv.unflatten(1, (rows, count)).transpose(0, 1)  # [rows, heads, n, head_dim]
        queries, keys, values = qkv.split((target.heads, target.kv_heads, target.kv_heads), 1)
        if cache is not None:
            cache[i, 0, :, :, start:end], cache[i, 1, :, :, start:end] = keys, values
            keys, values = cache[i, :, :, :, :end]
        mask = masks[layer.window]
        causal, grouped = mask is None and count > 1, target.heads != target.kv_heads
        # The queries already include the scale.
        y = F.scaled_dot_product_attention(queries, keys, values, mask, 0.0, causal, scale=1.0, enable_gqa=grouped)
        x = target.attention_out_and_mlp(x, y.transpose(0, 1).flatten(1, 2), layer)
    states = x.view(rows, count, -1)
    inputs[target.depth] = states
    return states, [inputs[tap] for tap in taps]


def attention_mask(start: int, end: int, window: int | None, device: torch.device) -> Tensor | None:
    """Return where a token may attend; None if `is_causal` is enough.  # bool [end - start, end]"""
    if (window is None or end <= window) and not (start and end - start > 1):
        return None
    distance = torch.arange(start, end, device=device)[:, None] - torch.arange(end, device=device)
    visible = distance >= 0
    return visible if window is None else visible & (distance < window)
