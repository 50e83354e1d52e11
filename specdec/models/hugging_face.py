"""What our own decoder does not cover, run by transformers behind the same protocol.

Gemma, GPT-2, Phi, OLMo, mixtures of experts: every causal language model that transformers has, if its cache keeps all
tokens, so that a text can be rolled back. Positions, windows and masks are the model's own; a tree only hides from each
node what is not on its path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from inspect import signature
from pathlib import Path
from threading import Lock
from typing import Any

import torch
from torch import nn, Tensor

from ..types import is_chain
from .base import tree_depths
from .checkpoint import brief, naming, open_weights, read_config, Weights
from .device import settle
from .gguf_header import is_file
from .pretrained import built, config_of, context_of, unfit

# Whose trees are tested against their paths, windows included. A model may hide tokens in a place of its own, as
# gpt_neo does, where a trial of a few tokens would not see it: the others draft and check chains.
TREES = (
    "cohere2", "deepseek_v3", "exaone4", "falcon", "gemma", "gemma2", "gemma3_text", "glm4", "gpt2", "gpt_neox",
    "gpt_oss", "gptj", "granite", "mixtral", "nemotron", "olmo2", "olmo3", "opt", "phi", "phi3", "qwen3_moe",
    "stablelm", "starcoder2",
)  # fmt: skip
TRIAL = 6  # tokens
# How far logits may lie apart in a trial, as a part of their spread: in low precision every shape of a pass rounds.
EXACT, ROUNDED = 1e-3, 0.1


class FullCache:
    """transformers' own cache, every layer of which keeps all tokens, and the states at `taps` [capacity, width]."""

    def __init__(self, capacity: int, width: int, taps: Sequence[int], dtype: torch.dtype, device: str) -> None:
        from transformers import DynamicCache

        self.capacity, self.length = capacity, 0
        self.inner = (
            DynamicCache()
        )  # not made from a config: then a layer with a window would forget what lies before it
        self.states = {i: torch.zeros(capacity, width, dtype=dtype, device=device) for i in sorted({*taps})}

    def keep(self, length: int, path: Sequence[int] = ()) -> None:
        """Keep the first `length` positions and, moved up after them, those at `length + i` for i in `path`."""
        self.length = length + len(path)
        kept = torch.tensor([*range(length), *(length + node for node in path)], dtype=torch.int64)
        moved = any(node != place for place, node in enumerate(path))
        for layer in self.inner.layers:
            at = kept.to(layer.keys.device)
            layer.keys, layer.values = (
                stored.index_select(2, at) if moved else stored[:, :, : self.length]
                for stored in (layer.keys, layer.values)
            )
        for states in self.states.values() if moved else ():
            states[: self.length] = states[kept.to(states.device)]


class HuggingFaceModel:
    """A causal language model of transformers. Implements `models.base.Target`; it has no early exit."""

    exit_layers: tuple[int, ...] = ()

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
        self._asked = signature(type(self.model).forward).parameters
        self._cache = "cache" if "cache" in self._asked else "past_key_values"  # its name until transformers 5.24
        self._around, self._layers = layers_of(self.model, self.depth)
        self._turn = Lock()  # what one pass watches, it watches in the model that all runs share
        self.takes_trees = self.kind in TREES and not getattr(config, "alibi", False)
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
        count, start, tree = len(tokens), cache.length, not is_chain(parents)
        if start + count > cache.capacity:
            raise ValueError(f"{start + count} tokens do not fit a cache of {cache.capacity}")
        if tree and not self.takes_trees:
            raise ValueError(f"trees are not tested with {self.kind} models; choose a drafter of chains")
        depths = tree_depths(count, parents)
        ids, places = torch.tensor([tokens, [start + depth for depth in depths]], device=self.device)[:, None]
        asked = {"position_ids": places, "logits_to_keep": max(rows, 1), self._cache: cache.inner}
        asked = {name: value for name, value in asked.items() if name in self._asked}
        watched = self._watched(cache, depths, parents) if tree or cache.states else nullcontext()
        with self._turn, watched:
            said = self.model(ids, use_cache=True, **asked)
        cache.length = start + count
        logits: Tensor = said.logits[0, :, : self.vocabulary].to(self.device)
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
    def _watched(self, cache: FullCache, depths: Sequence[int], parents: Sequence[int]) -> Iterator[None]:
        """For one pass: layers tell the cache their states, and are shown each node's path where there is a tree."""
        start, masks = cache.length, dict[int, Tensor]()

        def before(i: int) -> Callable[..., Any]:
            names = [*signature(type(self._layers[i]).forward).parameters][1:]

            def hook(_: nn.Module, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[tuple[()], dict[str, Any]]:
                given = dict(zip(names, args, strict=False)) | named
                x = given[names[0]]  # what a layer reads comes first, whatever its name
                if i in cache.states:
                    store(cache.states[i], start, x)
                if not is_chain(parents):
                    own = given["attention_mask"]
                    if id(own) not in masks:  # layers share theirs
                        masks[id(own)] = tree_mask(own, start, depths, parents, x.device)
                    given["attention_mask"] = masks[id(own)]
                return (), given

            return hook

        hooks = [layer.register_forward_pre_hook(before(i), with_kwargs=True) for i, layer in enumerate(self._layers)]
        if (last := cache.states.get(self.depth)) is not None:
            hooks.append(self._layers[-1].register_forward_hook(lambda *told: store(last, start, first(told[-1]))))
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
            part.register_forward_hook(lambda part, args, said: calls.update({part: (first(args), first(said))}))
            for part in parts
        ]
        expected = self.forward(tokens, cache, rows=TRIAL).float()
        for hook in hooks:
            hook.remove()
        state, read = calls[self._layers[-1]][1], calls[self.head][0]
        norms = (part for part, (given, said) in calls.items() if same(given, state) and same(said, read))
        self.norm = next(norms, None) if state.shape == read.shape else None
        kept = [type(layer) is DynamicLayer and layer.get_seq_length() for layer in cache.inner.layers]
        if kept != [TRIAL] * self.depth:
            raise ValueError(unfit(self.kind))
        bound = float(expected.max() - expected.min()) * (EXACT if self.dtype == torch.float32 else ROUNDED)
        self.takes_trees = self.takes_trees and self._distance(tokens, expected, True) <= bound
        if not (self.takes_trees or self._distance(tokens, expected, False) <= bound):
            raise ValueError(f"{self.kind} models give other logits after a roll-back, so they cannot run here")

    def _distance(self, tokens: Sequence[int], expected: Tensor, tree: bool) -> float:
        """How far the logits lie from those of one pass, where another token than d came after c first."""
        cache = self.new_cache(TRIAL)
        a, b, c, d, e, f = tokens
        rows = [self.forward([a, b], cache, rows=2)]
        if tree:
            rows += [self.forward([c, f, d, e], cache, (-1, -1, 1), 4)[[0, 2, 3]]]
            cache.keep(3, (1, 2))
        else:
            rows += [self.forward([c, f], cache, rows=2)[:1]]
            cache.keep(3)
            rows += [self.forward([d, e], cache, rows=2)]
        rows += [self.forward([f], cache)]
        return float((torch.cat(rows).float() - expected).abs().max())


def layers_of(model: nn.Module, depth: int) -> tuple[nn.Module, list[nn.Module]]:
    """The module around the blocks, and the blocks."""
    for around in model.modules():
        for part in around.children():
            if isinstance(part, nn.ModuleList) and len(part) == depth:
                return around, [*part]
    raise ValueError(f"{type(model).__name__} of transformers has no list of {depth} layers")


def first(said: Any) -> Any:
    return said[0] if isinstance(said, tuple) and said else said


def same(a: Any, b: Any) -> bool:
    return isinstance(a, Tensor) and isinstance(b, Tensor) and a.shape == b.shape and torch.equal(a, b.to(a.device))


def store(states: Tensor, start: int, given: Tensor) -> None:  # given: [1, n, width]
    states[start : start + given.shape[1]] = given[0].to(states.device)


def tree_mask(
    own: Tensor | None, start: int, depths: Sequence[int], parents: Sequence[int], device: torch.device
) -> Tensor:
    """What each node sees: of its own path, what `own` lets a chain see at that distance.  # [1, 1, n, start + n]

    `own` is the model's mask, where a token is seen True or 0; None if all before it are.
    """
    count, before = len(depths), len(depths) - len(parents)
    path = torch.ones(count, start + count, dtype=torch.bool).tril(start)
    for node, parent in enumerate(parents, before):
        path[node] = path[before + parent]
        path[node, start + node] = True
    path = path[None, None].to(device)
    if own is None:
        return path
    at = torch.tensor(depths, device=device)
    places = torch.cat([torch.arange(start, device=device), start + at])
    least = False if own.dtype == torch.bool else torch.finfo(own.dtype).min
    return own.to(device)[:, :, at][..., places].masked_fill(~path, least)
