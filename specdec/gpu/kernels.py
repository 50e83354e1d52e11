"""`ops.Operations` as Triton kernels: a layer needs four launches beside its four products.

A small model's step takes as long as launching its kernels, so there should be few. A norm has no kernel of its own: a
product reads the residual stream unnormed, and the next kernel applies the norm's factor. Products add to the stream.

Attention is split along the keys (Flash-Decoding): a few new tokens alone would leave most of a GPU idle. Only the
device has the length of the text, so every split computes there which keys are its share.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor, view_as_real

from ..models.transformer import Floor, Layer
from .ops import Operations, Sight

CHUNK = 1024  # how many numbers of a row are squared at once
INNER = 512  # how many outputs of SwiGLU one program computes
TILE = 2**14  # bytes of keys that one program holds at once; as many of values
PROGRAMS = 256  # how many programs of attention fill a large GPU
MAX_SPLITS = 32
MAX_ROWS = {torch.float32: 16, torch.bfloat16: 32}  # queries of one program of attention; more do not fit its registers


@triton.jit
def norm_factor(stream, row, scale, floor, WIDTH: tl.constexpr, CHUNK: tl.constexpr):
    """Return RMSNorm's factor of a row of the residual stream: 1 / sqrt(scale · sum of squares + floor)."""
    i = tl.arange(0, CHUNK)
    squares = tl.zeros((CHUNK,), tl.float32)
    for at in range(0, WIDTH, CHUNK):
        x = tl.load(stream + row * WIDTH + at + i, mask=at + i < WIDTH, other=0.0).to(tl.float32)
        squares += x * x
    return 1.0 / tl.sqrt(scale * tl.sum(squares, 0) + floor)


@triton.jit(do_not_specialize=["capacity"])
def turn_kernel(
    product, stream, bias, head_norm, angles, stored, places, scale, floor, head_scale, head_floor, capacity,
    HEADS: tl.constexpr, KV_HEADS: tl.constexpr, SIZE: tl.constexpr, HALF: tl.constexpr, WIDTH: tl.constexpr,
    CHUNK: tl.constexpr, DIVIDE: tl.constexpr, BIAS: tl.constexpr, NORM: tl.constexpr,
):  # fmt: skip
    """Apply bias, norm and rotation to one head of one token. Keys and values are written to the cache."""
    row, head = tl.program_id(0), tl.program_id(1)
    i = tl.arange(0, HALF)  # indices of pairs, up to a power of two
    real = i < SIZE // 2
    here = product + row * (HEADS + 2 * KV_HEADS) * SIZE + head * SIZE + 2 * i
    a = tl.load(here, mask=real, other=0.0).to(tl.float32)
    b = tl.load(here + 1, mask=real, other=0.0).to(tl.float32)
    if DIVIDE:
        factor = norm_factor(stream, row, scale, floor, WIDTH, CHUNK)
        a *= factor
        b *= factor
    if BIAS:
        a += tl.load(bias + head * SIZE + 2 * i, mask=real, other=0.0).to(tl.float32)
        b += tl.load(bias + head * SIZE + 2 * i + 1, mask=real, other=0.0).to(tl.float32)
    if head < HEADS + KV_HEADS:
        if NORM:
            factor = 1.0 / tl.sqrt(head_scale * tl.sum(a * a + b * b, 0) + head_floor)
            a *= factor * tl.load(head_norm + head * SIZE + 2 * i, mask=real, other=0.0).to(tl.float32)
            b *= factor * tl.load(head_norm + head * SIZE + 2 * i + 1, mask=real, other=0.0).to(tl.float32)
        cos = tl.load(angles + row * SIZE + 2 * i, mask=real, other=0.0)
        sin = tl.load(angles + row * SIZE + 2 * i + 1, mask=real, other=0.0)
        rotated = a * cos - b * sin
        b = a * sin + b * cos
        a = rotated
    if head < HEADS:
        tl.store(here, a.to(product.dtype.element_ty), mask=real)
        tl.store(here + 1, b.to(product.dtype.element_ty), mask=real)
    else:
        place = tl.load(places + row)
        there = stored + ((head - HEADS).to(tl.int64) * capacity + place) * SIZE + 2 * i
        tl.store(there, a.to(stored.dtype.element_ty), mask=real)
        tl.store(there + 1, b.to(stored.dtype.element_ty), mask=real)


@triton.jit(do_not_specialize=["n", "capacity", "window"])
def attend_kernel(
    queries, stored, places, parts, highest, totals, n, stride, capacity, window,
    HEADS: tl.constexpr, KV_HEADS: tl.constexpr, SIZE: tl.constexpr, PADDED: tl.constexpr, SPLITS: tl.constexpr,
    ROWS: tl.constexpr, KEYS: tl.constexpr,
):  # fmt: skip
    """Attend with up to `ROWS` queries to one share of the keys of one head.

    Stores for each query its highest score, the sum of the exponentials relative to it, and the weighted sum of values.
    """
    kv, split = tl.program_id(0), tl.program_id(1)
    group: tl.constexpr = HEADS // KV_HEADS
    m = tl.program_id(2) * ROWS + tl.arange(0, ROWS)
    real, token, head = m < n * group, m // group, kv * group + m % group
    first, end = tl.load(places), tl.load(places + n - 1) + 1
    own = tl.load(places + token, mask=real, other=0)  # the last key that a query sees
    d = tl.arange(0, PADDED)
    query = tl.load(
        queries + (token * stride + head * SIZE)[:, None] + d[None, :],
        mask=real[:, None] & (d < SIZE)[None, :],
        other=0.0,
    )
    start = tl.maximum(first - window + 1, 0)
    share = tl.cdiv(tl.cdiv(end - start, KEYS), SPLITS) * KEYS
    begin = start + split * share
    stop = tl.minimum(begin + share, end)
    high = tl.full((ROWS,), float("-inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    summed = tl.zeros((ROWS, PADDED), tl.float32)
    for at in range(begin, stop, KEYS):
        j = at + tl.arange(0, KEYS)
        spots = (j * SIZE)[:, None] + d[None, :]
        held = (j < stop)[:, None] & (d < SIZE)[None, :]
        keys = tl.load(stored + kv.to(tl.int64) * capacity * SIZE + spots, mask=held, other=0.0)
        values = tl.load(stored + (KV_HEADS + kv).to(tl.int64) * capacity * SIZE + spots, mask=held, other=0.0)
        scores = tl.dot(query, tl.trans(keys), input_precision="ieee")
        seen = (j < stop)[None, :] & (j[None, :] <= own[:, None]) & (j[None, :] > own[:, None] - window)
        scores = tl.where(seen, scores, float("-inf"))
        higher = tl.maximum(high, tl.max(scores, 1))
        finite_high = tl.where(higher == float("-inf"), 0.0, higher)  # a query that has attended to nothing yet
        decay, weights = tl.exp(high - finite_high), tl.exp(scores - finite_high[:, None])
        total = total * decay + tl.sum(weights, 1)
        summed = summed * decay[:, None] + tl.dot(weights.to(values.dtype), values, input_precision="ieee")
        high = higher
    out = (token * HEADS + head) * SPLITS + split
    tl.store(highest + out, high, mask=real)
    tl.store(totals + out, total, mask=real)
    tl.store(parts + (out * SIZE)[:, None] + d[None, :], summed, mask=real[:, None] & (d < SIZE)[None, :])


@triton.jit
def combine_kernel(parts, highest, totals, y, SIZE: tl.constexpr, PADDED: tl.constexpr, SPLITS: tl.constexpr):
    """Combine one query's splits: scale their sums to a common highest score, add them, and divide by the total."""
    row = tl.program_id(0)
    s, d = tl.arange(0, SPLITS), tl.arange(0, PADDED)
    high = tl.load(highest + row * SPLITS + s)
    weights = tl.exp(high - tl.max(high, 0))
    total = tl.sum(weights * tl.load(totals + row * SPLITS + s), 0)
    part = tl.load(parts + ((row * SPLITS + s) * SIZE)[:, None] + d[None, :], mask=(d < SIZE)[None, :], other=0.0)
    summed = tl.sum(weights[:, None] * part, 0) / total
    tl.store(y + row * SIZE + d, summed.to(y.dtype.element_ty), mask=d < SIZE)


@triton.jit
def gate_kernel(
    product, stream, y, scale, floor, INNER: tl.constexpr, BLOCK: tl.constexpr, WIDTH: tl.constexpr,
    CHUNK: tl.constexpr, DIVIDE: tl.constexpr,
):  # fmt: skip
    """Compute a block of one token's SwiGLU."""
    row, i = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    gate = tl.load(product + row * 2 * INNER + i, mask=i < INNER, other=0.0).to(tl.float32)
    up = tl.load(product + row * 2 * INNER + INNER + i, mask=i < INNER, other=0.0).to(tl.float32)
    if DIVIDE:
        factor = norm_factor(stream, row, scale, floor, WIDTH, CHUNK)
        gate *= factor
        up *= factor
    tl.store(y + row * INNER + i, (gate / (1.0 + tl.exp(-gate)) * up).to(y.dtype.element_ty), mask=i < INNER)


class Kernels(Operations):
    """The operations of `ops.Operations` by Triton's kernels."""

    def sight(self, places: Tensor, bucket: int, window: int | None, dtype: torch.dtype) -> Sight:
        return Sight(places, bucket, window)

    def norm(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        return x, x

    def rotate(
        self, product: Tensor, stream: Tensor | None, layer: Layer, angles: Tensor, stored: Tensor, places: Tensor
    ) -> Tensor:
        n, size, every = len(product), self.head_dim, self.heads + 2 * self.kv_heads
        x, bias, norm = stream, layer.qkv_bias, layer.head_norm
        turn_kernel[n, every](
            product, product if x is None else x, product if bias is None else bias,
            product if norm is None else norm, view_as_real(angles), stored, places, *norm_args(self.floor, width(x)),
            *norm_args(self.head_floor, size), stored.shape[1],
            HEADS=self.heads, KV_HEADS=self.kv_heads, SIZE=size, HALF=power(size // 2), WIDTH=width(x), CHUNK=chunk(x),
            DIVIDE=x is not None, BIAS=bias is not None, NORM=norm is not None,
        )  # fmt: skip
        return product.view(n, every, size)[:, : self.heads]

    def attend(self, queries: Tensor, stored: Tensor, sight: Sight) -> Tensor:
        n, heads, size = queries.shape
        capacity, padded, together = stored.shape[1], max(16, power(size)), n * heads // self.kv_heads
        rows = max(16, min(MAX_ROWS[queries.dtype], power(together)))
        tiles = -(-together // rows)
        keys = max(16, min(64, TILE // (padded * queries.itemsize)))
        useful, wanted = sight.bucket // keys, PROGRAMS // (self.kv_heads * tiles)
        splits = min(MAX_SPLITS, power(useful), power(wanted))
        parts = queries.new_empty(n * heads, splits, size, dtype=torch.float32)
        highest, totals = (parts.new_empty(n * heads, splits) for _ in range(2))
        attend_kernel[self.kv_heads, splits, tiles](
            queries, stored, sight.places, parts, highest, totals,
            n, queries.stride(0), capacity, sight.window or capacity + 1,
            HEADS=heads, KV_HEADS=self.kv_heads, SIZE=size, PADDED=padded, SPLITS=splits, ROWS=rows, KEYS=keys,
            num_stages=2,
        )  # fmt: skip
        y = queries.new_empty(n, heads * size)
        combine_kernel[(n * heads,)](parts, highest, totals, y, SIZE=size, PADDED=padded, SPLITS=splits)
        return y

    def gate(self, product: Tensor, stream: Tensor | None) -> Tensor:
        n, inner = len(product), product.shape[1] // 2
        y, block = product.new_empty(n, inner), min(INNER, power(inner))
        gate_kernel[n, -(-inner // block)](
            product, product if stream is None else stream, y,
            *norm_args(self.floor, width(stream)), INNER=inner, BLOCK=block, WIDTH=width(stream), CHUNK=chunk(stream),
            DIVIDE=stream is not None,
        )  # fmt: skip
        return y


def power(count: int) -> int:
    """The smallest power of two that is at least `count`."""
    return 1 << max(0, count - 1).bit_length()


def width(stream: Tensor | None) -> int:
    return 1 if stream is None else stream.shape[1]


def chunk(stream: Tensor | None) -> int:
    return min(CHUNK, power(width(stream)))


def norm_args(floor: Floor, width: int) -> tuple[float, float]:
    """Return the `scale` and `floor` of `norm_factor` for rows of that width."""
    return (1.0 / width, floor) if isinstance(floor, float) else (1.0, float(floor) ** 2)
