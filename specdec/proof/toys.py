"""Define toy models, toy drafters, and the cases on which the shipped loop is enumerated."""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product

import torch
from torch import Tensor

from ..drafters.base import Drafter, siblings
from ..drafters.draft_model import DraftModelDrafter
from ..engine import generate, Task
from ..events import Committed, Failed
from ..rules import RULES
from ..sampling import probabilities, Sampler
from ..types import Proposal, SamplingParams
from ..verify import RejectionSampling, Rule
from .enumeration import completed, JointDistribution, output_distribution, total_variation
from .warp import warped

PROMPT = (0,)
DEEPEST = 16  # levels of the deepest draft on the page
PARAMS = (
    SamplingParams(temperature=1.0),
    SamplingParams(temperature=0.0),
    SamplingParams(temperature=0.5),
    SamplingParams(temperature=2.0),
    SamplingParams(temperature=1.0, top_k=2),
    SamplingParams(temperature=0.8, top_p=0.8),
    SamplingParams(temperature=1.3, top_k=3, top_p=0.9),
)


@dataclass
class TokenList:
    """The cache of a `ByPrefix` model. It holds the tokens themselves."""

    tokens: list[int]

    @property
    def length(self) -> int:
        return len(self.tokens)

    def keep(self, length: int, path: Sequence[int] = ()) -> None:
        self.tokens = self.tokens[:length] + [self.tokens[length + i] for i in path]


class ByPrefix:
    """A language model whose logits a subclass computes from all tokens so far. It also accepts trees of tokens."""

    vocabulary: int
    context: int

    def logits(self, prefix: tuple[int, ...]) -> Tensor:
        """Return the logits [V] after this prefix."""
        raise NotImplementedError

    def new_cache(self, capacity: int) -> TokenList:
        return TokenList([])

    def forward(self, tokens: Sequence[int], cache: TokenList, parents: Sequence[int] = (), rows: int = 1) -> Tensor:
        first = len(tokens) - len(parents)
        prefixes: list[tuple[int, ...]] = []
        for i, token in enumerate(tokens):
            if i < first:
                before = tuple(cache.tokens) if i == 0 else prefixes[-1]
            else:
                before = prefixes[first + parents[i - first]]
            prefixes.append((*before, token))
        cache.tokens += tokens
        return torch.stack([self.logits(prefix) for prefix in prefixes[len(prefixes) - rows :]])


class TableModel(ByPrefix):
    """A toy language model: random float64 logits for every prefix, drawn once.

    A place's index is the number of tokens before it. `free` lists the places whose rows are random; None means all. At
    every other place one token, the same in all models, has probability 1.
    """

    def __init__(
        self,
        vocabulary: int,
        seed: int,
        base: TableModel | None = None,
        context: int = 64,
        free: tuple[int, ...] | None = None,
    ) -> None:
        self.vocabulary, self.seed, self.base, self.context, self.free = vocabulary, seed, base, context, free
        self._rows: dict[tuple[int, ...], Tensor] = {}

    def logits(self, prefix: tuple[int, ...]) -> Tensor:
        """Return logits [V]. With `base` they are 0.6 times its logits plus noise, so that drafts resemble targets."""
        if prefix not in self._rows:
            rng = random.Random(f"{self.seed}:{prefix}")
            noise = torch.tensor([rng.gauss(0.0, 1.2) for _ in range(self.vocabulary)], dtype=torch.float64)
            row = noise if self.base is None else 0.6 * self.base.logits(prefix) + 0.75 * noise
            if self.free is not None and len(prefix) not in self.free:
                sure = random.Random(f"sure:{prefix}").randrange(self.vocabulary)
                row = torch.full_like(noise, -math.inf).index_fill(0, torch.tensor([sure]), 0.0)
            self._rows[prefix] = row
        return self._rows[prefix]


class TreeDrafter:
    """Drafts a small tree: `width` siblings at each level. Only the first sibling has children.

    `how` is "sampled" (i.i.d. siblings), "without replacement" (q conditional on the earlier siblings) or
    "top" (deterministic top candidates: point masses).
    """

    name = "tree"

    def __init__(self, model: TableModel, width: int = 2, how: str = "sampled") -> None:
        self.model, self.width, self.how = model, width, how

    def propose(self, tokens: Sequence[int], k: int, params: SamplingParams, sampler: Sampler) -> Proposal:
        drafted: list[int] = []
        parents: list[int] = []
        distributions: list[Tensor] = []
        node, prefix = -1, tuple(tokens)
        for level in range(k):
            distribution, first = probabilities(self.model.logits(prefix)[None], params)[0], len(drafted)
            for token, q in drafted_siblings(distribution, self.width, self.how, sampler, level):
                drafted.append(token)
                parents.append(node)
                distributions.append(q)
            node, prefix = first, (*prefix, drafted[first])
        probs = torch.stack(distributions) if distributions and self.how != "top" else None
        return Proposal(tuple(drafted), tuple(parents), probs)


def drafted_siblings(
    distribution: Tensor, width: int, how: str, sampler: Sampler, level: int
) -> Iterable[tuple[int, Tensor]]:
    """Draft up to `width` tokens for one place. Return (token, q) of each; the caller ignores the q of "top" tokens."""
    width = min(width, int((distribution > 0).sum()))
    if how == "without replacement":
        return siblings(distribution, width, sampler, level)
    if how == "top":
        return [(token, distribution) for token in distribution.topk(width).indices.tolist()]
    return [(sampler.categorical(distribution, ("draft", level)), distribution) for _ in range(width)]


class LookupToy:
    """Drafts a chain of point masses, which repeats the last token of the text."""

    name = "point"

    def propose(self, tokens: Sequence[int], k: int, params: SamplingParams, sampler: Sampler) -> Proposal:
        return Proposal.chain([tokens[-1]] * k)


@functools.lru_cache(256)
def toy_models(vocabulary: int, seed: int, free: tuple[int, ...] | None = None) -> tuple[TableModel, TableModel]:
    """Make a target and a draft model that resembles it. Every path of an enumeration reuses them."""
    target = TableModel(vocabulary, seed, free=free)
    return target, TableModel(vocabulary, seed + 10_000, base=target, free=free)


@dataclass(frozen=True)
class Case:
    """A toy on which the loop can be enumerated. The prefill writes one token, and `length` more follow."""

    vocabulary: int = 3
    k: int = 2
    length: int = 3
    params: SamplingParams = PARAMS[0]
    drafter: str = "model"  # model | point | sampled | without replacement | top
    seed: int = 0
    end: bool = False  # whether token V - 1 ends the text
    free: tuple[int, ...] | None = None  # the places at which more than one token is possible; None: all of them

    def models(self) -> tuple[TableModel, TableModel]:
        return toy_models(self.vocabulary, self.seed, self.free)

    def make_drafter(self, draft: TableModel) -> Drafter:
        if self.drafter == "model":
            return DraftModelDrafter(draft)
        if self.drafter == "point":
            return LookupToy()
        return TreeDrafter(draft, how=self.drafter)

    def task(self, rule: Rule | None = None, drafter: Drafter | None = None) -> Task:
        target, draft = self.models()
        params = replace(self.params, max_tokens=self.length + 1)
        drafter, rule = drafter or self.make_drafter(draft), rule or RejectionSampling()
        return Task(target, PROMPT, params, drafter, self.k, rule, self.ends, details=False)

    @property
    def ends(self) -> frozenset[int]:
        return frozenset({self.vocabulary - 1} if self.end else ())

    def exact_distribution(self) -> JointDistribution:
        """Return the target's distribution of texts: products of rows that `warp.py` computes, not the shipped code."""
        target = self.models()[0]

        def row(text: tuple[int, ...]) -> list[float]:
            return warped(target.logits((*PROMPT, *text)).tolist(), self.params)

        return completed({(): 1.0}, self.length + 1, row, self.ends)


def run_loop(task_of: Callable[[], Task]) -> Callable[[Sampler], tuple[int, ...]]:
    """Make a function that runs the shipped loop with a sampler. It makes a new task for every path."""

    def run(sampler: Sampler) -> tuple[int, ...]:
        tokens: list[int] = []
        for event in generate(task_of(), sampler):
            if isinstance(event, Committed):
                tokens += event.tokens
            elif isinstance(event, Failed):  # the loop goes on without a crashed drafter, so its text would pass
                return (-1,)
        return tuple(tokens)

    return run


def shipped_error(case: Case, limit: int = 100_000, rule: str = "rejection") -> tuple[float, int]:
    """Return the total variation between the shipped loop's distribution and the target's, and the number of paths."""
    distribution, count = output_distribution(run_loop(lambda: case.task(RULES[rule]())), limit)
    return total_variation(distribution, case.exact_distribution()), count


CHAINS = ("model", "point")
DRAFTERS = (*CHAINS, "sampled", "without replacement", "top")


def cases(rule: str = "rejection") -> list[Case]:
    """Return the cases that the tests and the command `prove` enumerate. In about a third, one token ends the text.

    If the rule judges chains only, there are no trees.
    """
    return [
        Case(vocabulary, k, length, PARAMS[p], drafter, seed=index, end=(vocabulary + k + length + p) % 3 == 0)
        for index, (vocabulary, k, length, p, drafter) in enumerate(
            product((2, 3, 4, 5), (0, 1, 2, 3), (1, 2, 3, 4), range(len(PARAMS)), DRAFTERS)
        )
        if k <= length and (RULES[rule].trees or drafter in CHAINS)
    ]


def deep_loops(rule: str = "rejection") -> list[Case]:
    """Return cases with drafts of up to sixteen levels. In each, only two neighbouring places are free."""
    drafters = ("model", "top", "model", "without replacement") if RULES[rule].trees else ("model",)
    return [
        Case(3, DEEPEST, DEEPEST + 1, drafter=drafters[at % len(drafters)], seed=at, free=(at, at + 1))
        for at in range(1, DEEPEST + 2)
    ]
