"""Compute in torch what a layer does between its matrix products. `kernels.py` must give the same results.

RMSNorm's weights are part of the matrices, so a norm is one factor for each row. `norm` applies it before the product;
in `kernels.py` it returns the residual `stream`; `rotate` and `gate` apply the factor after it (here for `trial.py`).
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from ..models.folding import Layer, RMSNorm
from ..models.transformer import apply_rope, Transformer


@dataclass(frozen=True)
class Sight:
    """Says what new tokens at `places` [n] attend to: every position up to their own, or the last `window`."""

    places: Tensor
    bucket: int  # attention reads the cached positions below this one
    window: int | None
    mask: Tensor | None = None  # [n, bucket], -inf where a token may not attend; None if the kernel computes it


@dataclass(frozen=True)
class Operations:
    """Computes the operations in torch."""

    heads: int
    kv_heads: int
    head_dim: int
    rms_normalise: RMSNorm
    head_normalise: RMSNorm
    reason: str = ""  # why the Triton kernels are not used

    @classmethod
    def for_model(cls, model: Transformer, reason: str = "") -> "Operations":
        return cls(model.heads, model.kv_heads, model.head_dim, model.rms_normalise, model.head_normalise, reason)

    def sight(self, places: Tensor, bucket: int, window: int | None, dtype: torch.dtype) -> Sight:
        keys, rows = torch.arange(bucket, device=places.device), places[:, None]
        masked = keys > rows
        if window is not None:
            masked |= keys <= rows - window
        mask = torch.zeros(masked.shape, dtype=dtype, device=places.device).masked_fill_(masked, float("-inf"))
        return Sight(places, bucket, window, mask)

    def norm(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """Normalise the residual stream `x` [n, hidden]. The second value, the `stream` of `rotate`, is None here."""
        return self.rms_normalise(x), None

    def rotate(
        self, product: Tensor, stream: Tensor | None, layer: Layer, angles: Tensor, kv_cache: Tensor, places: Tensor
    ) -> Tensor:
        """Apply bias, QK-norm and rotary positions to heads; write keys and values to `places` [n] of `kv_cache`.

        `product` [n, (heads + 2 kv_heads) · head_dim] is overwritten, `kv_cache` of one layer is [2 kv_heads,
        capacity, head_dim], `angles` [n, head_dim / 2] are complex. Returns queries [n, heads, head_dim].
        """
        if stream is not None:
            product.mul_(self._factor(stream))
        if layer.qkv_bias is not None:
            product.add_(layer.qkv_bias)
        all_heads, rotated_count = product.view(len(product), -1, self.head_dim), self.heads + self.kv_heads
        destination = rotated = all_heads[:, :rotated_count]
        if layer.head_norm is not None:  # norming V as well saves a kernel; normed V is dropped
            rotated = self.head_normalise(all_heads)[:, :rotated_count] * layer.head_norm.transpose(0, 1)
        rotated = rotated.float()
        apply_rope(rotated.transpose(0, 1), angles)
        if rotated is not destination:
            destination.copy_(rotated)
        kv_cache.index_copy_(1, places, all_heads[:, self.heads :].transpose(0, 1))
        return all_heads[:, : self.heads]

    def attend(self, queries: Tensor, kv_cache: Tensor, sight: Sight) -> Tensor:
        """Attend to a layer's cache, in one product for all queries of a KV head.  # [n, heads · head_dim]"""
        assert sight.mask is not None
        n, bucket, kv_heads = len(queries), sight.bucket, self.kv_heads
        keys, values = kv_cache[:kv_heads, :bucket], kv_cache[kv_heads:, :bucket]
        rows = queries.transpose(0, 1).reshape(kv_heads, -1, self.head_dim)  # [kv_heads, group · n, head_dim]
        scores = torch.bmm(rows, keys.transpose(1, 2)).view(kv_heads, -1, n, bucket).add_(sight.mask)
        y = torch.bmm(scores.softmax(-1).view(kv_heads, -1, bucket), values)
        return y.view(self.heads, n, -1).transpose(0, 1).reshape(n, -1)

    def gate(self, product: Tensor, stream: Tensor | None) -> Tensor:
        """Apply SwiGLU: silu of the first half times the second.  # [n, 2 · inner] -> [n, inner]"""
        if stream is not None:
            product.mul_(self._factor(stream))
        gate, up = product.chunk(2, -1)
        return F.silu(gate).mul_(up)

    def _factor(self, stream: Tensor) -> Tensor:
        """Return the factor by which `rms_normalise` multiplies rows.  # [n, hidden] -> float32 [n, 1]"""
        scale, floor = self.rms_normalise.scale_and_floor()
        return (scale * stream.float().square().sum(-1, keepdim=True) + floor).rsqrt()
