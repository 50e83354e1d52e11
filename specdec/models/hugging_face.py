"""What our own decoder does not cover, run by transformers behind the same protocol.

Gemma, GPT-2, Phi, OLMo, mixtures of experts: every causal language model that transformers has, if its cache keeps all
tokens, so that a text can be rolled back. Positions, windows and masks are the model's own; drafts are chains.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from inspect import signature
from pathlib import Path
from threading import Lock
from typing import Any

import torch
from torch import nn, Tensor

from ..types import is_chain
from .checkpoint import brief, naming, open_weights, read_config, Weights
from .device import settle
from .gguf_header import is_file
from .pretrained import built, config_of, context_of, unfit

TRIAL = 6  # tokens
# How far logits may lie apart in a trial, as a part of their spread: in low precision every shape of a pass rounds.
EXACT, ROUNDED = 1e-3, 0.1


class FullCache:
    """transformers' own cache, every layer of which keeps all tokens, and the states at `taps` [capacity, width]."""

    def __init__(self, capacity: int, width: int, taps: Sequence[int], dtype: torch.dtype, device: str) -> None:
        from transformers import DynamicCache

        self.capacity, self.length = capacity, 0
        # Not made from a config: then a layer with a window would forget what lies before it.
        self.inner = DynamicCache()
        self.states = {i: torch.zeros(capacity, width, dtype=dtype, device=device) for i in sorted({*taps})}

    def keep(self, length: int, path: Sequence[int] = ()) -> None:
        """Keep the first `length` positions and those after them on `path`, which is a chain."""
        self.length = length + len(path)
        for layer in self.inner.layers:
            layer.keys, layer.values = (stored[:, :, : self.length] for stored in (layer.keys, layer.values))


class HuggingFaceModel:
    """A causal language model of transformers. Implements `models.base.Target`; it has no early exit."""

    exit_layers: tuple[int, ...] = ()
    takes_trees = False

    def __init__(self, config: Any, weights: Weights, dtype: torch.dtype, device: str = "cpu") -> None:
        """`config` is one of transformers', made by `config_of`; `weights` are under the Hub's names."""
        settle(device)
        self.model, self.dtype, self.device = built(config, weights, dtype, device), dtype, device
        self.stored = dtype
        self.kind: str = config.model_type
        self.source: Path | None = None
        self.embedding: Tensor = self.model.get_input_embeddings().weight
        self.head = self.model.get_output_embeddings()
        self.vocabulary, self.context = len(self.head.weight), context_of(config)
        self.width: int = config.hidden_size
        self.depth: int = config.num_hidden_layers
        self.parameters: int = self.model.num_parameters()
        self._takes = signature(type(self.model).forward).parameters
        self._cache = "cache" if "cache" in self._takes else "past_key_values"  # its name until transformers 5.24
        self._around, self._layers = layers_of(self.model, self.depth)
        self._turn = Lock()  # what one pass watches, it watches in the model that all runs share
        self.norm: nn.Module | None = None
        try:
            self._try_out()
        except (RuntimeError, TypeError) as error:  # numbers that fit a model together and do not compute
            raise ValueError(f"this {self.kind} model cannot be run: {brief(error)}") from error

    @classmethod
    def load(cls, folder: str | Path, dtype: torch.dtype | None = None, device: str = "cpu") -> HuggingFaceModel:
        """Read a folder in the Hub's layout (config.json, safetensors), or a GGUF file. ValueError with the reason."""
        folder = Path(folder)
        with naming(folder):
            config, dtype = config_of(read_config(folder)), dtype or torch.float32
            weights = open_weights(folder)
            if is_file(folder):
                weights = {name: weights[name].to(dtype) for name in weights}
            model = cls(config, dict(weights), dtype, device)
        model.source = folder
        return model

    def new_cache(self, capacity: int, taps: Sequence[int] = (), exit_layer: int = 0) -> FullCache:
        """`taps` are layers whose input is kept beside the keys and values, or `depth` for the last one's output."""
        return FullCache(capacity, self.width, taps, self.dtype, self.device)

    def forward(self, tokens: Sequence[int], cache: FullCache, parents: Sequence[int] = (), rows: int = 1) -> Tensor:
        """Append `tokens` to the cache; logits of the last `rows` of them.  # [rows, V]"""
        count, start = len(tokens), cache.length
        if start + count > cache.capacity:
            raise ValueError(f"{start + count} tokens do not fit a cache of {cache.capacity}")
        if not is_chain(parents):
            raise ValueError(f"{self.kind} models check no trees; choose a drafter of chains")
        ids, places = torch.tensor([tokens, range(start, start + count)], device=self.device)[:, None]
        options = {"position_ids": places, "logits_to_keep": max(rows, 1), self._cache: cache.inner}
        options = {name: value for name, value in options.items() if name in self._takes}
        with self._turn, self._watched(cache) if cache.states else nullcontext():
            output = self.model(ids, use_cache=True, **options)
        cache.length = start + count
        logits: Tensor = output.logits[0, :, : self.vocabulary].to(self.device)
        return logits[len(logits) - rows :]

    def normed(self, x: Tensor) -> Tensor:
        """States after the last layer, passed through the final norm.  # [n, width] -> [n, width]"""
        if self.norm is None:
            raise ValueError(f"{self.kind} models have more than a norm between the last layer and the output matrix")
        normed: Tensor = self.norm(x).to(self.device)
        return normed

    def project(self, normed: Tensor) -> Tensor:
        """Normed states through the output matrix alone; what some models do to its logits is left out."""
        logits: Tensor = self.head(normed)[..., : self.vocabulary].to(self.device)
        return logits

    def cut_vocabulary(self, count: int) -> None:
        """Give logits of the first `count` tokens alone."""
        self.vocabulary = count

    @contextmanager
    def _watched(self, cache: FullCache) -> Iterator[None]:
        """For one pass: layers store their states in the cache."""

        def store(i: int, x: Tensor) -> None:  # [1, n, width]
            cache.states[i][cache.length : cache.length + x.shape[1]] = x[0].to(self.device)

        def before(i: int) -> Any:  # what a layer reads comes first, whatever its name
            return lambda _, args, named: store(i, (*args, *named.values())[0])

        hooks = [
            self._layers[i].register_forward_pre_hook(before(i), with_kwargs=True)
            for i in cache.states
            if i < self.depth
        ]
        if self.depth in cache.states:
            last = self._layers[-1]
            hooks.append(last.register_forward_hook(lambda _, args, output: store(self.depth, first(output))))
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    @torch.inference_mode()
    def _try_out(self) -> None:
        """A few tokens in one pass, and in pieces with a roll-back: what no config says of a cache shows there."""
        from transformers.cache_utils import DynamicLayer

        tokens = [i % self.vocabulary for i in range(1, 1 + TRIAL)]
        cache, calls = self.new_cache(TRIAL), dict[nn.Module, tuple[Any, Any]]()
        parts = {self._layers[-1], *self._around.children(), self.head} - {None}
        hooks = [
            part.register_forward_hook(lambda part, args, output: calls.update({part: (first(args), first(output))}))
            for part in parts
        ]
        expected = self.forward(tokens, cache, rows=TRIAL).float()
        for hook in hooks:
            hook.remove()
        state, read = calls[self._layers[-1]][1], calls[self.head][0]
        norms = (part for part, (given, output) in calls.items() if same(given, state) and same(output, read))
        self.norm = next(norms, None) if state.shape == read.shape else None
        lengths = [type(layer) is DynamicLayer and layer.get_seq_length() for layer in cache.inner.layers]
        if lengths != [TRIAL] * self.depth:
            raise ValueError(unfit(self.kind))
        cache, (a, b, c, d, e, f) = self.new_cache(TRIAL), tokens
        rows = [self.forward([a, b], cache, rows=2), self.forward([c, f], cache, rows=2)[:1]]
        cache.keep(3)
        rows += [self.forward([d, e], cache, rows=2), self.forward([f], cache)]
        bound = float(expected.max() - expected.min()) * (EXACT if self.dtype == torch.float32 else ROUNDED)
        if not float((torch.cat(rows).float() - expected).abs().max()) <= bound:
            raise ValueError(f"{self.kind} models give other logits after a roll-back, so they cannot run here")


def layers_of(model: nn.Module, depth: int) -> tuple[nn.Module, list[nn.Module]]:
    """The module around the blocks, and the blocks."""
    for around in model.modules():
        for part in around.children():
            if isinstance(part, nn.ModuleList) and len(part) == depth:
                return around, [*part]
    raise ValueError(f"{type(model).__name__} of transformers has no list of {depth} layers")


def first(output: Any) -> Any:
    return output[0] if isinstance(output, tuple) and output else output


def same(a: Any, b: Any) -> bool:
    return isinstance(a, Tensor) and isinstance(b, Tensor) and a.shape == b.shape and torch.equal(a, b.to(a.device))
