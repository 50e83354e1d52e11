"""The data of one cycle: what was asked for, what was proposed, what was decided. No behaviour beyond checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal, TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

Status = Literal["accepted", "rejected", "discarded"]
Kind = Literal["resampled", "bonus"]

MAX_TOKENS = 4096
MAX_STOPS = 4
MAX_STOP_LENGTH = 64  # characters
MAX_DRAFT_TOKENS = 64  # in one draft of the engine, chain or tree, and so for K; for visitors see `exposure.Exposure.k`
MIN_SEED = -(2**63)  # what torch's generators take, and what a trace can hold
MAX_SEED = 2**64 - 1
TYPICAL_EPSILON = 0.09  # the limits of typical acceptance (`rules.TypicalAcceptance`)
TYPICAL_DELTA = 0.3


def has_lone_surrogate(text: str) -> bool:
    """Whether `text` holds a lone surrogate, which no tokenizer reads and no file can store."""
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)


class TranslatableText(str):
    """An English sentence for people that keeps its template and values, so that it can be translated."""

    template: str
    values: dict[str, Any]

    def __new__(cls, template: str, /, **values: Any) -> TranslatableText:
        text = super().__new__(cls, template.format(**values))
        text.template, text.values = template, values
        return text

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Any]]:
        return (self.template,), self.values


class PromptError(ValueError):
    """The prompt cannot be run; the message says what to do."""


def check_k(k: int) -> None:
    """Raise ValueError for a K that the engine does not draft."""
    if not 0 <= k <= MAX_DRAFT_TOKENS:
        raise ValueError(f"k must lie between 0 and {MAX_DRAFT_TOKENS}, not {k}")


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How a token is drawn, and when to stop. `temperature` 0 means greedy.

    `top_k` 0 and `top_p` 1 switch those filters off. `stop` strings end the text where they begin.
    `ignore_end` keeps going after the end token, for measurements of equal length.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    max_tokens: int = 64
    seed: int = 0
    stop: tuple[str, ...] = ()
    ignore_end: bool = False

    def __post_init__(self) -> None:
        if not 0.0 <= self.temperature <= 100.0:
            raise ValueError(f"temperature must lie between 0 and 100, not {self.temperature}")
        if self.top_k < 0:
            raise ValueError(f"top_k must be 0 (off) or more, not {self.top_k}")
        if not 0.0 < self.top_p <= 1.0:
            raise ValueError(f"top_p must lie above 0 and at most at 1, not {self.top_p}")
        if not 0 <= self.max_tokens <= MAX_TOKENS:
            raise ValueError(f"max_tokens must lie between 0 and {MAX_TOKENS}, not {self.max_tokens}")
        if not MIN_SEED <= self.seed <= MAX_SEED:
            raise ValueError("seed must lie between -2^63 and 2^64 - 1")
        if len(self.stop) > MAX_STOPS or not all(0 < len(s) <= MAX_STOP_LENGTH for s in self.stop):
            raise ValueError(f"at most {MAX_STOPS} stop strings of 1 to {MAX_STOP_LENGTH} characters")


def is_chain(parents: Sequence[int]) -> bool:
    """Whether each node's parent is the node before it."""
    return all(parent == node - 1 for node, parent in enumerate(parents))


@dataclass(frozen=True, slots=True)
class Tree:
    """The tree of a draft: `parents[i]` is the node that node i follows, -1 for the last token of the text.

    Parents come before their children, so every walk up ends at -1. ValueError if they do not.
    """

    parents: tuple[int, ...]

    def __post_init__(self) -> None:
        if not all(-1 <= parent < node for node, parent in enumerate(self.parents)):
            raise ValueError(TranslatableText("the draft's parents do not form a tree"))

    def children(self, node: int) -> list[int]:
        return [child for child, parent in enumerate(self.parents) if parent == node]

    def path(self, node: int) -> list[int]:
        """The nodes from the text down to `node`, itself included; none for -1."""
        nodes = []
        while node >= 0:
            nodes.append(node)
            node = self.parents[node]
        return nodes[::-1]

    def depth(self, node: int) -> int:
        """1 for the tokens right after the text."""
        return len(self.path(node))

    def depths(self) -> list[int]:
        """The depth of every node."""
        depths: list[int] = []
        for parent in self.parents:
            depths.append(1 + (depths[parent] if parent >= 0 else 0))
        return depths


@dataclass(frozen=True, slots=True)
class Proposal:
    """The draft of one cycle: a tree of tokens (a chain is a tree without siblings).

    `parents[i]` is the node that token i follows, -1 for the last committed token; parents come before
    their children. `probs[i]` is the distribution token i was really drawn from, after temperature, top-k and
    top-p; None says that each token was chosen outright (a point mass). `seconds[i]` is the time that
    drafting token i took, where the drafter knows it.
    """

    tokens: tuple[int, ...] = ()
    parents: tuple[int, ...] = ()
    probs: Tensor | None = None  # [n, V]
    seconds: tuple[float, ...] = ()

    @classmethod
    def chain(cls, tokens: list[int], probs: Tensor | None = None, seconds: tuple[float, ...] = ()) -> Proposal:
        return cls(tuple(tokens), tuple(range(-1, len(tokens) - 1)), probs, seconds)

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def is_chain(self) -> bool:
        return is_chain(self.parents)

    def distributions(self, rows: Tensor) -> Tensor:
        """The distribution that each token was drawn from; a point mass becomes a one-hot row.  # [n, V]"""
        if self.probs is not None:
            return self.probs
        distributions = rows.new_zeros((len(self), rows.shape[1]))
        distributions[range(len(self)), self.tokens] = 1.0
        return distributions

    @property
    def tree(self) -> Tree:
        return Tree(self.parents)

    def children(self, node: int) -> list[int]:
        return self.tree.children(node)

    def depth(self, node: int) -> int:
        """1 for the tokens right after the text."""
        return self.tree.depth(node)

    @property
    def levels(self) -> int:
        """The depth of the deepest token; 0 without a draft."""
        return max(self.tree.depths(), default=0)


@dataclass(frozen=True, slots=True)
class Costs:
    """What a cycle costs by the depth of its draft, in plain steps.

    `draft` is one level of the draft (of a chain: one token), `passes[d]` the target's pass over a draft of depth d,
    `overhead` whatever else a drafting cycle costs, at any depth. A tree of depth d holds more than d tokens, and these
    figures include them. `draw` is what a level costs beyond `draft` where its tokens are drawn, and not the likeliest.
    `start` is what a draft costs beside its levels.
    """

    draft: float
    passes: tuple[float, ...]
    overhead: float = 0.0
    draw: float = 0.0
    start: float = 0.0

    def at(self, temperature: float) -> Costs:
        """The same costs with `draw` added to `draft` where tokens are drawn at that temperature."""
        return replace(self, draft=self.draft + self.draw, draw=0.0) if temperature and self.draw else self

    def cycle(self, depth: int) -> float:
        if depth == 0:
            return self.passes[0]
        return self.start + depth * self.draft + self.verify(depth) + self.overhead

    @lru_cache(256)  # noqa: B019 – few, and as long as the process
    def cycles(self, k: int) -> tuple[float, ...]:
        """The cost of a cycle for every depth from 0 to `k`."""
        return tuple(map(self.cycle, range(k + 1)))

    def verify(self, depth: int) -> float:
        """The target's pass over a draft of that depth; beyond the deepest one probed, costs grow on alike."""
        deepest = len(self.passes) - 1
        if depth <= deepest:
            return self.passes[depth]
        slope = (self.passes[-1] - self.passes[0]) / max(1, deepest)
        return self.passes[-1] + slope * (depth - deepest)


@dataclass(frozen=True, slots=True)
class Trial:
    """One accept or reject test: kept if u·q < p; in block verification, where h is given, if u < h.

    `u` is None where no coin was needed: with rules that use none, or because a longer block was kept.
    """

    node: int
    token: int
    p: float
    q: float
    u: float | None
    accepted: bool
    h: float | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The accepted path from the root, and the one token that the target always adds.

    `distribution` is what that token was drawn from, where it is not the target's row after the path. `extra` is what
    a wrong rule adds after it (`mistakes.py`); a right one never does.
    """

    path: tuple[int, ...]
    token: int
    kind: Kind
    trials: tuple[Trial, ...]
    extra: tuple[int, ...] = ()
    distribution: Tensor | None = field(default=None, compare=False)  # [V]

    def emitted(self, proposal: Proposal) -> list[int]:
        """The tokens that this cycle adds to the text."""
        return [*(proposal.tokens[node] for node in self.path), self.token, *self.extra]
