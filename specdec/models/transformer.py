"""Our own lean decoder for the Llama family as published on the Hub.

Llama 2 and 3, Mistral, Qwen2, Qwen2.5, Qwen3, SmolLM2 and 3, TinyLlama: RMSNorm, rotary positions with their
scalings, grouped heads, SwiGLU, optional QK-norm and biases, tied embeddings. It reads the Hub's files
(config.json, safetensors), keeps a static cache, and runs one sequence at a time. It does not train, batch or
generate. Its logits are tested against transformers for every family.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from .cache import StaticCache
from .config import Config

Weights = dict[str, Tensor]


@dataclass(slots=True)
class Layer:
    """The weights of one block; query, key and value are one matrix, gate and up another."""

    attention_norm: Tensor
    qkv: Tensor
    qkv_bias: Tensor | None
    out: Tensor
    out_bias: Tensor | None
    head_norm: Tensor | None  # [heads + kv_heads, 1 or head_dim]: QK-norm
    mlp_norm: Tensor
    gate_up: Tensor
    down: Tensor
    rotary: bool
    window: int | None


class Transformer:
    """A decoder-only model over plain tensors. Implements `models.base.LanguageModel`."""

    def __init__(self, config: Config, weights: Weights, dtype: torch.dtype, device: str = "cpu") -> None:
        self.config, self.dtype, self.device = config, dtype, device
        self.vocabulary: int = config.vocab_size
        self.context: int = config.max_position_embeddings
        self.heads: int = config.num_attention_heads
        self.kv_heads: int = config.num_key_value_heads
        self.head_dim: int = config.head_dim
        self.eps: float = config.rms_norm_eps
        # A lone row takes another matrix kernel than several rows, and rounds differently in low precision.
        # Where rows are nearly free, plain decoding computes two, so that greedy texts agree bit by bit.
        self.pad_single_rows = dtype != torch.float32 and device == "cpu"

        def take(name: str) -> Tensor:
            if name not in weights:
                raise ValueError(f"the checkpoint lacks {name}")
            return weights[name].to(device=device, dtype=dtype)

        self.embedding = take("model.embed_tokens.weight")
        tied = config.tie_word_embeddings or "lm_head.weight" not in weights
        self.head = self.embedding if tied else take("lm_head.weight")
        self.final_norm = take("model.norm.weight")
        self.layers = [self._layer(i, weights, take) for i in range(config.num_hidden_layers)]
        self._cos, self._sin = rotary_tables(config, dtype, device)
        self._masks: dict[int | None, Tensor] = {}

    @property
    def parameters(self) -> int:
        tensors = [self.embedding, self.final_norm] + ([] if self.head is self.embedding else [self.head])
        for layer in self.layers:
            tensors += [getattr(layer, name) for name in layer.__dataclass_fields__ if name != "head_norm"]
            if layer.head_norm is not None:
                tensors += [layer.head_norm[0], layer.head_norm[-1]]
        return sum(t.numel() for t in tensors if isinstance(t, Tensor))

    def _layer(self, i: int, weights: Weights, take: Callable[[str], Tensor]) -> Layer:
        name, config = f"model.layers.{i}.", self.config

        def bias(*parts: str) -> Tensor | None:
            present = [f"{name}self_attn.{part}.bias" in weights for part in parts]
            if not any(present):
                return None
            return torch.cat([take(f"{name}self_attn.{part}.bias") for part in parts])

        head_norm = None
        if f"{name}self_attn.q_norm.weight" in weights:
            q, k = take(f"{name}self_attn.q_norm.weight"), take(f"{name}self_attn.k_norm.weight")
            head_norm = torch.stack([q] * self.heads + [k] * self.kv_heads)
        return Layer(
            attention_norm=take(name + "input_layernorm.weight"),
            qkv=torch.cat([take(f"{name}self_attn.{part}_proj.weight") for part in "qkv"]),
            qkv_bias=bias("q_proj", "k_proj", "v_proj"),
            out=take(name + "self_attn.o_proj.weight"),
            out_bias=bias("o_proj"),
            head_norm=head_norm,
            mlp_norm=take(name + "post_attention_layernorm.weight"),
            gate_up=torch.cat([take(name + "mlp.gate_proj.weight"), take(name + "mlp.up_proj.weight")]),
            down=take(name + "mlp.down_proj.weight"),
            rotary=i not in config.layers_without_rotary,
            window=config.windows.get(i),
        )

    @classmethod
    def load(cls, folder: str | Path, dtype: torch.dtype | None = None, device: str = "cpu") -> Transformer:
        """Read a checkpoint folder in the Hub's layout (config.json, *.safetensors, sharded or not)."""
        from safetensors.torch import load_file

        folder = Path(folder)
        config = Config.load(folder)
        shards = sorted(folder.glob("*.safetensors"))
        if not shards:
            raise ValueError(f"{folder} holds no .safetensors file")
        weights: Weights = {}
        for shard in shards:
            weights.update(load_file(shard))
        return cls(config, weights, dtype or weights["model.norm.weight"].dtype, device)

    def new_cache(self, capacity: int) -> StaticCache:
        layers = len(self.layers)
        return StaticCache(layers, self.kv_heads, min(capacity, self.context), self.head_dim, self.dtype, self.device)

    @torch.inference_mode()
    def forward(
        self, tokens: Sequence[int], cache: StaticCache, parents: Sequence[int] = (), rows: int = 1
    ) -> Tensor:
        """Append `tokens` to the cache; logits of the last `rows` of them.  # [rows, V]"""
        count = len(tokens)
        if cache.length + count > cache.capacity:
            raise ValueError(f"{cache.length + count} tokens do not fit a cache of {cache.capacity}")
        padded = [*tokens, tokens[-1]] if count == 1 and self.pad_single_rows else list(tokens)
        if cache.length + len(padded) > cache.capacity:
            padded = list(tokens)
        x = F.embedding(torch.tensor(padded, device=self.device), self.embedding)
        depths = tree_depths(len(padded), parents) if parents else None
        cos, sin = self._rotary(cache.length, len(padded), depths)
        for index, layer in enumerate(self.layers):
            mask = self._mask(layer.window, cache.length, len(padded), parents)
            x = self._block(x, index, layer, cache, cos, sin, mask)
        cache.length += count
        x = F.rms_norm(x[count - rows : count], (x.shape[-1],), self.final_norm, self.eps)
        if rows == 1 and self.pad_single_rows:  # the output matrix, too, wants two rows
            return F.linear(x.expand(2, -1), self.head)[:1]
        return F.linear(x, self.head)

    def _block(
        self, x: Tensor, index: int, layer: Layer, cache: StaticCache, cos: Tensor, sin: Tensor, mask: Tensor
    ) -> Tensor:  # x: [n, hidden]
        n, hidden = x.shape
        h = F.rms_norm(x, (hidden,), layer.attention_norm, self.eps)
        qkv = F.linear(h, layer.qkv, layer.qkv_bias).view(n, -1, self.head_dim).transpose(0, 1)
        turned = qkv[: self.heads + self.kv_heads]  # queries and keys: [heads + kv_heads, n, head_dim]
        if layer.head_norm is not None:
            turned = F.rms_norm(turned, (self.head_dim,), None, self.eps) * layer.head_norm[:, None]
        if layer.rotary:
            half = self.head_dim // 2
            swapped = torch.cat((turned[..., half:], turned[..., :half]), -1)
            turned = torch.addcmul(turned * cos, swapped, sin)
        start, end = cache.length, cache.length + n
        stored = cache.layers[index]
        stored[0, :, start:end] = turned[self.heads :]
        stored[1, :, start:end] = qkv[self.heads + self.kv_heads :]
        keys, values = stored[0, :, :end], stored[1, :, :end]
        if self.heads == self.kv_heads:
            scores = torch.baddbmm(mask, turned[: self.heads], keys.transpose(1, 2), alpha=self.head_dim**-0.5)
            y = torch.bmm(scores.softmax(-1), values).transpose(0, 1)
        else:
            y = F.scaled_dot_product_attention(
                turned[: self.heads][None], keys[None], values[None], attn_mask=mask[None], enable_gqa=True
            )[0].transpose(0, 1)
        x = x + F.linear(y.reshape(n, -1), layer.out, layer.out_bias)
        gate, up = F.linear(F.rms_norm(x, (hidden,), layer.mlp_norm, self.eps), layer.gate_up).chunk(2, -1)
        return x + F.linear(F.silu(gate) * up, layer.down)

    def _rotary(self, start: int, count: int, depths: list[int] | None) -> tuple[Tensor, Tensor]:
        if depths is None:
            return self._cos[start : start + count], self._sin[start : start + count]
        positions = torch.tensor([start + depth for depth in depths], device=self.device)
        return self._cos[positions], self._sin[positions]

    def _mask(self, window: int | None, start: int, count: int, parents: Sequence[int]) -> Tensor:
        """What each new token may not see, as -inf to be added.  # [1, n, start + n]"""
        if window not in self._masks or self._masks[window].shape[0] < start + count:
            size = min(max(512, 2 * (start + count)), self.context)
            rows = torch.arange(size, device=self.device)
            hidden = rows[None] > rows[:, None]
            if window is not None:
                hidden |= rows[None] <= rows[:, None] - window
            mask = torch.zeros(size, size, dtype=self.dtype, device=self.device)
            self._masks[window] = mask.masked_fill_(hidden, float("-inf"))
        mask = self._masks[window][start : start + count, : start + count]
        if parents and list(parents) != list(range(-1, len(parents) - 1)):
            mask = mask.clone()
            first = count - len(parents)
            for node, parent in enumerate(parents):
                seen = mask[first + parent].clone()
                seen[start + first + node] = 0.0
                mask[first + node] = seen
        return mask[None]


def tree_depths(count: int, parents: Sequence[int]) -> list[int]:
    """The offset of each new token's position from the first one's."""
    first = count - len(parents)
    depths = list(range(first))
    for parent in parents:
        depths.append(depths[first + parent] + 1)
    return depths


def rotary_tables(config: Config, dtype: torch.dtype, device: str) -> tuple[Tensor, Tensor]:
    """cos and sin for every position, the first half of sin negated.  # [context, head_dim] each"""
    inverse, scaling = config.rotary_frequencies()
    angles = torch.outer(torch.arange(config.max_position_embeddings).float(), inverse)
    cos, sin = angles.cos() * scaling, angles.sin() * scaling
    return torch.cat((cos, cos), -1).to(device, dtype), torch.cat((-sin, sin), -1).to(device, dtype)
