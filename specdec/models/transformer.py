"""Our own decoder for the Llama family: Llama 2 and 3, Mistral, Qwen2, Qwen2.5, Qwen3, SmolLM2, TinyLlama.

It has RMSNorm, rotary position embeddings with scaling, grouped-query attention, SwiGLU, optional QK-norm and biases,
and tied embeddings. It reads the Hub's files or a GGUF file, has a static KV cache, and runs one sequence at a time.
Weights of norms, and attention's 1 / √head_dim, do not appear here: `folding.py` multiplied them into the matrices.
Tests compare its logits with those of transformers for each architecture.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import bmm, Tensor, view_as_complex
from torch.nn.functional import silu

from ..types import is_chain
from .base import common_prefix, tree_depths
from .cache import StaticCache
from .checkpoint import check_tensors, for_shapes, open_weights
from .config import Config
from .device import configure_cuda
from .folding import Folding, Layer, NORM
from .matrix import linear


class Transformer:
    """A decoder-only model over plain tensors. Implements `models.base.Target`."""

    folding_class = Folding
    chains_only = False

    def __init__(
        self,
        config: Config,
        weights: Mapping[str, Tensor],
        dtype: torch.dtype,
        device: str = "cpu",
        stored: torch.dtype | None = None,
    ) -> None:
        """Round matrices but the embedding to `stored`, if given. States have `dtype`. `GGUF` keeps a file's codes.

        Rounding changes the model's distribution. Verification corrects this for a draft model, but not for a target.
        """
        configure_cuda(device)
        self.config, self.dtype, self.device, self.stored = config, dtype, device, stored or dtype
        self.source: Path | None = None
        self.vocabulary, self.context = config.vocab_size, config.max_position_embeddings
        self.width, self.depth, self.exit_layers = config.hidden_size, config.num_hidden_layers, config.exit_layers
        self.heads, self.kv_heads = config.num_attention_heads, config.num_key_value_heads
        self.head_dim = config.head_dim
        # Pass `is_causal`, not a mask: with a mask and grouped heads, torch uses its slowest kernel on a GPU.
        self.causal_prefill = device != "cpu"
        self.parameters = sum(w.numel() for name, w in for_shapes(weights).items() if not name.endswith("inv_freq"))
        folding = self.folding = self.folding_class(config, dtype, device, self.stored)
        self.embedding, self.head, self._outputs = folding.embedding_and_head(weights)
        self.norm = folding.norm(weights[NORM])
        self.divisor = folding.divisor(self.norm)
        self.layers = [folding.layer(weights, i) for i in range(self.depth)]
        self.windows = {layer.window for layer in self.layers}
        self.rms_normalise, self.head_normalise = folding.rms_norm(self.width), folding.rms_norm(self.head_dim)
        self.angles = rotary_table(config, device)
        self.native = folding.native(self.layers)

    @classmethod
    def load(
        cls,
        folder: str | Path,
        dtype: torch.dtype | None = None,
        device: str = "cpu",
        stored: torch.dtype | None = None,
    ) -> Transformer:
        """Load a folder in the Hub's layout, or a GGUF file. Raises ValueError if it cannot be loaded."""
        folder = Path(folder)
        config, weights = Config.load(folder), open_weights(folder)
        check_tensors(weights, config.tensors(weights))
        model = cls(config, weights, dtype or torch.float32, device, stored)
        model.source = folder
        return model

    def new_cache(self, capacity: int, taps: Sequence[int] = (), exit_layer: int = 0) -> StaticCache:
        """Make a cache that also stores the inputs of layers `taps`, and of `exit_layer` if that is not 0."""
        shape = len(self.layers), 2 * self.kv_heads, capacity, self.head_dim
        return StaticCache(shape, self.dtype, self.device, self.width, taps, exit_layer)

    def forward(self, tokens: Sequence[int], cache: StaticCache, parents: Sequence[int] = (), rows: int = 1) -> Tensor:
        """Append `tokens` to the cache; return the logits of the last `rows` tokens.  # [rows, V]

        Tokens that `begin` has already run through the layers below the exit layer continue from there.
        """
        count, start = len(tokens), cache.length
        if cache.begun and is_chain(parents):
            done = common_prefix(cache.begun, tokens)
            if done < count:
                self.run_layers(tokens[done:], cache, start + done, 0, cache.exit_layer)
            x = self.run_layers(cache.states[cache.exit_layer][start : start + count], cache, start, cache.exit_layer)
        else:
            x = self.run_layers(tokens, cache, start, parents=parents)
        cache.keep(start + count)
        return self.logits(x[count - rows :])

    def begin(self, tokens: Sequence[int], cache: StaticCache) -> Tensor:
        """Run `tokens` through the layers below the cache's exit layer; return the last token's logits.  # [1, V]

        As in LayerSkip (arXiv 2404.16710), the exit uses the model's final norm and output matrix.
        """
        x = self.run_layers(tokens, cache, cache.length + len(cache.begun), 0, cache.exit_layer)
        cache.begun += tokens
        return self.logits(x[-1:])

    def normed(self, x: Tensor) -> Tensor:
        """Apply the final norm to states after the last layer.  # [n, hidden] -> [n, hidden]"""
        normed: Tensor = self.rms_normalise(x) * self.norm
        return normed

    def project(self, normed: Tensor) -> Tensor:
        """Multiply normed states by the output matrix.  # [n, hidden] -> [n, V]"""
        return self.logits_of(normed / self.divisor)

    def cut_vocabulary(self, count: int) -> None:
        self.vocabulary = count  # the matrix keeps all outputs: with an odd number of them, a GPU is slow

    def logits(self, x: Tensor) -> Tensor:
        """Return logits of states after the last layer.  # [n, hidden] -> [n, V]"""
        return self.logits_of(self.rms_normalise(x) if self.native is None else self.native.normalised(x))

    def logits_of(self, x: Tensor) -> Tensor:
        """Return logits of states that come from `rms_normalise`.  # [n, hidden] -> [n, V]"""
        return linear(x, self.head)[:, : min(self.vocabulary, self._outputs)]

    def run_layers(
        self,
        source: Sequence[int] | Tensor,
        cache: StaticCache,
        start: int,
        first: int = 0,
        last: int | None = None,
        parents: Sequence[int] = (),
        read: Tensor | None = None,
        causal: bool = True,
    ) -> Tensor:
        """Run n tokens through layers `first` to `last` - 1; return their states.  # [n, hidden]

        `source` is token ids, or states [n, hidden]. Its first token is at position `start`. `read`, if given, replaces
        the normed input of attention in layer `first`. If `causal` is False, all n tokens attend to each other.
        """
        count, last = len(source), len(self.layers) if last is None else last
        if start + count > cache.capacity:
            raise ValueError(f"{start + count} tokens do not fit a cache of {cache.capacity}")
        if isinstance(source, Tensor):
            x = source
        elif count == 1:
            x = self.embedding[source[0]][None]
        else:
            x = F.embedding(torch.tensor(source, device=self.device), self.embedding)
        angles = self._rotary(start, count, parents)
        if self.native is not None:
            x = x.clone(memory_format=torch.contiguous_format)
            paths = None if is_chain(parents) or not causal else tree_paths(count, parents, self.device)
            self.native.run(x, cache, start, first, last, angles, paths, read, causal)
            if last in cache.states:
                cache.states[last][start : start + count] = x
            return x
        end = start + count
        maskless = self.causal_prefill and start == 0 and is_chain(parents)  # then `is_causal` replaces the mask
        masks = {
            window: self._mask(window, start, count, parents) if causal and not (maskless and window is None) else None
            for window in self.windows
        }
        states = cache.states
        # The views of all layers are made at once: one by one, they would slow down a small model.
        new = cache.data[first:last, :, start:end].unbind()
        keys = cache.data[first:last, : self.kv_heads, :end].transpose(2, 3).unbind()
        values = cache.data[first:last, self.kv_heads :, :end].unbind()
        for i, layer in enumerate(self.layers[first:last]):
            if first + i in states:
                states[first + i][start:end] = x
            x = self._run_layer(x, layer, new[i], keys[i], values[i], angles, masks[layer.window], read, causal)
            read = None
        if last in states:
            states[last][start:end] = x
        return x

    def _run_layer(
        self,
        x: Tensor,  # [n, hidden]
        layer: Layer,
        new: Tensor,  # [2 kv_heads, n, head_dim]: the part of the cache that the n tokens of this pass fill
        keys: Tensor,  # [kv_heads, head_dim, end]; `end` is the number of cached tokens, these n included
        values: Tensor,  # [kv_heads, end, head_dim]
        angles: Tensor,
        mask: Tensor | None,
        read: Tensor | None,
        causal: bool,
    ) -> Tensor:
        qkv = self.project_qkv(self.rms_normalise(x) if read is None else read, layer, angles)
        new.copy_(qkv[self.heads :])
        causal = causal and mask is None and len(x) > 1
        if self.heads == self.kv_heads and self.dtype == torch.float32 and not causal:
            scores = bmm(qkv[: self.heads], keys)
            y = bmm((scores if mask is None else scores.add_(mask)).softmax(-1), values)
        else:
            y = F.scaled_dot_product_attention(
                qkv[None, : self.heads],
                keys.transpose(1, 2)[None],
                values[None],
                None if mask is None else mask[None],
                is_causal=causal,
                scale=1.0,
                enable_gqa=self.heads != self.kv_heads,
            )[0]
        return self.attention_out_and_mlp(x, y, layer)

    def project_qkv(self, normed: Tensor, layer: Layer, angles: Tensor) -> Tensor:
        """Compute queries, keys and values.  # [n, in] -> [heads + 2 kv_heads, n, head_dim]"""
        qkv = linear(normed, layer.qkv, layer.qkv_bias).view(len(normed), -1, self.head_dim).transpose(0, 1)
        rotated = qkv[: self.heads + self.kv_heads]
        if layer.head_norm is not None:
            rotated.copy_(self.head_normalise(rotated) * layer.head_norm)
        apply_rope(rotated, angles)
        return qkv

    def attention_out_and_mlp(self, x: Tensor, y: Tensor, layer: Layer) -> Tensor:
        """Return a layer's output [n, hidden], given its input `x` and its heads' results `y` [heads, n, head_dim]."""
        residual = x if layer.out_bias is None else x + layer.out_bias
        x = linear(y.transpose(0, 1).reshape(len(x), -1), layer.out, residual)
        gate, up = linear(self.rms_normalise(x), layer.gate_up).chunk(2, -1)
        return linear(silu(gate).mul_(up), layer.down, x)

    def _rotary(self, start: int, count: int, parents: Sequence[int]) -> Tensor:
        if is_chain(parents):
            return self.angles[start : start + count]
        return self.angles[torch.tensor([start + depth for depth in tree_depths(count, parents)], device=self.device)]

    def _mask(self, window: int | None, start: int, count: int, parents: Sequence[int]) -> Tensor | None:
        """Return the attention mask, -inf where a token may not attend; None if not needed.  # [1, n, start + n]"""
        if count == 1 and window is None:
            return None
        seen = F.pad(tree_paths(count, parents, self.device), (start, 0), value=True)
        if window is not None:
            depths = torch.tensor([*range(-start, 0), *tree_depths(count, parents)], device=self.device)
            seen &= depths > depths[start:, None] - window
        mask = torch.zeros(count, start + count, dtype=self.dtype, device=self.device)
        return mask.masked_fill_(~seen, float("-inf"))[None]


def tree_paths(count: int, parents: Sequence[int], device: str) -> Tensor:
    """Return which of `count` new tokens each attends to; the last `len(parents)` form a tree.  # [count, count]"""
    paths = torch.ones(count, count, dtype=torch.bool, device=device).tril_()
    first = count - len(parents)  # the row of the tree's first node
    for node, parent in enumerate(() if is_chain(parents) else parents, first):
        paths[node, :node] = paths[first + parent, :node]
    return paths


def rotary_table(config: Config, device: str) -> Tensor:
    """Return scaling · e^(i · angle) for each position and pair of head entries.  # complex [context, head_dim / 2]"""
    inverse, scaling = config.rotary_frequencies()
    angles = torch.outer(torch.arange(config.max_position_embeddings).float(), inverse)
    return torch.polar(torch.full_like(angles, scaling), angles).to(device)


def apply_rope(x: Tensor, angles: Tensor) -> None:
    """Apply rotary embeddings in place. Two adjacent entries are one complex number.  # [heads, n, head_dim]"""
    exact = x.float()
    view_as_complex(exact.view(*x.shape[:2], -1, 2)).mul_(angles)
    if exact is not x:
        x.copy_(exact)
