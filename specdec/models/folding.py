"""Fold a checkpoint's weights, so that the forward in `transformer.py` needs few operations. Its logits stay the same.

A norm's weights are multiplied into the matrix that reads its output, on a CPU together with the √width that
`RMSNorm` leaves out. Attention's factor 1 / √head_dim is multiplied into the query weights, or into QK-norm's.
Query, key and value become one matrix, gate and up another. The two entries of a rotary pair become neighbours. On a
CPU, zeros pad a number of outputs to a multiple of `native.BLOCK`. `matrix.py` then stores each matrix.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import hypot, Tensor
from torch.linalg import vector_norm

from .config import Config
from .gguf import Stored
from .grouped import GGUF, Grouped, rearrange
from .matrix import Matrix, pack_weight
from .native import BLOCK, NativeLayers

EMBEDDING = "model.embed_tokens.weight"
NORM = "model.norm.weight"
HEAD = "lm_head.weight"


@dataclass(slots=True)
class Layer:
    """The folded weights of one decoder layer."""

    qkv: Matrix  # [hidden, (heads + 2 kv_heads) · head_dim]
    qkv_bias: Tensor | None
    out: Matrix  # attention's output projection
    out_bias: Tensor | None
    head_norm: Tensor | None  # [heads + kv_heads, 1, head_dim]: the weights of QK-norm
    gate_up: Matrix
    down: Matrix
    window: int | None  # how many positions a token attends to, its own included; None: no limit


@dataclass(frozen=True)
class RMSNorm:
    """Applies RMSNorm without its weights: divides each row x by √(mean(x²) + eps), for which a GPU has one kernel.

    With `by_length`, which is faster on a CPU, it divides by √(|x|² + width · eps), so the factor √width is missing.
    """

    width: int
    eps: float
    by_length: bool

    @cached_property
    def floor(self) -> Tensor:
        return torch.tensor((self.width * self.eps) ** 0.5)

    def __call__(self, x: Tensor) -> Tensor:
        if not self.by_length:
            return F.rms_norm(x, x.shape[-1:], None, self.eps)
        if x.dtype == self.floor.dtype:
            return x / hypot(vector_norm(x, dim=-1, keepdim=True), self.floor)
        return x / hypot(vector_norm(x, dim=-1, keepdim=True, dtype=self.floor.dtype), self.floor).to(x.dtype)

    def scale_and_floor(self) -> tuple[float, float]:
        """Return a and b such that rows are multiplied by 1 / √(a · sum(x²) + b)."""
        return (1.0, self.width * self.eps) if self.by_length else (1.0 / self.width, self.eps)


class Folding:
    """Folds the weights of one model, or of a drafter's head around it. Matrices are rounded to `stored`."""

    def __init__(self, config: Config, dtype: torch.dtype, device: str, stored: torch.dtype) -> None:
        self.config, self.dtype, self.device, self.stored = config, dtype, device, stored
        self.heads, self.kv_heads = config.num_attention_heads, config.num_key_value_heads
        self.width, self.head_dim = config.hidden_size, config.head_dim
        self.on_cpu = torch.device(device).type == "cpu"

    def rms_norm(self, width: int) -> RMSNorm:
        return RMSNorm(width, self.config.rms_norm_eps, by_length=self.on_cpu)

    def unit(self, width: int) -> float:
        """Return the factor for a norm's weights: √width on a CPU, where `RMSNorm` leaves it out."""
        return width**0.5 if self.on_cpu else 1.0

    def norm(self, weights: Tensor) -> Tensor:
        """Convert the weights of a norm that are not in a matrix.  # [hidden]"""
        return (weights.float() * self.unit(len(weights))).to(self.device, self.dtype)

    def divisor(self, norm: Tensor) -> Tensor:
        """Return the divisor of states that include the final norm's weights, because the output matrix does, too."""
        return norm.masked_fill(norm == 0, 1.0)

    def matrix(self, matrix: Tensor | Grouped, before: Tensor | None = None, after: Tensor | None = None) -> Matrix:
        """Convert a matrix [out, in]. See `pack_weight` for `before` and `after`."""
        return pack_weight(matrix, self.dtype, self.device, self.stored, before, after)

    def embedding_and_head(self, weights: Mapping[str, Tensor]) -> tuple[Tensor, Matrix, int]:
        """Return the embedding, the output matrix with the final norm's weights in it, and its number of outputs.

        The float32 copies of both end here: beside them, an 8B model would not fit into 24 GB.
        """
        embedding, norm = self._take(weights, EMBEDDING), self._take(weights, NORM)
        tied = self.config.tie_word_embeddings and HEAD not in weights
        head = embedding if tied and self.stored is not GGUF else self._matrix(weights, EMBEDDING if tied else HEAD)
        return embedding.to(self.dtype), self._after_norm(rearrange(self._pad_outputs, head), norm), len(head)

    def layer(self, weights: Mapping[str, Tensor], i: int) -> Layer:
        """Fold the weights of layer i."""
        prefix, scale = f"model.layers.{i}.", self.head_dim**-0.5

        def take(name: str) -> Tensor:
            return self._take(weights, prefix + name)

        def matrix(name: str) -> Tensor | Grouped:
            return self._matrix(weights, f"{prefix}{name}_proj.weight")

        scales = head_norm = qkv_bias = out_bias = None
        if f"{prefix}self_attn.q_norm.weight" in weights:
            q_norm, k_norm = (self._pair(take(f"self_attn.{part}_norm.weight")) for part in "qk")
            head_norm = torch.stack([q_norm * scale] * self.heads + [k_norm] * self.kv_heads)[:, None]
            head_norm = (head_norm * self.unit(self.head_dim)).to(self.dtype)
        else:
            factors = torch.tensor([scale] * self.heads + [1.0] * (2 * self.kv_heads), device=self.device)
            scales = factors.repeat_interleave(self.head_dim)
        if f"{prefix}self_attn.q_proj.bias" in weights:
            qkv_bias = self._join_heads(*(take(f"self_attn.{part}_proj.bias") for part in "qkv"))
            qkv_bias = (qkv_bias if scales is None else qkv_bias * scales).to(self.dtype)
        if f"{prefix}self_attn.o_proj.bias" in weights:
            out_bias = take("self_attn.o_proj.bias").to(self.dtype)
        qkv = rearrange(self._join_heads, *(matrix(f"self_attn.{part}") for part in "qkv"))
        halves = matrix("mlp.gate"), matrix("mlp.up")
        gate_up = rearrange(lambda *parts: torch.cat([*map(self._pad_outputs, parts)]), *halves)
        return Layer(
            qkv=self._after_norm(qkv, take("input_layernorm.weight"), scales),
            qkv_bias=qkv_bias,
            out=self.matrix(matrix("self_attn.o")),
            out_bias=out_bias,
            head_norm=head_norm,
            gate_up=self._after_norm(gate_up, take("post_attention_layernorm.weight")),
            down=self.matrix(rearrange(self._pad_inputs, matrix("mlp.down"))),
            window=self.config.windows.get(i),
        )

    def keys_and_values(self, weights: Mapping[str, Tensor], i: int, norm: Tensor) -> Matrix:
        """Fold the matrices of layer i for keys and values that read the output of another norm, `norm`.  # [hidden]"""
        keys, values = (weights[f"model.layers.{i}.self_attn.{part}_proj.weight"].float() for part in "kv")
        return self._after_norm(torch.cat((self._pair(keys), values)), norm)

    def native(self, layers: Sequence[Layer]) -> NativeLayers | None:
        """Return the layers in C++, or None if `native.cpp` cannot run them."""
        unsupported = (part for layer in layers for part in (layer.head_norm, layer.out_bias, layer.window))
        if not self.on_cpu or any(part is not None for part in unsupported):
            return None
        matrices = [(layer.qkv, layer.out, layer.gate_up, layer.down) for layer in layers]
        biases, floor = [layer.qkv_bias for layer in layers], float(self.rms_norm(self.width).floor)
        return NativeLayers.build(matrices, biases, self.heads, self.kv_heads, self.head_dim, floor)

    def _take(self, weights: Mapping[str, Tensor], name: str) -> Tensor:
        return weights[name].to(device=self.device, dtype=torch.float32)

    def _matrix(self, weights: Mapping[str, Tensor], name: str) -> Tensor | Grouped:
        if self.stored is not GGUF:
            return self._take(weights, name)
        if not isinstance(weights, Stored):
            raise ValueError("only a GGUF file has codes to keep; choose int8, or name a GGUF file")
        return weights.codes(name)

    def _after_norm(self, matrix: Tensor | Grouped, norm: Tensor, after: Tensor | None = None) -> Matrix:
        """Convert a matrix [out, in] that reads the output of `RMSNorm`. Include the norm's weights `norm`."""
        return self.matrix(matrix, norm * self.unit(self.width), after)

    def _pair(self, x: Tensor) -> Tensor:
        """Reorder each head's entries. The Hub pairs entry i with i + head_dim / 2, `apply_rope` pairs neighbours."""
        pairs: Tensor = x.unflatten(0, (-1, 2, self.head_dim // 2))
        return pairs.transpose(1, 2).reshape(x.shape)

    def _join_heads(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return torch.cat((self._pair(q), self._pair(k), v))

    def _pad_outputs(self, rows: Tensor) -> Tensor:
        return F.pad(rows, (0, 0, 0, -len(rows) % BLOCK if self.on_cpu else 0))

    def _pad_inputs(self, rows: Tensor) -> Tensor:  # nothing is added to groups: 32 divides their number of inputs
        return F.pad(rows, (0, -self.config.intermediate_size % BLOCK if self.on_cpu else 0))
