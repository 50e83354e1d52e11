"""Group a lane's events by cycle, and check that draft, verdict and committed tokens do not contradict each other."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from ..events import Committed, Drafted, Event, Failed, Position, Started, Verified
from ..messages import TranslatableText
from ..methods import RULE_FACTS
from ..types import Tree

REJECTION = RULE_FACTS["rejection"].name  # the names of rules in traces
NOISE = RULE_FACTS["shared_noise"].name
BLOCK = RULE_FACTS["block"].name
LOSSLESS = {rule.name: rule.lossless for rule in RULE_FACTS.values()}
OWN_DRAWS = {rule.name for rule in RULE_FACTS.values() if rule.own_draws}
MAX_NAME = 40  # messages quote at most this many characters of a name from a trace
ROUNDING = 2e-6  # largest error of a recorded probability, computed in float32 and rounded to 7 decimals


@dataclass(frozen=True)
class AuditedCycle:
    drafted: Drafted | None
    verified: Verified | None
    committed: Committed

    @property
    def number(self) -> int:
        return self.committed.cycle

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
        """Yield the piece and status of each drafted token, then of the target's own token, for display.

        The target token's status is "" if nothing was drafted. Drafted tokens after the end of the text are left out.
        """
        remaining, has_target_token = self.committed.accepted, self.target_token is not None
        for x in self.positions:
            remaining -= x.status == "accepted"
            if remaining < 0 or (remaining == 0 and not has_target_token and x.status != "accepted"):
                break
            yield x.piece, x.status
        if has_target_token:
            yield self.committed.pieces[-1], self.committed.kind if self.positions else ""

    @cached_property
    def weights(self) -> list[float]:
        """Block verification's weight of each prefix: 1 for the empty one, then min(1, weight before it · p / q)."""
        ratios = [p / q for p, q in map(chances, self.positions)]
        return list(accumulate(ratios, lambda weight, ratio: min(1.0, weight * ratio), initial=1.0))

    def weight_before(self, x: Position) -> float:
        """Return the factor w in the residual max(0, w p - q) at `x`. Every rule but block verification has w = 1."""
        return 1.0 if x.h is None else self.weights[x.node]


def cycles(events: Iterable[Event], lane: str) -> Iterator[AuditedCycle]:
    """Yield a lane's cycles in order, the prefill first."""
    drafted: Drafted | None = None
    verified: Verified | None = None
    for event in events:
        if event.lane != lane:
            continue
        if isinstance(event, Drafted):
            drafted = event
        elif isinstance(event, Verified):
            verified = event
        elif isinstance(event, Committed):
            yield AuditedCycle(drafted, verified, event)
            drafted = verified = None


def start_of(events: Iterable[Event], lane: str) -> Started | None:
    return next((event for event in events if isinstance(event, Started) and event.lane == lane), None)


def lost_drafts(events: Sequence[Event], lane: str) -> int:
    """Count the lane's lost drafts: a drafter that fails because of tokens that it drew can bias the text.

    The run goes on as if it had not drawn any. This biases nothing at temperature 0, nor where the text consists only
    of the target's own draws.
    """
    started = start_of(events, lane)
    if started is None or not started.params.temperature or started.rule in OWN_DRAWS:
        return 0
    return sum(isinstance(event, Failed) and event.lane == lane and event.where == "drafter" for event in events)


def is_lossless(events: Sequence[Event], lane: str) -> bool | None:
    """Say whether the lane's text follows the target's distribution: what its rule says; None if drafts were lost."""
    started = start_of(events, lane)
    return None if started is None or (started.lossless and lost_drafts(events, lane)) else started.lossless


def chances(x: Position) -> tuple[float, float]:
    """Return p and q of a token that our engine drafted."""
    assert x.p is not None and x.q is not None, "only servers leave out p and q"
    return x.p, x.q


def label(x: Position) -> TranslatableText:
    return TranslatableText("draft {number} ({piece!r})", number=x.node + 1, piece=x.piece[:MAX_NAME])


def contradiction(cycle: AuditedCycle) -> TranslatableText | None:
    """Return how the events of a cycle contradict each other, None if they do not.

    The verdict must cover the whole draft, and the accepted tokens must form a path. The committed tokens must be this
    path and one token of the target, or a beginning of the path if the text ends with it.
    """
    event, path, tokens = cycle.committed, cycle.path, cycle.drafted.tokens if cycle.drafted else ()
    if [(x.node, x.token) for x in cycle.positions] != list(enumerate(tokens)):
        return TranslatableText("the verified tokens are not the drafted tokens")
    for x in cycle.positions:
        p, q = (1.0 if value is None else value for value in (x.p, x.q))  # only a server's lane has None
        if not (0.0 <= p <= 1.0 + ROUNDING and 0.0 < q <= 1.0 + ROUNDING and 0.0 <= (x.u or 0.0) < 1.0):
            return TranslatableText("p, q or u of {draft} is no probability", draft=label(x))
    if [cycle.tree.parents[node] for node in path] != [-1, *path][: len(path)]:
        return TranslatableText("the accepted tokens do not form a path")
    accepted = tuple(tokens[node] for node in path)
    target_tokens = len(event.tokens) - event.accepted
    if event.tokens[: event.accepted] != accepted[: event.accepted] or not (
        (target_tokens == 1 and event.accepted == len(path)) or target_tokens == 0 < event.accepted <= len(path)
    ):
        return TranslatableText("the committed tokens are not the accepted tokens and one token of the target")
    if cycle.verified and (event.kind == "resampled") != bool(cycle.tree.children(cycle.tip)):
        return TranslatableText("the target's own token is wrongly called {kind}", kind=TranslatableText(event.kind))
    return None
