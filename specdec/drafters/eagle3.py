"""EAGLE-3: one decoder layer on the target's own features drafts (Li et al. 2025, arXiv 2503.01840).

It reads pairs: what the target thought at token i (states of a low, a middle and a high layer, fused by one matrix)
beside the embedding of token i + 1, and predicts token i + 2. Further tokens follow from its own output in place of
the features; training has prepared it for that. After verification the pairs of accepted tokens are read again with
the target's true features.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..models.base import Target
from ..models.cache import StaticCache
from ..models.checkpoint import check_tensors, Weights
from ..models.config import Config, FULL, SLIDING
from ..models.matrix import linear
from ..models.reduced import MAP, output_rows, parse_map, WRITES
from ..models.transformer import layer_tensors, Transformer
from ..sampling import probabilities, Sampler
from ..types import Proposal, SamplingParams
from .base import Reader, ReadingChain, siblings

WIDTH = 3  # of a tree: nodes opened a level, and children of each
DEPTH = 8  # levels of a tree
NODES = 7  # drafted: with the text's last token eight rows, up to which a pass on a CPU grows slowly


def default_taps(layers: int) -> tuple[int, int, int]:
    """The layers whose inputs are fused: low, middle, high."""
    return 2, layers // 2, layers - 3


def checked_taps(names: Sequence[int], layers: int, after: bool = False) -> tuple[int, ...]:
    """The layers that config.json names, or, with `after`, those after them. ValueError unless the target has them."""
    taps = tuple(tap + after for tap in names)
    if min(taps) < 0 or max(taps) > layers:
        raise ValueError(f"the EAGLE-3 head reads layers {list(names)}; the target has {layers}")
    return taps


def layer_config(data: Mapping[str, Any]) -> Config:
    """Read the config of the head's one layer. Its window follows from `layer_types` for any model, as in vLLM."""
    kind, unread = (data.get("layer_types") or [FULL])[0], ("layer_types", "sliding_window", "use_sliding_window")
    config = Config.parse(
        {name: value for name, value in data.items() if name not in unread} | {"num_hidden_layers": 1}
    )
    return replace(config, windows={0: data["sliding_window"]} if kind == SLIDING else {})


class Eagle3Head:
    """A decoder of one layer whose attention reads [norm(embedding), norm(feature)], and whose stream is the feature.

    `fc` is [features · hidden, hidden], input-first. Only the target's tokens `ids` [draft vocabulary] can be drafted.
    """

    def __init__(
        self,
        config: Config,
        weights: Mapping[str, Tensor],
        target: Target,
        taps: Sequence[int],
        norm_before_residual: bool = False,
        stored: torch.dtype | None = None,
    ) -> None:
        """`weights` under the names of the authors' checkpoints. ValueError where they fit no head for `target`.

        With `norm_before_residual` (`speculators`) the stream begins with the normed feature, not the feature.
        `stored` is what matrices are rounded to (`draft_dtype`).
        """
        weights = with_output_matrix(weights, target)
        width = target.width
        self.ids = draft_vocabulary(weights, target).to(target.device)
        shapes = head_tensors(config, weights, width, len(taps), len(self.ids))
        check_tensors({name: weights[name] for name in weights if name not in OPTIONAL}, shapes)
        words, fc = weights.get("embed_tokens.weight", target.embedding), weights["fc.weight"].float()
        if len(words) < target.vocabulary or words.shape[1:] != (width,):
            raise ValueError(
                f"the EAGLE-3 head embeds {tuple(words.shape)}; for this target it would embed {target.vocabulary} "
                f"tokens in {width} numbers"
            )
        shape = replace(config, num_hidden_layers=1, tie_word_embeddings=False, max_position_embeddings=target.context)
        self.decoder = Transformer(shape, decoder_weights(weights, words), target.dtype, target.device, stored)
        self.stream_norm = None
        if norm_before_residual:
            norm = weights["midlayer.hidden_norm.weight"].float() * self.decoder.unit(width)
            self.stream_norm = norm.to(target.device, target.dtype)
        self.fc = self.decoder.matrix(fc)
        self.vocabulary, self.taps = target.vocabulary, tuple(taps)
        self.parameters = sum(tensor.numel() for name, tensor in weights.items() if name not in ("d2t", "t2d"))

    def new_cache(self, capacity: int) -> StaticCache:
        return self.decoder.new_cache(capacity + WIDTH * DEPTH)

    def fuse(self, states: Mapping[int, Tensor], places: slice | Tensor) -> Tensor:
        """Make the features of the tokens at `places` from the target's states there.  # [n, hidden]"""
        return linear(torch.cat([states[tap][places] for tap in self.taps], -1), self.fc)

    def inputs(self, features: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Return the stream and what attention reads.  # [n, hidden], [n] -> [n, hidden], [n, 2 hidden]"""
        words = F.embedding(ids, self.decoder.embedding)
        normed = self.decoder.rms_normalise(torch.stack((words, features), 1))
        stream = features if self.stream_norm is None else normed[:, 1] * self.stream_norm
        return stream, normed.flatten(1)

    def forward(
        self, features: Tensor, tokens: Sequence[int], cache: StaticCache, parents: Sequence[int] = ()
    ) -> Tensor:  # [n, hidden], n ids -> [n, hidden]
        """Append pairs of a feature and the token after it to the cache; return the layer's output.

        The output predicts the next feature. `parents` makes the last pairs a tree.
        """
        start = cache.length
        stream, pairs = self.inputs(features, torch.tensor(tokens, device=self.decoder.device))
        states = self.decoder.run_layers(stream, cache, start, parents=parents, read=pairs)
        cache.keep(start + len(tokens))
        return states

    def logits(self, states: Tensor) -> Tensor:
        """Logits over the target's vocabulary, -inf where the head has no token.  # [n, hidden] -> [n, V]"""
        logits = self.decoder.logits(states)
        if logits.shape[1] == self.vocabulary:
            return logits
        return logits.new_full((len(logits), self.vocabulary), float("-inf")).index_copy_(1, self.ids, logits)

    def candidates(self, states: Tensor, count: int) -> tuple[list[list[float]], list[list[int]]]:
        """The `count` likeliest tokens after each state: log-probabilities and ids.  # [n, hidden] -> n lists each"""
        best = self.decoder.logits(states).float().log_softmax(-1).topk(min(count, len(self.ids)))
        return best.values.tolist(), self.ids[best.indices].tolist()


OPTIONAL = ("embed_tokens.weight", "d2t", "t2d")


def head_tensors(
    config: Config, weights: Mapping[str, Tensor], width: int, taps: int, words: int
) -> dict[str, tuple[int, ...]]:
    """The names and shapes of a head without the OPTIONAL tensors. Biases and norms of q and k are used if present."""
    own = replace(
        config,
        biases=tuple(f"{part}_proj" for part in "qkvo" if f"midlayer.self_attn.{part}_proj.bias" in weights),
        qk_norm="midlayer.self_attn.q_norm.weight" in weights,
    )
    layer = {"hidden_norm.weight": (width,)} | layer_tensors(own, 2 * width)
    return {
        "fc.weight": (width, width * taps),
        "norm.weight": (width,),
        "lm_head.weight": (words, width),
        **{f"midlayer.{name}": shape for name, shape in layer.items()},
    }


def with_output_matrix(weights: Mapping[str, Tensor], target: Target) -> dict[str, Tensor]:
    """Give a head that writes through the target's output matrix, for a smaller file, its rows of that matrix."""
    whole = dict(weights)
    if (writes := whole.pop(WRITES, None)) is not None and MAP in whole:
        whole["lm_head.weight"] = output_rows(target, draft_vocabulary(whole, target)) @ writes.float().T
    return whole


def draft_vocabulary(weights: Mapping[str, Tensor], target: Target) -> Tensor:
    """The target's id of each of the head's tokens; all ids where the head brings no map.  # [draft V]"""
    return parse_map(weights.get(MAP, torch.zeros(target.vocabulary, dtype=torch.int64)), target.vocabulary)


def decoder_weights(weights: Mapping[str, Tensor], words: Tensor) -> Weights:
    """The head as a decoder of one layer, under the names that `Transformer` reads. `words` is [V, hidden]."""
    layer = {
        name.replace("midlayer.", "model.layers.0."): tensor
        for name, tensor in weights.items()
        if name.startswith("midlayer.")
    }
    norms = [weights[f"midlayer.{name}.weight"] for name in ("input_layernorm", "hidden_norm")]
    return layer | {
        "model.layers.0.input_layernorm.weight": torch.cat(norms),
        "model.embed_tokens.weight": words,
        "model.norm.weight": weights["norm.weight"],
        "lm_head.weight": weights["lm_head.weight"],
    }


class Eagle3Drafter(ReadingChain[Eagle3Head]):
    """Drafts a chain, token by token."""

    name = "eagle3"

    def step(self, pending: list[int]) -> Tensor:
        return self.head.logits(self.extend(pending))


def drawn_widths(k: int) -> list[int]:
    """The number of siblings on each level of a tree at most `k` deep whose tokens are drawn."""
    depth = min(k, NODES)
    each, more = divmod(NODES - depth, depth)
    return [min(WIDTH, 1 + each + (level < more)) for level in range(depth)]


@dataclass(slots=True)
class Node:
    """A candidate of a tree."""

    token: int
    parent: int  # -1 for the text
    level: int
    score: float  # log-probability of the path that ends here
    feature: Tensor  # [hidden], the state of its parent: what it is read with


class Eagle3TreeDrafter(Reader[Eagle3Head]):
    """Drafts the tree of EAGLE-2 (arXiv 2406.16858) when greedy: it holds the likeliest nodes of all.

    Where tokens are drawn, to choose among them would change their distribution: then the shape is fixed, a chain whose
    tokens have siblings.
    """

    name = "eagle3:tree"

    def propose(self, tokens: Sequence[int], k: int, params: SamplingParams, sampler: Sampler) -> Proposal:
        if k == 0 or self.view.cache.length == 0:
            return Proposal()
        pending = self.catch_up(tokens)
        return self._likeliest(pending, k) if params.temperature == 0.0 else self._drawn(pending, k, params, sampler)

    def _drawn(self, pending: list[int], k: int, params: SamplingParams, sampler: Sampler) -> Proposal:
        node, widths = -1, drawn_widths(k)
        drafted, parents, distributions, seconds = list[int](), list[int](), list[Tensor](), list[float]()
        started = time.perf_counter()
        for level, width in enumerate(widths):
            logits = self.head.logits(self.extend(pending))
            distribution, first = probabilities(logits, params)[0], len(drafted)
            for token, q in siblings(distribution, width, sampler, level):
                drafted.append(token)
                parents.append(node)
                distributions.append(q)
                now = time.perf_counter()
                seconds.append(now - started)
                started = now
            node, pending = first, [drafted[first]]
        return Proposal(tuple(drafted), tuple(parents), torch.stack(distributions), tuple(seconds))

    def _likeliest(self, pending: list[int], k: int) -> Proposal:
        """Open the most probable nodes of each level, keep the best of all by joint probability: point masses."""
        times, nodes, frontier = [time.perf_counter()], list[Node](), [-1]
        opened: list[int] = []
        best: list[int] = []
        root = self._features[-1:]
        states = self.extend(pending)
        for level in range(min(k, DEPTH)):
            if level:  # open nodes are read again with their children: a few more rows cost less than a mask for them
                opened += frontier
                states = self._reopened(root, pending[-1], [nodes[i] for i in opened], opened)[-len(frontier) :]
            candidates = self.head.candidates(states, WIDTH)
            for parent, state, scores, ids in zip(frontier, states, *candidates, strict=True):
                above = nodes[parent].score if level else 0.0
                nodes += [
                    Node(token, parent, level, above + score, state) for score, token in zip(scores, ids, strict=True)
                ]
            best = sorted(range(len(nodes)), key=lambda i: -nodes[i].score)[:NODES]
            times.append(time.perf_counter())
            # The children of a node that is not among the best cannot be among them either.
            frontier = [i for i in best if nodes[i].level == level][:WIDTH]
            if not frontier:
                break
        best = sorted(best)
        place = {-1: -1, **{node: i for i, node in enumerate(best)}}
        spent = {level: after - before for level, (before, after) in enumerate(pairwise(times))}
        return Proposal(
            tuple(nodes[i].token for i in best),
            tuple(place[nodes[i].parent] for i in best),
            None,
            tuple(spent.pop(nodes[i].level, 0.0) for i in best),  # the first node of a level carries its time
        )

    def _reopened(self, root: Tensor, token: int, nodes: list[Node], places: list[int]) -> Tensor:
        """Read `nodes` as a tree that follows the text's last pair; return their states.  # [nodes, hidden]"""
        self._cache.keep(self.view.cache.length - 1)
        features = torch.cat([root, torch.stack([node.feature for node in nodes])])
        parents = [-1 if node.parent < 0 else places.index(node.parent) for node in nodes]
        return self.head.forward(features, [token, *(node.token for node in nodes)], self._cache, parents)[1:]
