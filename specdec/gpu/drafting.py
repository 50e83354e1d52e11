"""Drafts chains and trees on the device, over tensors that stay in place, so that a CUDA graph can hold the steps.

The specification of each class is its drafter (`drafters/`); tests hold the two equal. The host's drafter caches. The
captured one recomputes its last positions, so that its shapes are fixed; its logits are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal

import torch
from torch import Tensor

from ..drafters.base import NoDrafter
from ..drafters.draft_model import DraftModelDrafter
from ..drafters.eagle3 import drawn_widths, Eagle3Drafter, Eagle3Head, Eagle3TreeDrafter, NODES, WIDTH
from ..drafters.early_exit import EarlyExitDrafter
from ..drafters.medusa import MedusaDrafter, MedusaHeads, MedusaTreeDrafter
from ..drafters.prompt_lookup import MAX_NGRAM, PromptLookupDrafter
from ..models.reduced import ReducedDraft
from ..models.transformer import Transformer
from ..sampling import probabilities
from ..types import SamplingParams
from .accept import draw, Extent
from .graphs import StaticDecoder
from .ops import Branches


@dataclass(frozen=True)
class Branching:
    """Heads that draft trees."""

    part: MedusaHeads | Eagle3Head


# What drafts: a model, heads, the target's own layers below the layer with this index, or prompt lookup.
Draft = Transformer | MedusaHeads | Eagle3Head | Branching | int | Literal["lookup"] | None


# What a drafter of exactly this class drafts with on the device. Other classes, subclasses too, draft on the host.
SOURCES: dict[type, Callable[[Any], Draft]] = {
    NoDrafter: lambda drafter: None,
    PromptLookupDrafter: lambda drafter: "lookup",
    DraftModelDrafter: lambda drafter: drafter.model,
    EarlyExitDrafter: lambda drafter: drafter.view.exit_layer,
    MedusaDrafter: lambda drafter: drafter.heads,
    MedusaTreeDrafter: lambda drafter: Branching(drafter.heads),
    Eagle3Drafter: lambda drafter: drafter.head,
    Eagle3TreeDrafter: lambda drafter: Branching(drafter.head),
}


@dataclass(frozen=True)
class Text:
    """A text on the device. The target's cache holds all of it but the last token."""

    tokens: Tensor  # [capacity + places beyond, aligned]
    length: Tensor  # [1], two at least where there is a draft
    drafted: Tensor  # [nodes], after the text
    target: StaticDecoder
    depth: int  # K: a cycle adds at most K + 1 tokens


class Steps:
    """Drafts token by token.

    `reach` is how many of the text's last tokens the first step of a draft reads again. After cycles without a draft,
    call `catch_up` for the tokens before those. A draft with a vocabulary of its own has its tokens' ids in the target's.
    """

    reach: int
    ids: Tensor | None = None  # [V of the draft]

    def __init__(self, text: Text) -> None:
        self.text, self.k = text, text.depth
        self.reach = len(text.tokens)  # the whole text: without a cache of its own there is nothing to catch up on

    def prefill(self, prompt: Sequence[int]) -> None:
        """Read the prompt, after the target has read it."""

    def catch_up(self, first: int, last: int, bucket: int) -> None:
        """Read the tokens from `first` to below `last`. Both are known to the host alone, so no graph holds this."""

    def valid_drafts(self, accepted: int, k: int) -> int:
        """How many of its `accepted` drafts are in its own cache already, and need not be read again."""
        return 0

    def logits(self, bucket: int, k: int) -> Iterator[Tensor]:
        """Yield logits after the text, then after each draft, which is in `drafted` by then.  # k times [1, own V]"""
        raise NotImplementedError


class DraftModelSteps(Steps):
    """Drafts with a model. The first step reads the last two tokens, so that no cycle needs a further pass.

    After full acceptance the model has read neither its own last draft nor the bonus token. In all other cycles one of
    the two is read a second time, which changes nothing.
    """

    def __init__(self, text: Text, model: Transformer) -> None:
        super().__init__(text)
        self.decoder, self.reach = StaticDecoder(model, len(text.tokens)), 2
        self.ids = model.ids if isinstance(model, ReducedDraft) else None

    def prefill(self, prompt: Sequence[int]) -> None:
        self.decoder.prefill(prompt)

    def catch_up(self, first: int, last: int, bucket: int) -> None:
        self.decoder.run_layers(self.text.tokens[first:last], self.decoder.place(first), bucket)

    def valid_drafts(self, accepted: int, k: int) -> int:
        return min(accepted, k - 1)  # it never reads the last one

    def logits(self, bucket: int, k: int) -> Iterator[Tensor]:
        text, places = self.text, self.decoder.places(self.text.length - 2, k + 1)
        yield self._logits(text.tokens.index_select(0, places[:2]), places[:1], bucket)
        for i in range(1, k):
            yield self._logits(text.drafted[i - 1 : i], places[i + 1 : i + 2], bucket)

    def _logits(self, ids: Tensor, start: Tensor, bucket: int) -> Tensor:
        """Read `ids`; return logits of the draft's own vocabulary after the last one.  # [1, own V]"""
        return self.decoder.model.own_logits(self.decoder.run_layers(ids, start, bucket)[-1:])


class EarlyExitSteps(Steps):
    """Drafts with the target's first layers. Verification continues from the states that they leave."""

    def logits(self, bucket: int, k: int) -> Iterator[Tensor]:
        text, target, start = self.text, self.text.target, self.text.length - 1
        token = text.tokens.index_select(0, start)
        for i in range(k):
            yield target.model.logits(target.run_layers(token, start + i, bucket, 0, target.cache.exit_layer))
            token = text.drafted[i : i + 1]


class MedusaSteps(Steps):
    """Drafts all tokens at once, from the target's last state."""

    def __init__(self, text: Text, heads: MedusaHeads) -> None:
        super().__init__(text)
        self.heads = heads

    def logits(self, bucket: int, k: int) -> Iterator[Tensor]:
        (tap,) = self.heads.taps
        state = self.text.target.cache.states[tap].index_select(0, self.text.length - 2)
        yield from self.heads.logits(state, k)[:, None]


class Eagle3Steps(Steps):
    """Drafts with an EAGLE-3 head. Its first step reads the last K + 1 pairs: the last cycle may have added that many.

    Pair i is the target's features of token i with the embedding of token i + 1; it stands at place i of the head's
    cache. If the text has fewer pairs, the step also reads some beyond its end: they are masked for the pairs of the
    text, and overwritten before anything reads them.
    """

    def __init__(self, text: Text, head: Eagle3Head) -> None:
        super().__init__(text)
        self.head, self.decoder = head, StaticDecoder(head.decoder, len(text.tokens))
        self.reach, self.ids = self.k + 1, head.ids

    def prefill(self, prompt: Sequence[int]) -> None:
        self.decoder.clear()
        if pairs := len(prompt) - 1:
            features = self.head.fuse(self.text.target.cache.states, slice(pairs))
            self.head.forward(features, prompt[1:], self.decoder.cache)

    def catch_up(self, first: int, last: int, bucket: int) -> None:
        first -= 1  # the pair that ends with token `first`
        places = self.decoder.places(self.decoder.place(first), last - 1 - first)
        features = self.head.fuse(self.text.target.cache.states, places)
        self._read(features, self.text.tokens[first + 1 : last], self.decoder.place(first), bucket)

    def logits(self, bucket: int, k: int) -> Iterator[Tensor]:
        state, places = self._after_text(bucket), self.decoder.places(self.last, k)
        yield self.head.decoder.logits(state)
        for i in range(1, k):
            state = self._read(state, self.text.drafted[i - 1 : i], places[i : i + 1], bucket)
            yield self.head.decoder.logits(state)

    @property
    def last(self) -> Tensor:
        """The place of the text's last pair.  # [1]"""
        return self.text.length - 2

    def _after_text(self, bucket: int) -> Tensor:
        """Read the last K + 1 pairs; return the state after the last one.  # [1, hidden]"""
        text, last = self.text, self.last
        start = (last - self.k).clamp(min=0)
        places = self.decoder.places(start, self.k + 1)
        features = self.head.fuse(text.target.cache.states, places)
        states = self._read(features, text.tokens.index_select(0, places + 1), start, bucket)
        return states.index_select(0, last - start)

    def _read(
        self, features: Tensor, tokens: Tensor, start: Tensor, bucket: int, branches: Branches | None = None
    ) -> Tensor:
        hidden, pairs = self.head.inputs(features, tokens)
        return self.decoder.run_layers(hidden, start, bucket, read=pairs, branches=branches)


@dataclass(frozen=True)
class Grown:
    """A draft's tree, [n] each. Nodes stand level by level."""

    tokens: Tensor
    parents: Tensor
    real: Tensor  # bool: False for nodes without a token, where a distribution had fewer tokens than nodes
    distributions: Tensor | None  # [n, V] that they were drawn from; None if they were chosen outright
    highest: Tensor  # the maximum of every row of logits


class TreeSteps(Steps):
    """Drafts a tree whose number of nodes follows from its depth."""

    def nodes(self, k: int) -> int:
        """The number of nodes in a tree `k` deep."""
        raise NotImplementedError

    def grow(self, bucket: int, k: int, params: SamplingParams, uniform: Tensor) -> Grown:
        """Grow a tree `k` deep after the text, by uniform numbers [depth, width]."""
        raise NotImplementedError


class MedusaTreeSteps(MedusaSteps, TreeSteps):
    """Drafts a tree of fixed shape. Siblings of a level are the same below every parent."""

    def __init__(self, text: Text, heads: MedusaHeads) -> None:
        super().__init__(text, heads)
        self.paths = [path for path in heads.tree if len(path) <= self.k]  # the shorter first
        place = {(): -1, **{path: node for node, path in enumerate(self.paths)}}
        ranks = [path[-1] for path in self.paths]
        self.width = 1 + max(ranks)
        self.widths = [1 + max(p[-1] for p in self.paths if len(p) == level + 1) for level in range(self.k)]
        device = text.tokens.device
        self.parents = torch.tensor([place[path[:-1]] for path in self.paths], device=device)
        # The index of each node in the flattened choices: greedily `width` ranks a level, else `widths` draws a level.
        self.by_rank = torch.tensor([(len(p) - 1) * self.width + p[-1] for p in self.paths], device=device)
        self.by_draw = torch.tensor([sum(self.widths[: len(p) - 1]) + p[-1] for p in self.paths], device=device)

    def nodes(self, k: int) -> int:
        return sum(len(path) <= k for path in self.paths)

    def grow(self, bucket: int, k: int, params: SamplingParams, uniform: Tensor) -> Grown:
        n, logits = self.nodes(k), torch.cat([*self.logits(bucket, k)])
        parents, highest = self.parents[:n], logits.amax(-1)
        if params.temperature == 0.0:
            tokens = logits.topk(self.width).indices.flatten().index_select(0, self.by_rank[:n])
            return Grown(tokens, parents, torch.ones_like(parents).bool(), None, highest)
        rows = zip(probabilities(logits, params), uniform, self.widths, strict=False)
        tokens, distributions, real = gathered(siblings(distribution, u[:width]) for distribution, u, width in rows)
        chosen = self.by_draw[:n]
        tokens, real = tokens.index_select(0, chosen), real.index_select(0, chosen)
        return Grown(tokens, parents, real, distributions.index_select(0, chosen), highest)


class Eagle3TreeSteps(Eagle3Steps, TreeSteps):
    """Drafts the likeliest nodes of all when greedy; else a chain whose tokens have siblings."""

    def __init__(self, text: Text, head: Eagle3Head, drawn: bool) -> None:
        super().__init__(text, head)
        device = text.tokens.device
        self.drawn, self.width = drawn, min(WIDTH, len(head.ids))
        shapes = {k: chain_with_siblings(drawn_widths(k)) for k in range(1, self.k + 1)}
        self.parents = {k: torch.tensor(shape, device=device) for k, shape in shapes.items()}
        self.none = torch.full((1,), -1, device=device)
        self.same = torch.eye(self.width, dtype=torch.bool, device=device)

    def nodes(self, k: int) -> int:
        if self.drawn:
            return sum(drawn_widths(k))
        return min(NODES, self.width + (k - 1) * self.width**2)

    def grow(self, bucket: int, k: int, params: SamplingParams, uniform: Tensor) -> Grown:
        return self._drawn(bucket, k, params, uniform) if self.drawn else self._likeliest(bucket, k)

    def _drawn(self, bucket: int, k: int, params: SamplingParams, uniform: Tensor) -> Grown:
        state, highest = self._after_text(bucket), list[Tensor]()
        levels = list[list[tuple[Tensor, Tensor, Tensor]]]()
        for level, width in enumerate(drawn_widths(k)):
            if level:
                state = self._read(state, levels[-1][0][0], self.last + level, bucket)
            logits = self.head.logits(state)
            highest.append(logits.amax(-1))
            levels.append([*siblings(probabilities(logits, params)[0], uniform[level, :width])])
        tokens, distributions, real = gathered(levels)
        return Grown(tokens, self.parents[k], real, distributions, torch.cat(highest))

    def _likeliest(self, bucket: int, k: int) -> Grown:
        """Expand the best `width` candidates of each level, then keep the best `nodes(k)` of all candidates.

        An expanded node that is not kept has no kept node below it, since scores only fall. Expanded nodes stay in the
        cache after the text, level by level.
        """
        w, last, state = self.width, self.last, self._after_text(bucket)
        scores, tokens, highest = self._candidates(state)
        candidates = scores[0], tokens[0], self.none.expand(w)  # of one level: scores, tokens, parents among `every`
        every, first = [candidates], 0  # the candidates of all levels; `first` is the index of this level's first one
        levels, follows = last[:0], self.same[:1, :0]
        for level in range(1, k):
            scores, order = (part[:w] for part in candidates[0].sort(descending=True, stable=True))
            number, parent = first + order, order // w  # index among all candidates; index of its parent's state
            levels = torch.cat([levels, (last + level).expand(w)])
            follows = torch.cat([follows.index_select(0, parent), self.same], 1)
            branches = Branches((last + level).expand(w), last + 1, levels, follows)
            place = last + 1 + (level - 1) * w
            tokens = candidates[1].index_select(0, order)
            state = self._read(state.index_select(0, parent), tokens, place, bucket, branches)
            gains, tokens, high = self._candidates(state)
            highest, first = torch.cat([highest, high]), first + len(candidates[0])
            candidates = (scores[:, None] + gains).flatten(), tokens.flatten(), number[:, None].expand(w, w).flatten()
            every.append(candidates)
        scores, tokens, parents = (torch.cat(parts) for parts in zip(*every, strict=True))
        best = scores.sort(descending=True, stable=True).indices[: self.nodes(k)].sort().values
        parents = parents.index_select(0, best)
        place = (best < parents[:, None]).sum(1).masked_fill(parents < 0, -1)
        return Grown(tokens.index_select(0, best), place, torch.ones_like(best).bool(), None, highest)

    def _candidates(self, states: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """`Eagle3Head.candidates` on the device, and the highest logits.  # [n, w], [n, w], [n]"""
        logits = self.head.decoder.logits(states).float()
        best = logits.log_softmax(-1).topk(self.width)
        return best.values.double(), self.head.ids[best.indices], logits.amax(-1)


def chain_with_siblings(widths: Sequence[int]) -> list[int]:
    """The parents of a tree in which all nodes of a level are children of the first node of the level before."""
    firsts = [-1, *accumulate(widths, initial=0)]
    return [first for first, width in zip(firsts, widths, strict=False) for _ in range(width)]


def siblings(distribution: Tensor, uniform: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Draw a sibling for each of `uniform` [count], as `drafters.base.siblings` does.

    Yields the token [1], its distribution [V], and whether there is one [1].
    """
    real = torch.ones_like(uniform[:1]).bool()
    for i in range(len(uniform)):
        token = draw(distribution, uniform[i : i + 1])
        yield token, distribution, real
        left = distribution.scatter(0, token, 0.0)
        mass = left.sum(0, keepdim=True)
        real = real & (mass > 0.0)
        distribution = torch.where(mass > 0.0, left / mass, distribution)


def gathered(levels: Iterable[Iterable[tuple[Tensor, Tensor, Tensor]]]) -> tuple[Tensor, Tensor, Tensor]:
    """Join the siblings of all levels: tokens [n], distributions [n, V], and which are real [n]."""
    tokens, distributions, real = zip(*(one for level in levels for one in level), strict=True)
    return torch.cat(tokens), torch.stack(distributions), torch.cat(real)


def extent_of(draft: Draft, k: int) -> Extent:
    """How large a draft of at most `k` levels can be. Medusa has a head for each level."""
    if draft is None:
        return Extent.chain(0)
    if isinstance(draft, MedusaHeads):
        return Extent.chain(min(k, draft.count))
    if not isinstance(draft, Branching):
        return Extent.chain(k)
    if isinstance(draft.part, Eagle3Head):
        return Extent(min(k, NODES), NODES, WIDTH)
    paths = [path for path in draft.part.tree if len(path) <= k]
    return Extent(max(map(len, paths), default=0), len(paths), 1 + max((path[-1] for path in paths), default=0))


def places_beyond(draft: Draft, k: int) -> int:
    """How many cache positions a cycle of depth `k` writes to, from the text's last token on."""
    if k == 0:
        return 1
    expanded = WIDTH * (k - 1) if isinstance(draft, Branching) and isinstance(draft.part, Eagle3Head) else 0
    return max(extent_of(draft, k).nodes, expanded) + 1


def target_for(draft: Draft, target: Transformer, capacity: int) -> StaticDecoder:
    """Prepare the target so that it stores the states that are drafted from."""
    if isinstance(draft, int):
        return StaticDecoder(target, capacity, exit_layer=draft)
    part = draft.part if isinstance(draft, Branching) else draft
    return StaticDecoder(target, capacity, part.taps if isinstance(part, MedusaHeads | Eagle3Head) else ())


def steps_of(draft: Transformer | MedusaHeads | Eagle3Head | Branching | int, text: Text, drawn: bool) -> Steps:
    """Make the steps that draft with `draft`. `drawn` says whether its tokens are sampled, or chosen outright."""
    if isinstance(draft, Branching):
        part = draft.part
        return MedusaTreeSteps(text, part) if isinstance(part, MedusaHeads) else Eagle3TreeSteps(text, part, drawn)
    if isinstance(draft, Transformer):
        return DraftModelSteps(text, draft)
    if isinstance(draft, MedusaHeads):
        return MedusaSteps(text, draft)
    return Eagle3Steps(text, draft) if isinstance(draft, Eagle3Head) else EarlyExitSteps(text)


def look_up(text: Text, bucket: int) -> tuple[Tensor, Tensor]:
    """Copy what followed the longest suffix of 3, 2 or 1 tokens at its latest earlier place.

    Returns the copy [K], and whether there is such a place, bool [1]. This is `PromptLookupDrafter` without its index.
    """
    tokens, length = text.tokens[:bucket], text.length
    ends = torch.arange(bucket, device=tokens.device)
    same = ends < length
    score = torch.zeros_like(ends)
    for n in range(1, MAX_NGRAM + 1):
        suffix = tokens.index_select(0, (length - n).clamp(min=0))
        same = same & (ends >= n) & (tokens.roll(n) == suffix)
        score = score + same
    best = (score * bucket + ends).masked_fill(ends >= length, -1).amax(0, keepdim=True)
    match = best % bucket
    # A copy may run on into itself.
    places = match + ends[: len(text.drafted)] % (length - match).clamp(min=1)
    return tokens.index_select(0, places), best >= bucket
