"""Group a lane's events by cycle, and check the structure on which readers of a trace rely."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from ..events import Committed, Drafted, Event, Failed, Position, Started, UNNAMED, Verified
from ..messages import TranslatableText
from ..methods import RULE_FACTS
from ..types import Tree

REJECTION = RULE_FACTS["rejection"].name  # the names of rules in traces
NOISE = RULE_FACTS["shared_noise"].name
BLOCK_RULE = RULE_FACTS["block"].name
RULE_LOSSLESS = {rule.name: rule.lossless for rule in RULE_FACTS.values()}
OWN_DRAWS = {rule.name for rule in RULE_FACTS.values() if rule.own_draws}
MAX_TRACE_DRAFT = 256  # most tokens of one draft in a file


@dataclass(frozen=True)
class CycleEvents:
    drafted: Drafted | None
    verified: Verified | None
    committed: Committed

    @property
    def positions(self) -> tuple[Position, ...]:
        return self.verified.positions if self.verified else ()

    @cached_property
    def tree(self) -> Tree:
        return Tree(self.drafted.parents if self.drafted else ())

    @cached_property
    def path(self) -> list[int]:
        return [node for node, position in enumerate(self.positions) if position.status == "accepted"]

    @property
    def tip(self) -> int:
        return max(self.path, default=-1)

    @property
    def target_token(self) -> int | None:
        """The token that the target added; None if the text ended inside the draft."""
        return self.committed.tokens[-1] if len(self.committed.tokens) > self.committed.accepted else None

    def shown(self) -> Iterator[tuple[str, str]]:
        """Yield the piece and status of each drafted token, then of the target's own token, for display."""
        remaining, has_target_token = self.committed.accepted, self.target_token is not None
        for x in self.positions:
            remaining -= x.status == "accepted"
            if remaining < 0 or (remaining == 0 and not has_target_token and x.status != "accepted"):
                break  # the text ended before this token
            yield x.piece, x.status
        if has_target_token:
            yield self.committed.pieces[-1], self.committed.kind if self.positions else ""  # "": nothing was drafted

    @cached_property
    def weights(self) -> list[float]:
        """Block verification's weight of each prefix: 1 for the empty one, then min(1, weight before it · p / q)."""
        ratios = [p / q for p, q in map(chances, self.positions)]
        return list(accumulate(ratios, lambda weight, ratio: min(1.0, weight * ratio), initial=1.0))

    def weight_before(self, x: Position) -> float:
        """Return the factor w in the residual max(0, w p - q) at `x`. Every rule but block verification has w = 1."""
        return 1.0 if x.h is None else self.weights[x.node]


def cycles(events: Iterable[Event], lane: str | None = None) -> Iterator[CycleEvents]:
    """Yield a lane's cycles in order, the prefill first; without `lane`, those of all lanes as they took turns."""
    drafted, verified = dict[str, Drafted](), dict[str, Verified]()
    for event in events:
        if isinstance(event, Drafted):
            drafted[event.lane] = event
        elif isinstance(event, Verified):
            verified[event.lane] = event
        elif isinstance(event, Committed) and lane in (None, event.lane):
            yield CycleEvents(drafted.pop(event.lane, None), verified.pop(event.lane, None), event)


def start_of(events: Iterable[Event], lane: str) -> Started | None:
    return next((event for event in events if isinstance(event, Started) and event.lane == lane), None)


def lost_drafts(events: Sequence[Event], lane: str) -> int:
    """Count the lane's lost drafts: a drafter that fails because of tokens that it drew can bias the text."""
    started = start_of(events, lane)
    # It biases nothing at temperature 0, nor where the text consists only of the target's own draws.
    if started is None or not started.params.temperature or started.rule in OWN_DRAWS:
        return 0
    failures = (event for event in events if isinstance(event, Failed) and event.where == "drafter")
    return sum(event.lane == lane and event.cycle > 0 for event in failures)  # the prefill draws nothing


def is_lossless(events: Sequence[Event], lane: str) -> bool | None:
    """Say whether the lane's text follows the target's distribution: what its rule says; None if drafts were lost."""
    started = start_of(events, lane)
    return None if started is None or (started.lossless and lost_drafts(events, lane)) else started.lossless


def chances(x: Position) -> tuple[float, float]:
    """Return p and q of a token that our engine drafted."""
    assert x.p is not None and x.q is not None, "only servers leave out p and q"
    return x.p, x.q


class ShapeCheck:
    """Checks that drafts are trees, and that a verification lists every drafted token. Raises ValueError if not."""

    def __init__(self) -> None:
        self.drafted: Counter[str] = Counter()  # lane -> tokens drafted in its current cycle
        self.servers: set[str] = set()  # lanes of servers: only these may lack ids of tokens, or p and q

    def check(self, event: Event) -> None:
        server = event.lane in self.servers
        if isinstance(event, Drafted | Committed):
            if UNNAMED in event.tokens and not server:
                raise ValueError(TranslatableText("a token is unnamed, though the lane is not a server's"))
            if len(event.tokens) != len(event.pieces):
                raise ValueError(TranslatableText("tokens and pieces differ in number"))
        if isinstance(event, Started) and event.server:
            self.servers.add(event.lane)
        elif isinstance(event, Drafted):
            if len(event.tokens) > MAX_TRACE_DRAFT:
                raise ValueError(TranslatableText("the draft holds more than {limit} tokens", limit=MAX_TRACE_DRAFT))
            if len(Tree(event.parents).parents) != len(event.tokens):
                raise ValueError(TranslatableText("the draft's parents do not form a tree"))
            self.drafted[event.lane] = len(event.tokens)
        elif isinstance(event, Verified):
            if [x.node for x in event.positions] != list(range(self.drafted[event.lane])):
                raise ValueError(TranslatableText("the verified tokens are not the drafted tokens"))
            if not server and any(x.p is None or x.q is None for x in event.positions):
                raise ValueError(TranslatableText("a draft lacks p or q, though the lane is not a server's"))
        elif isinstance(event, Committed):
            del self.drafted[event.lane]
