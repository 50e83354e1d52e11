"""Implement `ops.Operations` as Triton kernels: a layer needs four launches besides its four matrix products.

RMSNorm has no kernel of its own: its factor scales a whole row, so the kernel after the next matrix product applies it.
Attention is split along the keys (Flash-Decoding), since a few queries would leave most of a GPU idle. A captured graph
serves texts of many lengths, so each split computes which keys it reads.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor, view_as_real

from ..models.folding import Layer
from .ops import Operations, Sight

CHUNK = 1024  # `norm_factor` loads at most this many numbers of a row at a time
MAX_BLOCK = 512  # the largest number of SwiGLU outputs that one program computes
TILE = 2**14  # an attention program loads at most about this many bytes of keys at a time
PROGRAMS = 256  # number of attention programs that fill a large GPU
MAX_SPLITS = 32  # of the keys of a KV head
MAX_ROWS = {torch.float32: 16, torch.bfloat16: 32}  # queries of an attention program; more do not fit its registers


@triton.jit
def norm_factor(stream, row, scale, floor, WIDTH: tl.constexpr, CHUNK: tl.constexpr):
    """Return RMSNorm's factor for a row of the residual stream: 1 / sqrt(scale · sum of squares + floor)."""
    i = tl.arange(0, CHUNK)
    squares = tl.zeros((CHUNK,), tl.float32)
    for at in range(0, WIDTH, CHUNK):
        x = tl.load(stream + row * WIDTH + at + i, mask=at + i < WIDTH, other=0.0).to(tl.float32)
        squares += x * x
    return 1.0 / tl.sqrt(scale * tl.sum(squares, 0) + floor)


@triton.jit(do_not_specialize=["capacity"])
def rotate_kernel(
    product, stream, bias, head_norm, angles, kv_cache, places, scale, floor, head_scale, head_floor, capacity,
    HEADS: tl.constexpr, KV_HEADS: tl.constexpr, SIZE: tl.constexpr, HALF: tl.constexpr, WIDTH: tl.constexpr,
    CHUNK: tl.constexpr, NORMALISE: tl.constexpr, BIAS: tl.constexpr, HEAD_NORM: tl.constexpr,
):  # fmt: skip
    """Apply RMSNorm's factor, bias, QK-norm and rotary embeddings to a token's head. Cache keys and values."""
    row, head = tl.program_id(0), tl.program_id(1)
    i = tl.arange(0, HALF)  # pairs of neighbouring entries, padded to a power of two
    valid = i < SIZE // 2
    source = product + row * (HEADS + 2 * KV_HEADS) * SIZE + head * SIZE + 2 * i
    a = tl.load(source, mask=valid, other=0.0).to(tl.float32)
    b = tl.load(source + 1, mask=valid, other=0.0).to(tl.float32)
    if NORMALISE:
        factor = norm_factor(stream, row, scale, floor, WIDTH, CHUNK)
        a *= factor
        b *= factor
    if BIAS:
        a += tl.load(bias + head * SIZE + 2 * i, mask=valid, other=0.0).to(tl.float32)
        b += tl.load(bias + head * SIZE + 2 * i + 1, mask=valid, other=0.0).to(tl.float32)
    if head < HEADS + KV_HEADS:
        if HEAD_NORM:
            factor = 1.0 / tl.sqrt(head_scale * tl.sum(a * a + b * b, 0) + head_floor)
            a *= factor * tl.load(head_norm + head * SIZE + 2 * i, mask=valid, other=0.0).to(tl.float32)
            b *= factor * tl.load(head_norm + head * SIZE + 2 * i + 1, mask=valid, other=0.0).to(tl.float32)
        cos = tl.load(angles + row * SIZE + 2 * i, mask=valid, other=0.0)
        sin = tl.load(angles + row * SIZE + 2 * i + 1, mask=valid, other=0.0)
        rotated = a * cos - b * sin
        b = a * sin + b * cos
        a = rotated
    if head < HEADS:
        tl.store(source, a.to(product.dtype.element_ty), mask=valid)
        tl.store(source + 1, b.to(product.dtype.element_ty), mask=valid)
    else:
        place = tl.load(places + row)
        destination = kv_cache + ((head - HEADS).to(tl.int64) * capacity + place) * SIZE + 2 * i
        tl.store(destination, a.to(kv_cache.dtype.element_ty), mask=valid)
        tl.store(destination + 1, b.to(kv_cache.dtype.element_ty), mask=valid)


@triton.jit(do_not_specialize=["n", "capacity", "window"])
def attend_kernel(
    queries, kv_cache, places, value_sums, highest, totals, n, stride, capacity, window,
    HEADS: tl.constexpr, KV_HEADS: tl.constexpr, SIZE: tl.constexpr, PADDED: tl.constexpr, SPLITS: tl.constexpr,
    ROWS: tl.constexpr, KEYS: tl.constexpr,
):  # fmt: skip
    """Compute attention of up to `ROWS` queries over one split of one KV head's keys.

    For each query, store the highest score, the sum of exp(score - highest), and the sum of values with these weights.
    """
    kv, split = tl.program_id(0), tl.program_id(1)
    group: tl.constexpr = HEADS // KV_HEADS  # query heads that share this KV head
    m = tl.program_id(2) * ROWS + tl.arange(0, ROWS)  # queries, ordered by token, then by head
    valid, token, head = m < n * group, m // group, kv * group + m % group
    first, end = tl.load(places), tl.load(places + n - 1) + 1
    last_key = tl.load(places + token, mask=valid, other=0)  # the last key that a query sees
    d = tl.arange(0, PADDED)
    query = tl.load(
        queries + (token * stride + head * SIZE)[:, None] + d[None, :],
        mask=valid[:, None] & (d < SIZE)[None, :],
        other=0.0,
    )
    start = tl.maximum(first - window + 1, 0)
    keys_per_split = tl.cdiv(tl.cdiv(end - start, KEYS), SPLITS) * KEYS
    begin = start + split * keys_per_split
    stop = tl.minimum(begin + keys_per_split, end)
    high = tl.full((ROWS,), float("-inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    summed = tl.zeros((ROWS, PADDED), tl.float32)
    for at in range(begin, stop, KEYS):
        j = at + tl.arange(0, KEYS)
        offsets = (j * SIZE)[:, None] + d[None, :]
        loaded = (j < stop)[:, None] & (d < SIZE)[None, :]
        keys = tl.load(kv_cache + kv.to(tl.int64) * capacity * SIZE + offsets, mask=loaded, other=0.0)
        values = tl.load(kv_cache + (KV_HEADS + kv).to(tl.int64) * capacity * SIZE + offsets, mask=loaded, other=0.0)
        scores = tl.dot(query, tl.trans(keys), input_precision="ieee")
        visible = (j < stop)[None, :] & (j[None, :] <= last_key[:, None]) & (j[None, :] > last_key[:, None] - window)
        scores = tl.where(visible, scores, float("-inf"))
        higher = tl.maximum(high, tl.max(scores, 1))
        finite_high = tl.where(higher == float("-inf"), 0.0, higher)  # until a key is visible, -inf - -inf would be NaN
        decay, weights = tl.exp(high - finite_high), tl.exp(scores - finite_high[:, None])
        total = total * decay + tl.sum(weights, 1)
        summed = summed * decay[:, None] + tl.dot(weights.to(values.dtype), values, input_precision="ieee")
        high = higher
    out = (token * HEADS + head) * SPLITS + split
    tl.store(highest + out, high, mask=valid)
    tl.store(totals + out, total, mask=valid)
    tl.store(value_sums + (out * SIZE)[:, None] + d[None, :], summed, mask=valid[:, None] & (d < SIZE)[None, :])


@triton.jit
def combine_kernel(value_sums, highest, totals, y, SIZE: tl.constexpr, PADDED: tl.constexpr, SPLITS: tl.constexpr):
    """Combine the results of one query's splits."""
    row = tl.program_id(0)
    s, d = tl.arange(0, SPLITS), tl.arange(0, PADDED)
    high = tl.load(highest + row * SPLITS + s)
    weights = tl.exp(high - tl.max(high, 0))
    total = tl.sum(weights * tl.load(totals + row * SPLITS + s), 0)
    sums = tl.load(value_sums + ((row * SPLITS + s) * SIZE)[:, None] + d[None, :], mask=(d < SIZE)[None, :], other=0.0)
    summed = tl.sum(weights[:, None] * sums, 0) / total
    tl.store(y + row * SIZE + d, summed.to(y.dtype.element_ty), mask=d < SIZE)


@triton.jit
def gate_kernel(
    product, stream, y, scale, floor, INNER: tl.constexpr, BLOCK: tl.constexpr, WIDTH: tl.constexpr,
    CHUNK: tl.constexpr, NORMALISE: tl.constexpr,
):  # fmt: skip
    """Compute `BLOCK` outputs of SwiGLU for one token: silu(gate) · up."""
    row, i = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    gate = tl.load(product + row * 2 * INNER + i, mask=i < INNER, other=0.0).to(tl.float32)
    up = tl.load(product + row * 2 * INNER + INNER + i, mask=i < INNER, other=0.0).to(tl.float32)
    if NORMALISE:
        factor = norm_factor(stream, row, scale, floor, WIDTH, CHUNK)
        gate *= factor
        up *= factor
    tl.store(y + row * INNER + i, (gate / (1.0 + tl.exp(-gate)) * up).to(y.dtype.element_ty), mask=i < INNER)


class Kernels(Operations):
    """Implements `ops.Operations` with the kernels above."""

    def sight(self, places: Tensor, bucket: int, window: int | None, dtype: torch.dtype) -> Sight:
        return Sight(places, bucket, window)

    def norm(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        return x, x

    def rotate(
        self, product: Tensor, stream: Tensor | None, layer: Layer, angles: Tensor, kv_cache: Tensor, places: Tensor
    ) -> Tensor:
        n, size, all_heads = len(product), self.head_dim, self.heads + 2 * self.kv_heads
        x, bias, norm = stream, layer.qkv_bias, layer.head_norm
        rotate_kernel[n, all_heads](
            product, product if x is None else x, product if bias is None else bias,
            product if norm is None else norm, view_as_real(angles), kv_cache, places,
            *self.rms_normalise.scale_and_floor(), *self.head_normalise.scale_and_floor(), kv_cache.shape[1],
            HEADS=self.heads, KV_HEADS=self.kv_heads, SIZE=size, HALF=power_of_two(size // 2), WIDTH=width(x),
            CHUNK=chunk(x), NORMALISE=x is not None, BIAS=bias is not None, HEAD_NORM=norm is not None,
        )  # fmt: skip
        return product.view(n, all_heads, size)[:, : self.heads]

    def attend(self, queries: Tensor, kv_cache: Tensor, sight: Sight) -> Tensor:
        n, heads, size = queries.shape
        capacity, padded, queries_per_kv = kv_cache.shape[1], max(16, power_of_two(size)), n * heads // self.kv_heads
        rows = max(16, min(MAX_ROWS[queries.dtype], power_of_two(queries_per_kv)))
        tiles = -(-queries_per_kv // rows)
        keys = max(16, min(64, TILE // (padded * queries.itemsize)))
        splits_of_bucket, splits_to_fill_gpu = sight.bucket // keys, PROGRAMS // (self.kv_heads * tiles)
        splits = min(MAX_SPLITS, power_of_two(splits_of_bucket), power_of_two(splits_to_fill_gpu))
        value_sums = queries.new_empty(n * heads, splits, size, dtype=torch.float32)
        highest, totals = (value_sums.new_empty(n * heads, splits) for _ in range(2))
        attend_kernel[self.kv_heads, splits, tiles](
            queries, kv_cache, sight.places, value_sums, highest, totals,
            n, queries.stride(0), capacity, sight.window or capacity + 1,
            HEADS=heads, KV_HEADS=self.kv_heads, SIZE=size, PADDED=padded, SPLITS=splits, ROWS=rows, KEYS=keys,
            num_stages=2,
        )  # fmt: skip
        y = queries.new_empty(n, heads * size)
        combine_kernel[(n * heads,)](value_sums, highest, totals, y, SIZE=size, PADDED=padded, SPLITS=splits)
        return y

    def gate(self, product: Tensor, stream: Tensor | None) -> Tensor:
        n, inner = len(product), product.shape[1] // 2
        y, block = product.new_empty(n, inner), min(MAX_BLOCK, power_of_two(inner))
        gate_kernel[n, -(-inner // block)](
            product, product if stream is None else stream, y,
            *self.rms_normalise.scale_and_floor(), INNER=inner, BLOCK=block, WIDTH=width(stream), CHUNK=chunk(stream),
            NORMALISE=stream is not None,
        )  # fmt: skip
        return y


def power_of_two(count: int) -> int:
    """Return the smallest power of two that is at least `count`."""
    return 1 << max(0, count - 1).bit_length()


def width(stream: Tensor | None) -> int:
    return 1 if stream is None else stream.shape[1]


def chunk(stream: Tensor | None) -> int:
    return min(CHUNK, power_of_two(width(stream)))
