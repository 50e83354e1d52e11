"""The events of a run, in order: frozen dataclasses that any page, file or test can read.

A lane's run is `Started`, then per cycle `Drafted` (if anything was drafted), `Verified`, `Committed`, and at
the end `Finished`; `Failed` may come anywhere between. Cycle 0 is the prefill: the prompt's own pass gives
the first token. Times are seconds on the lane's clock, which runs only while the lane works.

Events hold no tensors and serialise to one JSON object each (`to_dict`, `from_dict`).
"""

from __future__ import annotations

import dataclasses
import types
import typing
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from .types import Costs, Kind, SamplingParams, Status, TranslatableText

SCHEMA = 1  # a new field of an event gets a default, so that older traces open; only what they would misread raises it
UNNAMED = -1  # id of a drafted token that a server does not report
MAX_NUMBER = 2**64  # numbers in a file lie below: they are then finite in every language


@dataclass(frozen=True, slots=True)
class Candidate:
    """One token with its probability; a list of them ends with the mass of all others (`rest`)."""

    token: int
    piece: str
    prob: float


@dataclass(frozen=True, slots=True)
class Distribution:
    """The head of a distribution: its most probable tokens, what is left, and its entropy in nats.

    `sample` is what the noise of this place draws from it (`SharedNoiseSampler`), whatever the run itself drew with.
    """

    top: tuple[Candidate, ...]
    rest: float
    entropy: float
    sample: Candidate | None = None


@dataclass(frozen=True, slots=True)
class Position:
    """One drafted token and its judgement. `u` is None where no coin was tossed, or the token was never judged.

    `h` is the chance that block verification keeps the block up to here, if no longer one was kept.
    `p` and `q` are the exact probabilities in the test: in a tree, those after the rejected siblings.
    `target` and `draft` list the same tokens, except those that have no probability at all.
    A server watched from outside does not tell all: `token` is then `UNNAMED`, `p` and `q` are None.
    """

    node: int
    token: int
    piece: str
    status: Status
    p: float | None
    q: float | None
    u: float | None
    overlap: float | None = None  # sum of min(p, q)
    target: Distribution | None = None
    draft: Distribution | None = None
    residual: Distribution | None = None
    h: float | None = None
    block: float | None = None  # what h would be, where another rule judged a chain
    row: float | None = None  # of a drawn sibling: the target's p of it before earlier siblings were tried, if not p
    behind: float | None = None  # and after all of them were rejected, if not p


@dataclass(frozen=True, slots=True)
class Started:
    lane: str
    drafter: str
    k: int
    params: SamplingParams
    prompt_tokens: int
    rule: str = ""
    lossless: bool = True
    costs: Costs | None = None  # what a drafter weighs that chooses its own depth
    server: str = ""  # whose lane it is, if it is watched from outside: the kind of server and its version
    guided: bool | None = None  # written by an earlier version under a grammar, which this one does not read


@dataclass(frozen=True, slots=True)
class Drafted:
    lane: str
    cycle: int
    tokens: tuple[int, ...]
    pieces: tuple[str, ...]
    parents: tuple[int, ...]
    start: float
    end: float
    step_ends: tuple[float, ...] = ()  # when each token was ready, where the drafter knows it


@dataclass(frozen=True, slots=True)
class Verified:
    """One pass of the target over the pending tokens and the draft, and its judgement."""

    lane: str
    cycle: int
    positions: tuple[Position, ...]
    start: float
    end: float
    # What the target's own token was drawn from. Traces call it "law", as they did from the first.
    distribution: Distribution | None = field(default=None, metadata={"key": "law"})
    p: float | None = None  # the target's own token under the target, before any rejection
    bonus: Distribution | None = None  # the target's row after the whole chain, whether or not it was reached


@dataclass(frozen=True, slots=True)
class Committed:
    """Tokens that joined the text: the accepted ones, then the target's own (unless the text ended first)."""

    lane: str
    cycle: int
    tokens: tuple[int, ...]
    pieces: tuple[str, ...]
    accepted: int
    kind: Kind
    text: str  # what became readable, complete UTF-8
    total: int  # tokens in the text so far
    at: float


@dataclass(frozen=True, slots=True)
class Failed:
    """Something broke and what became of it. `fatal` ends the lane; otherwise only this cycle had no draft."""

    lane: str
    cycle: int
    where: Literal["drafter", "target"]
    reason: str
    fatal: bool
    at: float


# exact: the server's own count of each step agrees with what arrived; merged: its list was laid over what arrived,
# since steps came together, or one of several drafted nothing; totals: it tells sums at most, and what arrived together
# counts as one cycle.
Counted = Literal["exact", "merged", "totals"]
FinishReason = Literal["length", "end", "stop", "context", "failed"]


@dataclass(frozen=True, slots=True)
class Finished:
    """Seconds by kind of work: prefill (the first token), draft, verify, other (the engine's own).

    `eager` is why a lane on a GPU ran without captured graphs. `counted` says how cycles of a server are known;
    `drafted` and `accepted` are its own sums, where it tells no more.
    """

    lane: str
    reason: FinishReason
    tokens: int
    text: str
    at: float
    prefill: float
    draft: float
    verify: float
    other: float
    eager: str | None = None
    counted: Counted | None = None
    drafted: int | None = None  # a server's own sums, where its cycles are not known
    accepted: int | None = None


Event = Started | Drafted | Verified | Committed | Failed | Finished
KINDS: dict[str, type] = {kind.__name__.lower(): kind for kind in typing.get_args(Event)}


def to_dict(event: Event) -> dict[str, Any]:
    """A JSON-ready mapping; `event` names the kind. Absent details are left out."""
    return {"event": type(event).__name__.lower(), **_plain(event)}


def from_dict(data: dict[str, Any]) -> Event:
    """The event that `to_dict` wrote. ValueError says what is wrong; unknown keys are ignored."""
    name = data.get("event", "")
    kind = KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise ValueError(TranslatableText("unknown event {event!r}", event=name))
    if kind is Started and isinstance(data.get("params"), dict) and data["params"].get("grammar"):
        data = data | {"guided": True}
    return typing.cast(Event, _read(kind, data, kind.__name__))


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if fields := _fields(value.__class__):
        return {key: _plain(item) for key, name, *_ in fields if (item := getattr(value, name)) is not None}
    return value


@cache
def _fields(kind: Any) -> tuple[tuple[str, str, Any, bool], ...]:
    """Of a dataclass' fields the key in a trace, the name, the type, and whether it has no default; else ()."""
    if not dataclasses.is_dataclass(kind):
        return ()
    hints = typing.get_type_hints(kind)
    return tuple(
        (one.metadata.get("key", one.name), one.name, hints[one.name], one.default is dataclasses.MISSING)
        for one in dataclasses.fields(kind)
    )


@cache
def _parts(hint: Any) -> tuple[Any, tuple[Any, ...], tuple[tuple[str, str, Any, bool], ...]]:
    return typing.get_origin(hint), typing.get_args(hint), _fields(hint)


def _read(hint: Any, value: Any, name: str) -> Any:
    """Read a value of a file as what `hint` names. Files come from anywhere, so everything is checked."""
    origin, inner, fields = _parts(hint)
    if origin in (typing.Union, types.UnionType):
        return None if value is None else _read(inner[0], value, name)
    if origin is tuple:
        if not isinstance(value, list):
            raise ValueError(TranslatableText("{name} must be a list", name=name))
        return tuple([_read(inner[0], item, name) for item in value])
    if origin is Literal:
        if value not in inner:
            raise ValueError(TranslatableText("{name} cannot be {value!r}", name=name, value=value))
        return value
    if fields:
        if not isinstance(value, dict):
            raise ValueError(TranslatableText("{name} must be an object", name=hint.__name__))
        read = [one for one in fields if one[0] in value or one[-1]]
        return hint(**{name: _read(of, value.get(key), f"{hint.__name__}.{key}") for key, name, of, _ in read})
    if hint is float and type(value) is int and abs(value) < MAX_NUMBER:
        value = float(value)
    if type(value) is not hint:
        sorts = {"wanted": hint.__name__, "found": type(value).__name__}
        raise ValueError(TranslatableText("{name} must be of type {wanted}, not {found}", name=name, **sorts))
    if hint in (int, float) and not abs(value) < MAX_NUMBER:
        raise ValueError(TranslatableText("{name} must be a number below 2^64", name=name))
    return value
