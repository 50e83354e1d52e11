"""EAGLE-3: draft with one decoder layer on the target's features (Li et al. 2025, arXiv 2503.01840).

A matrix fuses the target's states of a low, a middle and a high layer at token i into the feature of token i. From this
feature and the embedding of token i + 1, the head predicts token i + 2. For further tokens, the head's own output
replaces the feature, as in training. After verification, the head reads accepted tokens again, with target features.
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
from ..models.reduced import draft_vocabulary, MAP, map_ids, output_rows, WRITES
from ..models.transformer import Transformer
from ..sampling import probabilities, Sampler
from ..types import Proposal, SamplingParams
from .base import HeadChainDrafter, HeadDrafter, siblings

BREADTH = 3  # the most children of a node, and the most expanded nodes of a level
# The most nodes of a tree, and so its most levels. With the text's last token they make 8 rows; more are slow on a CPU.
NODES = 7


def default_taps(layers: int) -> tuple[int, int, int]:
    """Return the default taps, the layers whose inputs are fused: low, middle, high."""
    return 2, layers // 2, layers - 3


def layer_config(data: Mapping[str, Any]) -> Config:
    """Read the config of the head's layer. As in vLLM, it has a sliding window only if `layer_types` says so."""
    kind, ignored = (data.get("layer_types") or [FULL])[0], ("layer_types", "sliding_window", "use_sliding_window")
    config = Config.parse(
        {name: value for name, value in data.items() if name not in ignored} | {"num_hidden_layers": 1}
    )
    return replace(config, windows={0: data["sliding_window"]} if kind == SLIDING else {})


class Eagle3Head:
    """A decoder of one layer. Its input is the feature, but its attention reads [norm(embedding), norm(feature)].

    The matrix `fc` fuses the states of the layers `taps` into a feature. The head drafts only the tokens of
    `draft_vocabulary`.
    """

    def __init__(
        self,
        config: Config,
        weights: Mapping[str, Tensor],
        target: Target,
        taps: Sequence[int],
        norm_before_residual: bool = False,
        stored: torch.dtype | None = None,
        norm_output: bool = False,
    ) -> None:
        """Make the head from `weights`, named as in the authors' checkpoints. Raises ValueError if they do not fit.

        With `norm_before_residual`, as in `speculators`, the input is the normed feature. With `norm_output`, as in
        EAGLE-3.1, the state that replaces the next feature is normed. `pack_weight` describes `stored`, the dtype of
        all matrices except embeddings.
        """
        weights = with_output_matrix(weights, target)
        width = target.width
        self.draft_vocabulary = draft_vocabulary(weights, target)
        shapes = head_tensors(config, weights, width, len(taps), self.draft_vocabulary.count)
        check_tensors({name: weights[name] for name in weights if name not in OPTIONAL}, shapes)
        embedding, fc = weights.get("embed_tokens.weight", target.embedding), weights["fc.weight"].float()
        norms = [weights[f"fc_norm.{i}.weight"] for i in range(len(taps)) if f"fc_norm.{i}.weight" in weights]
        norms = norms or ([weights[INPUT_NORM]] if INPUT_NORM in weights else [])
        if len(embedding) < target.vocabulary or embedding.shape[1:] != (width,):
            raise ValueError(
                f"the EAGLE-3 head embeds {tuple(embedding.shape)}; for this target it would embed {target.vocabulary} "
                f"tokens in {width} numbers"
            )
        config = replace(config, num_hidden_layers=1, tie_word_embeddings=False, max_position_embeddings=target.context)
        self.decoder = Transformer(config, decoder_weights(weights, embedding), target.dtype, target.device, stored)
        folding, norm = self.decoder.folding, weights["midlayer.hidden_norm.weight"]
        self.stream_norm = folding.norm(norm) if norm_before_residual else None
        size = fc.shape[1] // max(1, len(norms))  # of what each norm before `fc` reads
        before = torch.cat(norms).float() * folding.unit(size) if norms else None
        self.fc, self.fc_norms, self.fc_normalise = folding.matrix(fc, before), len(norms), folding.rms_norm(size)
        self.taps, self.norm_output = tuple(taps), norm_output
        self.parameters = sum(tensor.numel() for name, tensor in weights.items() if name not in ("d2t", "t2d"))

    def new_cache(self, capacity: int) -> StaticCache:
        return self.decoder.new_cache(capacity + BREADTH * NODES)  # with room for a tree's expanded nodes

    def fuse(self, states: Mapping[int, Tensor], places: slice | Tensor) -> Tensor:
        """Make the features of the tokens at `places` from the target's states there.  # [n, hidden]"""
        read = torch.cat([states[tap][places] for tap in self.taps], -1)
        if self.fc_norms:
            read = self.fc_normalise(read.unflatten(-1, (self.fc_norms, -1))).flatten(-2)
        return linear(read, self.fc)

    def inputs(self, features: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Return the residual stream, and the input of attention.  # [n, hidden], [n] -> [n, hidden], [n, 2 hidden]"""
        embedded = F.embedding(ids, self.decoder.embedding)
        normed = self.decoder.rms_normalise(torch.stack((embedded, features), 1))
        stream = features if self.stream_norm is None else normed[:, 1] * self.stream_norm
        return stream, normed.flatten(1)

    def forward(
        self, features: Tensor, tokens: Sequence[int], cache: StaticCache, parents: Sequence[int] = ()
    ) -> Tensor:  # [n, hidden], n ids -> [n, hidden]
        """Read each feature with the token after it, and append both to the cache as one entry. Return the outputs.

        In a draft, an output replaces the next feature. With `parents`, the last len(`parents`) tokens form a tree.
        """
        start = cache.length
        stream, pairs = self.inputs(features, torch.tensor(tokens, device=self.decoder.device))
        states = self.decoder.run_layers(stream, cache, start, parents=parents, read=pairs)
        cache.keep(start + len(tokens))
        return self.carried(states)

    def carried(self, states: Tensor) -> Tensor:
        """Norm the states that replace features in a draft, if the head was trained so.  # [n, hidden]"""
        return self.decoder.normed(states) if self.norm_output else states

    def logits(self, states: Tensor) -> Tensor:
        """Return the logits of states from `carried`.  # [n, hidden] -> [n, V of the draft]"""
        return self.decoder.project(states) if self.norm_output else self.decoder.logits(states)

    def candidates(self, states: Tensor, count: int) -> tuple[list[list[float]], list[list[int]]]:
        """Return log-probabilities and ids of the `count` likeliest tokens after each state [n, hidden]."""
        best = self.logits(states).float().log_softmax(-1).topk(min(count, self.draft_vocabulary.count))
        return best.values.tolist(), self.draft_vocabulary.target_ids(best.indices).tolist()


INPUT_NORM = "input_norm.weight"  # one norm of all states together, before `fc`; `fc_norm`: a norm of each
OPTIONAL = ("embed_tokens.weight", "d2t", "t2d")


def head_tensors(
    config: Config, weights: Mapping[str, Tensor], width: int, tap_count: int, vocabulary: int
) -> dict[str, tuple[int, ...]]:
    """Return names and shapes of a head's tensors, except OPTIONAL. Biases and norms are those of `weights`."""
    config = replace(
        config,
        biases=tuple(f"{part}_proj" for part in "qkvo" if f"midlayer.self_attn.{part}_proj.bias" in weights),
        qk_norm="midlayer.self_attn.q_norm.weight" in weights,
    )
    layer = {"hidden_norm.weight": (width,)} | config.layer_tensors(2 * width)
    norms = {f"fc_norm.{i}.weight": (width,) for i in range(tap_count) if "fc_norm.0.weight" in weights}
    if INPUT_NORM in weights:
        norms[INPUT_NORM] = (width * tap_count,)
    return norms | {
        "fc.weight": (width, width * tap_count),
        "norm.weight": (width,),
        "lm_head.weight": (vocabulary, width),
        **{f"midlayer.{name}": shape for name, shape in layer.items()},
    }


def with_output_matrix(weights: Mapping[str, Tensor], target: Target) -> dict[str, Tensor]:
    """Return weights with an output matrix; with WRITES and MAP, it is made from the target's output rows."""
    complete = dict(weights)
    if (writes := complete.pop(WRITES, None)) is not None and MAP in complete:
        complete["lm_head.weight"] = output_rows(target, map_ids(complete[MAP], target)) @ writes.float().T
    return complete


def decoder_weights(weights: Mapping[str, Tensor], embedding: Tensor) -> Weights:
    """Give the head's tensors the names that a `Transformer` of one layer expects. Add `embedding` [V, hidden]."""
    layer = {
        name.replace("midlayer.", "model.layers.0."): tensor
        for name, tensor in weights.items()
        if name.startswith("midlayer.")
    }
    norms = [weights[f"midlayer.{name}.weight"] for name in ("input_layernorm", "hidden_norm")]
    return layer | {
        "model.layers.0.input_layernorm.weight": torch.cat(norms),
        "model.embed_tokens.weight": embedding,
        "model.norm.weight": weights["norm.weight"],
        "lm_head.weight": weights["lm_head.weight"],
    }


class Eagle3Drafter(HeadChainDrafter[Eagle3Head]):
    """Drafts a chain, token by token, with an EAGLE-3 head."""

    name = "eagle3"


def draws_per_level(k: int) -> list[int]:
    """Return how many tokens to draw on each level, for at most NODES tokens on at most `k` levels."""
    depth = min(k, NODES)
    siblings_per_level, remainder = divmod(NODES - depth, depth)
    return [min(BREADTH, 1 + siblings_per_level + (level < remainder)) for level in range(depth)]


@dataclass(slots=True)
class Node:
    """A token that may join the tree."""

    token: int
    parent: int  # its index among all nodes; -1 for the text
    level: int
    score: float  # log-probability of the path that ends here
    feature: Tensor  # [hidden], the head's state at the node's parent


class Eagle3TreeDrafter(HeadDrafter[Eagle3Head]):
    """Drafts a tree. In greedy decoding, it consists of the likeliest nodes, as in EAGLE-2 (arXiv 2406.16858).

    At other temperatures, tokens are drawn. A choice among drawn tokens would change their distribution. Therefore
    these trees have a fixed shape: a chain whose tokens have siblings.
    """

    name, deepest = "eagle3:tree", NODES

    def draft(self, features: Tensor, pending: list[int], k: int, params: SamplingParams, sampler: Sampler) -> Proposal:
        if params.temperature == 0.0:
            return self._likeliest(features, pending, k)
        return self._drawn(features, pending, k, params, sampler)

    def _drawn(
        self, features: Tensor, pending: list[int], k: int, params: SamplingParams, sampler: Sampler
    ) -> Proposal:
        parent, counts = -1, draws_per_level(k)
        drafted, parents, distributions, seconds = list[int](), list[int](), list[Tensor](), list[float]()
        started = time.perf_counter()
        for level, count in enumerate(counts):
            features = self.forward(features, pending)[-1:]
            logits = self.head.logits(features)
            distribution, first = self.head.draft_vocabulary.spread(probabilities(logits, params))[0], len(drafted)
            for token, q in siblings(distribution, count, sampler, level):
                drafted.append(token)
                parents.append(parent)
                distributions.append(q)
                now = time.perf_counter()
                seconds.append(now - started)
                started = now
            parent, pending = first, [drafted[first]]
        return Proposal(tuple(drafted), tuple(parents), torch.stack(distributions), tuple(seconds))

    def _likeliest(self, features: Tensor, pending: list[int], k: int) -> Proposal:
        """Expand the likeliest nodes of each level. Then draft the NODES likeliest of all nodes."""
        times, nodes, frontier = [time.perf_counter()], list[Node](), [-1]
        expanded: list[int] = []
        best: list[int] = []
        states = self.forward(features, pending)[-1:]
        for level in range(min(k, NODES)):
            if level:  # read all expanded nodes again, which is cheaper than masks over cached nodes
                expanded += frontier
                states = self._read_tree(features[-1:], pending[-1], [nodes[i] for i in expanded], expanded)
                states = states[-len(frontier) :]
            candidates = self.head.candidates(states, BREADTH)
            for parent, state, scores, ids in zip(frontier, states, *candidates, strict=True):
                above = nodes[parent].score if level else 0.0
                nodes += [
                    Node(token, parent, level, above + score, state) for score, token in zip(scores, ids, strict=True)
                ]
            best = sorted(range(len(nodes)), key=lambda i: -nodes[i].score)[:NODES]
            times.append(time.perf_counter())
            # No child scores higher than its parent, so only the best nodes are expanded.
            frontier = [i for i in best if nodes[i].level == level][:BREADTH]
            if not frontier:
                break
        best = sorted(best)
        new_index = {-1: -1, **{node: i for i, node in enumerate(best)}}
        seconds = {level: after - before for level, (before, after) in enumerate(pairwise(times))}
        return Proposal(
            tuple(nodes[i].token for i in best),
            tuple(new_index[nodes[i].parent] for i in best),
            None,
            tuple(seconds.pop(nodes[i].level, 0.0) for i in best),  # a level's first node carries the level's time
        )

    def _read_tree(self, root: Tensor, token: int, nodes: list[Node], indices: list[int]) -> Tensor:
        """Read the feature `root` with `token`, then `nodes` as a tree; return the nodes' states.  # [n, hidden]"""
        self._cache.keep(self.view.cache.length - 1)
        features = torch.cat([root, torch.stack([node.feature for node in nodes])])
        parents = [-1 if node.parent < 0 else indices.index(node.parent) for node in nodes]
        return self.head.forward(features, [token, *(node.token for node in nodes)], self._cache, parents)[1:]
