"""Define toy models, toy drafters, and the cases on which the shipped loop, `loop.generate`, is enumerated."""

import functools
import heapq
import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product

import torch
from torch import Tensor

from ..drafters.base import Drafter, siblings
from ..drafters.draft_model import DraftModelDrafter
from ..events import Committed, Failed
from ..host import HostExecutor
from ..loop import generate
from ..rules import RULES
from ..sampling import probabilities, Sampler
from ..task import Task
from ..types import Proposal, SamplingParams
from ..verify import RejectionSampling, Rule
from .enumeration import completed, JointDistribution, Tokens

PROMPT = (0,)
DEEPEST = 16  # the largest K on the page
CHAIN_DRAFTERS = ("model", "point")
DRAFTERS = (*CHAIN_DRAFTERS, "sampled", "without replacement", "top")
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
    """The cache of a `ByPrefix` model. Instead of keys and values, it holds the tokens."""

    tokens: list[int]

    @property
    def length(self) -> int:
        return len(self.tokens)

    def keep(self, length: int, path: Sequence[int] = ()) -> None:
        self.tokens = self.tokens[:length] + [self.tokens[length + i] for i in path]


class ByPrefix:
    """A language model. A subclass computes the logits after any sequence of tokens."""

    vocabulary: int
    context: int
    chains_only = False

    def logits(self, prefix: Tokens) -> Tensor:
        """Return the logits [V] after this prefix."""
        raise NotImplementedError

    def new_cache(self, capacity: int) -> TokenList:
        return TokenList([])

    def forward(self, tokens: Sequence[int], cache: TokenList, parents: Sequence[int] = (), rows: int = 1) -> Tensor:
        chain_length = len(tokens) - len(parents)  # the other tokens form a tree
        prefixes: list[Tokens] = []
        for i, token in enumerate(tokens):
            if i < chain_length:
                before = tuple(cache.tokens) if i == 0 else prefixes[-1]
            else:
                before = prefixes[chain_length + parents[i - chain_length]]
            prefixes.append((*before, token))
        cache.tokens += tokens
        return torch.stack([self.logits(prefix) for prefix in prefixes[len(prefixes) - rows :]])


class TableModel(ByPrefix):
    """A toy language model: random float64 logits for every prefix, drawn once.

    `free` lists the lengths of prefixes with random logits; None means all. After a prefix of any other length, one
    token has probability 1, the same for the target and the draft.
    """

    def __init__(
        self,
        vocabulary: int,
        seed: int,
        base: "TableModel | None" = None,
        context: int = 64,
        free: tuple[int, ...] | None = None,
    ) -> None:
        self.vocabulary, self.seed, self.base, self.context, self.free = vocabulary, seed, base, context, free
        self._rows: dict[Tokens, Tensor] = {}

    def logits(self, prefix: Tokens) -> Tensor:
        """Return logits [V], which resemble those of `base`."""
        if prefix not in self._rows:
            rng = random.Random(f"{self.seed}:{prefix}")
            noise = torch.tensor([rng.gauss(0.0, 1.2) for _ in range(self.vocabulary)], dtype=torch.float64)
            row = noise if self.base is None else 0.6 * self.base.logits(prefix) + 0.75 * noise
            if self.free is not None and len(prefix) not in self.free:
                certain = random.Random(f"sure:{prefix}").randrange(self.vocabulary)
                row = torch.full_like(noise, -math.inf).index_fill(0, torch.tensor([certain]), 0.0)
            self._rows[prefix] = row
        return self._rows[prefix]


class TreeDrafter(Drafter):
    """Drafts a small tree: `width` siblings at each level. Only the first sibling has children.

    `how` says how siblings are chosen: "sampled" (i.i.d. draws), "without replacement" (each q excludes the earlier
    siblings) or "top" (the likeliest tokens, as point masses).
    """

    name = "tree"

    def __init__(self, model: TableModel, width: int = 2, how: str = "sampled") -> None:
        self.model, self.width, self.how = model, width, how

    def propose(self, tokens: Sequence[int], k: int, params: SamplingParams, sampler: Sampler) -> Proposal:
        def row(text: Tokens) -> Tensor:
            return probabilities(self.model.logits((*tokens, *text))[None], params)[0]

        return drafted_tree(row, k, self.width, self.how, sampler, breadth=1)


def drafted_tree(
    row: Callable[[Tokens], Tensor], k: int, width: int, how: str, sampler: Sampler, breadth: int | None = None
) -> Proposal:
    """Draft a tree of `k` levels from q [V] = row(drafted). At most `breadth` nodes of a level have children."""
    tokens, parents, distributions = list[int](), list[int](), list[Tensor]()
    level: list[tuple[int, Tokens]] = [(-1, ())]
    for depth in range(k):
        deeper = []
        for node, text in level[:breadth]:
            for token, distribution in drafted_siblings(row(text), width, how, sampler, depth):
                deeper.append((len(tokens), (*text, token)))
                tokens.append(token)
                parents.append(node)
                distributions.append(distribution)
        level = deeper
    probs = torch.stack(distributions) if distributions and how != "top" else None
    return Proposal(tuple(tokens), tuple(parents), probs)


def drafted_siblings(
    distribution: Tensor, width: int, how: str, sampler: Sampler, level: int
) -> Iterable[tuple[int, Tensor]]:
    """Draft up to `width` siblings. Return each token with its q. For "top", callers replace q by point masses."""
    width = min(width, int((distribution > 0).sum()))
    if how == "without replacement":
        return siblings(distribution, width, sampler, level)
    if how == "top":
        return [(token, distribution) for token in distribution.topk(width).indices.tolist()]
    return [(sampler.categorical(distribution, ("draft", level)), distribution) for _ in range(width)]


class LookupToy(Drafter):
    """Drafts the text's last token again and again, as point masses."""

    name = "point"

    def propose(self, tokens: Sequence[int], k: int, params: SamplingParams, sampler: Sampler) -> Proposal:
        return Proposal.chain([tokens[-1]] * k)


@functools.lru_cache(256)
def toy_models(vocabulary: int, seed: int, free: tuple[int, ...] | None = None) -> tuple[TableModel, TableModel]:
    target = TableModel(vocabulary, seed, free=free)
    return target, TableModel(vocabulary, seed + 10_000, base=target, free=free)


@dataclass(frozen=True)
class LoopCase:
    """Models and settings for which the loop is enumerated. After the prefill's token, at most `length` more follow."""

    vocabulary: int = 3
    k: int = 2
    length: int = 3
    params: SamplingParams = PARAMS[0]
    drafter: str = "model"  # model | point | sampled | without replacement | top
    seed: int = 0
    end: bool = False  # whether token V - 1 ends the text
    free: tuple[int, ...] | None = None  # see `TableModel`

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
        """Return the target's distribution of texts, computed independently of `sampling.py`."""
        target = self.models()[0]

        def row(text: Tokens) -> list[float]:
            return warped(target.logits((*PROMPT, *text)).tolist(), self.params)

        return completed({(): 1.0}, self.length + 1, row, self.ends)


def warped(logits: Sequence[float], params: SamplingParams) -> list[float]:
    """Apply temperature, top-k and top-p in plain Python, so that a proof also notices mistakes in `sampling.py`.

    Tokens are taken from the likeliest down; of equally likely tokens, the lower id comes first. At temperature 0 only
    one is taken, otherwise up to `top_k`. Of these, top-p keeps the fewest that sum to `top_p` of their total.
    """
    most = 1 if params.temperature == 0.0 else params.top_k or len(logits)
    likeliest = heapq.nsmallest(most, range(len(logits)), key=lambda token: -logits[token])
    highest, temperature = logits[likeliest[0]], params.temperature or 1.0
    weights = [math.exp((logits[token] - highest) / temperature) for token in likeliest]
    total, reached, chosen = math.fsum(weights), 0.0, dict[int, float]()
    for token, weight in zip(likeliest, weights, strict=True):
        if params.top_p < 1.0 and reached >= params.top_p * total:
            break
        chosen[token] = weight
        reached += weight
    return [chosen.get(token, 0.0) / reached for token in range(len(logits))]


def run_loop(task_of: Callable[[], Task]) -> Callable[[Sampler], Tokens]:
    """Return a function that takes a sampler, runs the shipped loop on a new task, and returns the text."""

    def run(sampler: Sampler) -> Tokens:
        tokens: list[int] = []
        task = task_of()
        for event in generate(task, HostExecutor(task, sampler)):
            if isinstance(event, Committed):
                tokens += event.tokens
            elif isinstance(event, Failed):  # a drafter crashed; the plain text that follows would pass the proof
                return (-1,)
        return tuple(tokens)

    return run


def cases(rule: str = "rejection") -> list[LoopCase]:
    """Return many small cases. Tests and the command `prove` enumerate those with few paths."""
    return [
        LoopCase(vocabulary, k, length, PARAMS[p], drafter, seed=index, end=(vocabulary + k + length + p) % 3 == 0)
        for index, (vocabulary, k, length, p, drafter) in enumerate(
            product((2, 3, 4, 5), (0, 1, 2, 3), (1, 2, 3, 4), range(len(PARAMS)), DRAFTERS)
        )
        if k <= length and (RULES[rule].trees or drafter in CHAIN_DRAFTERS)
    ]


def deep_loops(rule: str = "rejection") -> list[LoopCase]:
    """Return cases with drafts of up to sixteen levels. To keep paths few, only two neighbouring tokens are random."""
    drafters = ("model", "top", "model", "without replacement") if RULES[rule].trees else ("model",)
    return [
        LoopCase(3, DEEPEST, DEEPEST + 1, drafter=drafters[at % len(drafters)], seed=at, free=(at, at + 1))
        for at in range(1, DEEPEST + 2)
    ]
