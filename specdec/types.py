"""The data types of a cycle: sampling parameters, draft, costs and verdict."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TYPE_CHECKING

from .messages import Refused, TranslatableText

if TYPE_CHECKING:
    from torch import Tensor

Status = Literal["accepted", "rejected", "discarded"]
Kind = Literal["resampled", "bonus"]

MAX_TOKENS = 4096
MAX_STOPS = 4
MAX_STOP_LENGTH = 64  # characters
MAX_DRAFT_TOKENS = 64  # limits K and the size of trees; `exposure.Exposure.k` limits visitors further
MIN_SEED = -(2**63)  # torch.Generator accepts seeds from MIN_SEED to MAX_SEED
MAX_SEED = 2**64 - 1
TYPICAL_EPSILON = 0.09  # ε and δ of typical acceptance (`rules.TypicalAcceptance`)
TYPICAL_DELTA = 0.3


def has_lone_surrogate(text: str) -> bool:
    """Return whether `text` contains a lone surrogate, which tokenizers reject and UTF-8 cannot encode."""
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)


def check_k(k: int) -> None:
    """Raise Refused unless `k` is a whole number from 0 to MAX_DRAFT_TOKENS."""
    if not isinstance(k, int) or not 0 <= k <= MAX_DRAFT_TOKENS:
        raise Refused(f"k must be a whole number between 0 and {MAX_DRAFT_TOKENS}, not {k!r}")


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """Defines how tokens are sampled and when the text ends. `temperature` 0 means greedy decoding.

    `top_k` 0 and `top_p` 1 switch these filters off. The text ends just before the first of the `stop` strings.
    With `ignore_end`, decoding continues after the end token.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    max_tokens: int = 64
    seed: int = 0
    stop: tuple[str, ...] = ()
    ignore_end: bool = False

    def __post_init__(self) -> None:
        for name, kind in {"temperature": float, "top_p": float, "top_k": int, "max_tokens": int, "seed": int}.items():
            if not isinstance(value := getattr(self, name), int | kind):
                raise Refused(f"{name} must be a {'whole ' * (kind is int)}number, not {value!r}")
        if not isinstance(self.stop, tuple) or not all(isinstance(each, str) for each in self.stop):
            raise Refused(f"stop must be a tuple of strings, not {self.stop!r}")
        if any(map(has_lone_surrogate, self.stop)):
            raise Refused("a stop string holds half of a character (a lone surrogate)")
        if not 0.0 <= self.temperature <= 100.0:
            raise Refused(f"temperature must lie between 0 and 100, not {self.temperature}")
        if self.top_k < 0:
            raise Refused(f"top_k must be 0 (off) or more, not {self.top_k}")
        if not 0.0 < self.top_p <= 1.0:
            raise Refused(f"top_p must be above 0 and at most 1, not {self.top_p}")
        if not 0 <= self.max_tokens <= MAX_TOKENS:
            raise Refused(f"max_tokens must lie between 0 and {MAX_TOKENS}, not {self.max_tokens}")
        if not MIN_SEED <= self.seed <= MAX_SEED:
            raise Refused("seed must lie between -2^63 and 2^64 - 1")
        if len(self.stop) > MAX_STOPS or not all(0 < len(s) <= MAX_STOP_LENGTH for s in self.stop):
            raise Refused(f"at most {MAX_STOPS} stop strings of 1 to {MAX_STOP_LENGTH} characters")


def is_chain(parents: Sequence[int]) -> bool:
    """Return whether each node's parent is the node before it."""
    return all(parent == node - 1 for node, parent in enumerate(parents))


@dataclass(frozen=True, slots=True)
class Tree:
    """The tree of a draft. `parents[i]` is the parent of node i; -1 stands for the last token of the text.

    Every parent must have a smaller index than its children. Otherwise ValueError is raised.
    """

    parents: tuple[int, ...]

    def __post_init__(self) -> None:
        if not all(-1 <= parent < node for node, parent in enumerate(self.parents)):
            raise ValueError(TranslatableText("the draft's parents do not form a tree"))

    def children(self, node: int) -> list[int]:
        return [child for child, parent in enumerate(self.parents) if parent == node]

    def path(self, node: int) -> list[int]:
        """Return the nodes from the top of the tree down to and including `node`; an empty list for -1."""
        nodes = []
        while node >= 0:
            nodes.append(node)
            node = self.parents[node]
        return nodes[::-1]

    def depth(self, node: int) -> int:
        """Return the depth of a node: 1 for the tokens right after the text."""
        return len(self.path(node))

    def depths(self) -> list[int]:
        """Return the depth of each node."""
        depths: list[int] = []
        for parent in self.parents:
            depths.append(1 + (depths[parent] if parent >= 0 else 0))
        return depths

    @property
    def max_depth(self) -> int:
        """The depth of the deepest node; 0 without nodes."""
        return max(self.depths(), default=0)


@dataclass(frozen=True, slots=True)
class Proposal:
    """The draft of one cycle, a tree of tokens. A chain is a tree without siblings.

    `parents[i]` is the node that token i follows; -1 is the last committed token. Parents come before their children.
    `probs[i]` is q, the distribution that token i was sampled from, after temperature, top-k and top-p. If `probs` is
    None, each q is a point mass. `seconds[i]` is the time taken to draft token i, if measured.
    """

    tokens: tuple[int, ...] = ()
    parents: tuple[int, ...] = ()
    probs: "Tensor | None" = None  # [n, V]
    seconds: tuple[float, ...] = ()
    tree: Tree = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Raise ValueError if the parents form no tree."""
        object.__setattr__(self, "tree", Tree(self.parents))

    @classmethod
    def chain(cls, tokens: list[int], probs: "Tensor | None" = None, seconds: tuple[float, ...] = ()) -> "Proposal":
        return cls(tuple(tokens), tuple(range(-1, len(tokens) - 1)), probs, seconds)

    def __len__(self) -> int:
        return len(self.tokens)

    def distributions(self, rows: "Tensor") -> "Tensor":
        """Return q of each token; if `probs` is None, one-hot rows like those of `rows`.  # [n, V]"""
        if self.probs is not None:
            return self.probs
        distributions = rows.new_zeros((len(self), rows.shape[1]))
        distributions[range(len(self)), self.tokens] = 1.0
        return distributions

    def q(self, node: int) -> "Tensor | None":
        """Return the distribution that a token was drawn from; None for a point mass.  # [V]"""
        return None if self.probs is None else self.probs[node]

    def q_of(self, node: int) -> float:
        """Return the probability with which a token was drawn."""
        return 1.0 if self.probs is None else float(self.probs[node, self.tokens[node]])


@dataclass(frozen=True, slots=True)
class Costs:
    """The cost of a cycle as a function of the depth of its draft. The unit is one step of plain decoding.

    A draft of depth d costs `start` + d * `draft`. For a tree, `draft` is the cost of a whole level. At temperatures
    above 0, sampling adds `draw` to `draft`. `passes[d]` is the cost of the target's pass over a draft of depth d.
    `overhead` is the remaining cost of a cycle with a draft; it does not depend on the depth.
    """

    draft: float
    passes: tuple[float, ...]
    overhead: float = 0.0
    draw: float = 0.0
    start: float = 0.0

    def at(self, temperature: float) -> "Costs":
        """Return the same costs with `draw` added to `draft`, unless the temperature is 0."""
        return replace(self, draft=self.draft + self.draw, draw=0.0) if temperature and self.draw else self

    def cycle(self, depth: int) -> float:
        if depth == 0:
            return self.passes[0]
        return self.start + depth * self.draft + self.verify(depth) + self.overhead

    def cycles(self, k: int) -> tuple[float, ...]:
        """Return the cost of a cycle for every depth from 0 to `k`."""
        return tuple(map(self.cycle, range(k + 1)))

    def verify(self, depth: int) -> float:
        """Return the cost of the target's pass over a draft of this depth, extrapolated linearly beyond `passes`."""
        deepest = len(self.passes) - 1
        if depth <= deepest:
            return self.passes[depth]
        slope = (self.passes[-1] - self.passes[0]) / max(1, deepest)
        return self.passes[-1] + slope * (depth - deepest)


@dataclass(frozen=True, slots=True)
class Trial:
    """The test of one drafted token. Rejection sampling accepts it if u·q < p.

    Only block verification sets `h`: the prefix up to this token passes if u < h. The token is also accepted if a
    longer prefix passes. `u` is None if no coin was tossed.
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
    """The accepted path, and the target's own `token`, which every cycle adds after the path.

    `token` was drawn from `distribution` or, if that is None, from the target's row after the path. After a rejection
    of token i, it is drawn from the residual norm(max(0, w p - q)) with w = `weights[i]`, if the rule uses residuals.
    """

    path: tuple[int, ...]
    token: int
    kind: Kind
    trials: tuple[Trial, ...]
    distribution: "Tensor | None" = field(default=None, compare=False)  # [V]
    weights: tuple[float, ...] = ()

    def emitted(self, proposal: Proposal) -> list[int]:
        """Return the tokens that this cycle adds to the text."""
        return [*(proposal.tokens[node] for node in self.path), self.token]
