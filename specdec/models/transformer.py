"""Our own decoder for the Llama family: Llama 2 and 3, Mistral, Qwen2, Qwen2.5, Qwen3, SmolLM2, TinyLlama.

It has RMSNorm, rotary position embeddings with scaling, grouped-query attention, SwiGLU, optional QK-norm and biases,
and tied embeddings. It reads the Hub's files or a GGUF file, has a static KV cache, and runs one sequence at a time.
Tests compare its logits with those of transformers for each architecture.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import bmm, hypot, Tensor, view_as_complex
from torch.linalg import vector_norm
from torch.nn.functional import silu

from ..types import is_chain
from .base import common_prefix, tree_depths
from .cache import StaticCache
from .checkpoint import check_tensors, for_shapes, open_weights
from .config import Config
from .device import configure_cuda
from .gguf import Stored
from .grouped import GGUF, Grouped, rearrange
from .matrix import linear, Matrix, pack_weight
from .native import BLOCK, NativeLayers

Floor = Tensor | float  # see `rms_normalise`


@dataclass(slots=True)
class Layer:
    """The weights of one decoder layer, arranged so that a pass needs few operations.

    Query, key and value are joined into one matrix, gate and up into another (layout: `matrix.py`). These two matrices
    include the weights of the norms before them. The query weights, or QK-norm's, include the factor 1 / √head_dim.
    """

    qkv: Matrix  # [hidden, (heads + 2 kv_heads) · head_dim]
    qkv_bias: Tensor | None
    out: Matrix  # attention's output projection
    out_bias: Tensor | None
    head_norm: Tensor | None  # [heads + kv_heads, 1, head_dim]: the weights of QK-norm
    gate_up: Matrix
    down: Matrix
    window: int | None  # how many positions a token attends to, its own included; None: no limit


class Transformer:
    """A decoder-only model over plain tensors. Implements `models.base.Target`."""

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
        self.on_cpu = torch.device(device).type == "cpu"
        self.source: Path | None = None
        self.vocabulary, self.context = config.vocab_size, config.max_position_embeddings
        self.width, self.depth, self.exit_layers = config.hidden_size, config.num_hidden_layers, config.exit_layers
        self.heads, self.kv_heads = config.num_attention_heads, config.num_key_value_heads
        self.head_dim = config.head_dim
        # Pass `is_causal`, not a mask: with a mask and grouped heads, torch uses its slowest kernel on a GPU.
        self.causal_prefill = device != "cpu"

        def take(name: str) -> Tensor:
            return weights[name].to(device=device, dtype=torch.float32)

        def take_matrix(name: str) -> Tensor | Grouped:
            if self.stored is not GGUF:
                return take(name)
            if not isinstance(weights, Stored):
                raise ValueError("only a GGUF file has codes to keep; choose int8, or name a GGUF file")
            return weights.codes(name)

        self.parameters = sum(w.numel() for name, w in for_shapes(weights).items() if not name.endswith("inv_freq"))
        embedding, width = take("model.embed_tokens.weight"), config.hidden_size
        tied = config.tie_word_embeddings and "lm_head.weight" not in weights
        reuse_embedding = tied and self.stored is not GGUF
        head = embedding if reuse_embedding else take_matrix("model.embed_tokens.weight" if tied else "lm_head.weight")
        self.embedding = embedding.to(dtype)
        norm = take("model.norm.weight")
        # On a CPU, rows of zeros pad the output matrix to a multiple of `native.BLOCK`.
        self._outputs = len(head)
        padding = self._padding(len(head))
        self.head = self._after_norm(rearrange(lambda rows: F.pad(rows, (0, 0, 0, padding)), head), norm, width)
        del embedding, head  # beside these float32 copies, an 8B model would not fit into 24 GB
        self.norm = (norm * self.unit(width)).to(dtype)
        self.divisor = self.norm.masked_fill(self.norm == 0, 1.0)
        self.layers = [self._layer(i, weights, take, take_matrix) for i in range(config.num_hidden_layers)]
        self._windows = {layer.window for layer in self.layers}
        self.floor, self.head_floor = self.floor_of(width), self.floor_of(self.head_dim)
        self.angles = rotary_table(config, device)
        self.native = self._native()

    def floor_of(self, width: int) -> Floor:
        """Return `floor` for `rms_normalise`. On a CPU, √(|x|² + floor²) is then √width · √(mean(x²) + eps)."""
        eps = self.config.rms_norm_eps
        return torch.tensor((width * eps) ** 0.5) if self.on_cpu else eps

    def _padding(self, outputs: int) -> int:
        """Return how many outputs to add, so that their number is a multiple of `native.BLOCK`; 0 on a GPU."""
        return -outputs % BLOCK if self.on_cpu else 0

    def unit(self, width: int) -> float:
        """Return the factor for a norm's weights: √width on a CPU, where `rms_normalise` leaves it out."""
        return width**0.5 if self.on_cpu else 1.0

    def _after_norm(self, matrix: Tensor | Grouped, norm: Tensor, width: int, after: Tensor | None = None) -> Matrix:
        """Convert a matrix [out, in] that reads the output of `rms_normalise`. Include the norm's weights `norm`."""
        return self.matrix(matrix, norm * self.unit(width), after)

    def matrix(
        self,
        matrix: Tensor | Grouped,
        before: Tensor | None = None,
        after: Tensor | None = None,
    ) -> Matrix:
        """Convert a matrix [out, in] to the layout of this model. See `pack_weight` for `before` and `after`."""
        return pack_weight(matrix, self.dtype, self.device, self.stored, before, after)

    def keys_and_values(self, layer: int, weights: Mapping[str, Tensor]) -> Tensor:
        """Join a layer's matrices of keys and values, without the norm before them.  # [2 kv_heads · head_dim, in]"""
        keys, values = (weights[f"model.layers.{layer}.self_attn.{part}_proj.weight"].float() for part in "kv")
        return torch.cat((self._paired(keys), values))

    def _paired(self, x: Tensor) -> Tensor:
        """Reorder each head's entries. The Hub pairs entry i with i + head_dim / 2, `apply_rope` pairs neighbours."""
        pairs: Tensor = x.unflatten(0, (-1, 2, self.head_dim // 2))
        return pairs.transpose(1, 2).reshape(x.shape)

    def _layer(
        self,
        i: int,
        weights: Mapping[str, Tensor],
        take: Callable[[str], Tensor],
        take_matrix: Callable[[str], Tensor | Grouped],
    ) -> Layer:
        prefix, width, scale = f"model.layers.{i}.", self.config.hidden_size, self.head_dim**-0.5

        def bias(part: str) -> Tensor | None:
            key = f"{prefix}self_attn.{part}.bias"
            return take(key) if key in weights else None

        parts = {part: take_matrix(f"{prefix}self_attn.{part}.weight") for part in ("q_proj", "k_proj", "v_proj")}
        biases = {part: bias(part) for part in parts}
        for part in ("q_proj", "k_proj"):
            parts[part] = rearrange(self._paired, parts[part])
            if (present_bias := biases[part]) is not None:
                biases[part] = self._paired(present_bias)
        head_norm = scales = None
        if f"{prefix}self_attn.q_norm.weight" in weights:
            q_norm, k_norm = (self._paired(take(f"{prefix}self_attn.{part}_norm.weight")) for part in "qk")
            q_norm = q_norm * scale
            head_norm = torch.stack([q_norm] * self.heads + [k_norm] * self.kv_heads)[:, None]
            head_norm = (head_norm * self.unit(self.head_dim)).to(self.dtype)
        else:
            scales = torch.cat([torch.full((len(w),), scale if part == "q_proj" else 1.0) for part, w in parts.items()])
            scales = scales.to(self.device)
            if biases["q_proj"] is not None:
                biases["q_proj"] = biases["q_proj"] * scale
        present = [b for b in biases.values() if b is not None]
        out_bias = bias("o_proj")
        padding = self._padding(self.config.intermediate_size)  # units with weights of 0, added to the MLP
        gate_up = rearrange(
            lambda *halves: torch.cat([F.pad(half, (0, 0, 0, padding)) for half in halves]),
            *(take_matrix(f"{prefix}mlp.{part}_proj.weight") for part in ("gate", "up")),
        )
        down = take_matrix(prefix + "mlp.down_proj.weight")
        return Layer(
            qkv=self._after_norm(
                rearrange(lambda *matrices: torch.cat(matrices), *parts.values()),
                take(prefix + "input_layernorm.weight"),
                width,
                scales,
            ),
            qkv_bias=torch.cat(present).to(self.dtype) if present else None,
            out=self.matrix(take_matrix(prefix + "self_attn.o_proj.weight")),
            out_bias=None if out_bias is None else out_bias.to(self.dtype),
            head_norm=head_norm,
            gate_up=self._after_norm(gate_up, take(prefix + "post_attention_layernorm.weight"), width),
            # For a `Grouped` matrix, `padding` is 0, since its number of inputs is a multiple of 32.
            down=self.matrix(F.pad(down, (0, padding)) if isinstance(down, Tensor) else down),
            window=self.config.windows.get(i),
        )

    def _native(self) -> NativeLayers | None:
        """Return the layers in C++, or None if `native.cpp` cannot run them."""
        unsupported = any(
            part is not None for layer in self.layers for part in (layer.head_norm, layer.out_bias, layer.window)
        )
        if unsupported or not isinstance(self.floor, Tensor):
            return None
        matrices = [(layer.qkv, layer.out, layer.gate_up, layer.down) for layer in self.layers]
        biases = [layer.qkv_bias for layer in self.layers]
        return NativeLayers.build(matrices, biases, self.heads, self.kv_heads, self.head_dim, float(self.floor))

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
        check_tensors(weights, model_tensors(config, weights))
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

    def rms_normalise(self, x: Tensor) -> Tensor:
        """Apply RMSNorm without its weight, which is already multiplied into the next matrix."""
        return rms_normalise(x, self.floor)

    def normed(self, x: Tensor) -> Tensor:
        """Apply the final norm to states after the last layer.  # [n, hidden] -> [n, hidden]"""
        normed: Tensor = self.rms_normalise(x) * self.norm
        return normed

    def project(self, normed: Tensor) -> Tensor:
        """Multiply normed states by the output matrix.  # [n, hidden] -> [n, V]"""
        return self.logits_of(normed / self.divisor)  # `head` includes the norm's weights, so divide by them

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
            mask = None if is_chain(parents) or not causal else self._mask(None, start, count, parents)
            self.native.run(x, cache, start, first, last, angles, mask, read, causal)
            if last in cache.states:
                cache.states[last][start : start + count] = x
            return x
        end = start + count
        maskless = self.causal_prefill and start == 0 and is_chain(parents)  # then `is_causal` replaces the mask
        masks = {
            window: self._mask(window, start, count, parents) if causal and not (maskless and window is None) else None
            for window in self._windows
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
        qkv = self.project_qkv(rms_normalise(x, self.floor) if read is None else read, layer, angles)
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
            rotated.copy_(rms_normalise(rotated, self.head_floor) * layer.head_norm)
        apply_rope(rotated, angles)
        return qkv

    def attention_out_and_mlp(self, x: Tensor, y: Tensor, layer: Layer) -> Tensor:
        """Return a layer's output [n, hidden], given its input `x` and its heads' results `y` [heads, n, head_dim]."""
        residual = x if layer.out_bias is None else x + layer.out_bias
        x = linear(y.transpose(0, 1).reshape(len(x), -1), layer.out, residual)
        gate, up = linear(rms_normalise(x, self.floor), layer.gate_up).chunk(2, -1)
        return linear(silu(gate).mul_(up), layer.down, x)

    def _rotary(self, start: int, count: int, parents: Sequence[int]) -> Tensor:
        if is_chain(parents):
            return self.angles[start : start + count]
        return self.angles[torch.tensor([start + depth for depth in tree_depths(count, parents)], device=self.device)]

    def _mask(self, window: int | None, start: int, count: int, parents: Sequence[int]) -> Tensor | None:
        """Return the attention mask, -inf where a token may not attend; None if not needed.  # [1, n, start + n]"""
        if count == 1 and window is None:
            return None
        keys = torch.arange(start + count, device=self.device)  # their positions
        queries = keys[start:, None]
        masked = keys > queries
        if window is not None:
            masked |= keys <= queries - window
        mask = torch.zeros(count, start + count, dtype=self.dtype, device=self.device)
        mask.masked_fill_(masked, float("-inf"))
        if not is_chain(parents):
            first = count - len(parents)  # the row of the tree's first node
            for node, parent in enumerate(parents):
                row = mask[first + parent].clone()  # a node attends to what its parent attends to, and to itself
                visible = (row == 0).nonzero().flatten()
                if len(visible) == window:  # the window is full: its oldest position drops out
                    row[visible[0]] = float("-inf")
                row[start + first + node] = 0.0
                mask[first + node] = row
        return mask[None]


def model_tensors(config: Config, weights: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
    """Return the names and shapes of a checkpoint's tensors. A tied output matrix is listed if `weights` has it."""
    width = config.hidden_size
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (config.vocab_size, width)}
    if not config.tie_word_embeddings or "lm_head.weight" in weights:
        shapes["lm_head.weight"] = (config.vocab_size, width)
    layer = layer_tensors(config, width).items()
    shapes |= {f"model.layers.{i}.{part}": shape for i in range(config.num_hidden_layers) for part, shape in layer}
    return shapes | {"model.norm.weight": (width,)}


def layer_tensors(config: Config, inputs: int) -> dict[str, tuple[int, ...]]:
    """Return the names and shapes of one layer's tensors. Its attention reads `inputs` numbers for each token."""
    width, inner, head_dim = config.hidden_size, config.intermediate_size, config.head_dim
    outputs = {"q_proj": head_dim * config.num_attention_heads, "o_proj": width}
    outputs["k_proj"] = outputs["v_proj"] = head_dim * config.num_key_value_heads
    shapes: dict[str, tuple[int, ...]] = {
        f"self_attn.{part}.weight": (count, outputs["q_proj"] if part == "o_proj" else inputs)
        for part, count in outputs.items()
    }
    shapes |= {f"self_attn.{part}.bias": (outputs[part],) for part in config.biases}
    if config.qk_norm:
        shapes |= {f"self_attn.{part}_norm.weight": (head_dim,) for part in "qk"}
    return shapes | {
        "input_layernorm.weight": (width,),
        "post_attention_layernorm.weight": (width,),
        "mlp.gate_proj.weight": (inner, width),
        "mlp.up_proj.weight": (inner, width),
        "mlp.down_proj.weight": (width, inner),
    }


def rms_normalise(x: Tensor, floor: Floor) -> Tensor:
    """Apply RMSNorm without its weight; on a CPU also without the factor √width. `floor` keeps the divisor above 0.

    If `floor` is a tensor (on a CPU), each row x is divided by √(|x|² + floor²). If `floor` is a float (on a GPU), x is
    divided by √(mean(x²) + floor), for which torch has a single kernel. On a CPU that kernel is slower.
    """
    if isinstance(floor, float):
        return F.rms_norm(x, x.shape[-1:], None, floor)
    if x.dtype == floor.dtype:
        return x / hypot(vector_norm(x, dim=-1, keepdim=True), floor)
    return x / hypot(vector_norm(x, dim=-1, keepdim=True, dtype=floor.dtype), floor).to(x.dtype)


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
