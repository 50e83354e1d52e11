"""The events of a run, as frozen dataclasses without tensors. Each becomes one JSON object (`to_dict`, `from_dict`).

A lane yields `Started`, then in each cycle `Drafted` (if anything was drafted), `Verified` and `Committed`, and at the
end `Finished`. `Failed` can come anywhere in between. Cycle 0 is the prefill: the pass over the prompt yields the first
token. Times are seconds on the lane's clock, which runs only while the lane works.
"""

import dataclasses
import types
import typing
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from .messages import TranslatableText
from .types import Costs, Kind, SamplingParams, Status

SCHEMA = 2  # version of traces. It rises only if a key changes its name or meaning; new fields of events have defaults
SPECULATIVE = "speculative"  # the lanes of a run
PLAIN = "plain"
PEER = "transformers"
UNNAMED = -1  # id of a drafted token that a server does not report
MAX_NUMBER = 2**64  # numbers in a trace must be smaller, so that every language reads them as finite


@dataclass(frozen=True, slots=True)
class Candidate:
    """A token with its probability."""

    token: int
    piece: str
    prob: float


@dataclass(frozen=True, slots=True)
class Distribution:
    """The likeliest and some other tokens, the probability of all further tokens together, and the entropy in nats.

    `sample` is a token drawn only for display, with `SharedNoiseSampler`.
    """

    top: tuple[Candidate, ...]
    rest: float
    entropy: float
    sample: Candidate | None = None


@dataclass(frozen=True, slots=True)
class Position:
    """One drafted token and its verdict. `u` is the coin; None if none was tossed.

    In block verification, the block that ends with this token passes its test with probability `h`.
    `p` and `q` are the token's probabilities in its test. In a tree, `p` is from the residual after rejected siblings.
    `target` and `draft` list the same tokens, except those of probability 0.
    In a server's lane, `token` can be `UNNAMED`, and `p` and `q` can be None.
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
    block: float | None = None  # the h of block verification, if another rule judged this chain
    row: float | None = None  # p in the target's own row, if that differs from `p`
    behind: float | None = None  # p behind all earlier siblings, had each been rejected, if that differs from `p`


@dataclass(frozen=True, slots=True)
class Started:
    lane: str
    drafter: str
    k: int
    params: SamplingParams
    prompt_tokens: int
    rule: str = ""
    lossless: bool = True  # the rule; see also `is_lossless` of `traces/cycle.py`
    costs: Costs | None = None  # used by drafters that choose the depth themselves
    server: str = ""  # kind and version of the server, if another engine computed this lane
    guided: bool | None = None  # only in old traces: the run decoded under a grammar


@dataclass(frozen=True, slots=True)
class Drafted:
    lane: str
    cycle: int
    tokens: tuple[int, ...]
    pieces: tuple[str, ...]
    parents: tuple[int, ...]
    start: float
    end: float
    step_ends: tuple[float, ...] = ()  # when each token was ready; empty if the drafter does not measure it


@dataclass(frozen=True, slots=True)
class Details:
    """The fields of `Verified` that describe its distributions."""

    positions: tuple[Position, ...]
    distribution: Distribution | None = None
    p: float | None = None
    bonus: Distribution | None = None


@dataclass(frozen=True, slots=True)
class Verified:
    """One pass of the target over the pending tokens and the draft, and the verdict on each drafted token."""

    lane: str
    cycle: int
    positions: tuple[Position, ...]
    start: float
    end: float
    # The target's own token was drawn from this distribution. In schema 1 its key is "law".
    distribution: Distribution | None = None
    p: float | None = None  # of the target's own token, in the target's row, not in a residual
    bonus: Distribution | None = None  # the target's distribution after the whole chain, accepted or not


@dataclass(frozen=True, slots=True)
class Committed:
    """Tokens added to the text: the accepted ones, and usually the target's own token."""

    lane: str
    cycle: int
    tokens: tuple[int, ...]
    pieces: tuple[str, ...]
    accepted: int
    kind: Kind
    text: str  # the text that became readable, in whole characters
    total: int  # tokens in the text so far, without the prompt
    at: float


@dataclass(frozen=True, slots=True)
class Failed:
    """An error. If it is `fatal`, the lane ends. Otherwise it goes on, and this cycle has no draft."""

    lane: str
    cycle: int
    where: Literal["drafter", "engine", "target"]  # engine: all but the drafter; schema 1 says target
    reason: str
    fatal: bool
    at: float


# How the cycles of a server's lane were counted. exact: each chunk of its stream is one cycle. merged: its list of
# steps splits chunks into cycles. totals: no such list fits, and each chunk is taken for one cycle.
Counted = Literal["exact", "merged", "totals"]
FinishReason = Literal["length", "end", "stop", "context", "failed"]


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of a lane. `prefill` (to the first token), `draft`, `verify` and `other` (all other work) are seconds.

    `eager` is the reason why a lane on a GPU ran without captured graphs. `drafted` and `accepted` are a server's sums
    over the run, if it does not report single cycles.
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
    drafted: int | None = None
    accepted: int | None = None


Event = Started | Drafted | Verified | Committed | Failed | Finished
KINDS: dict[str, type] = {kind.__name__.lower(): kind for kind in typing.get_args(Event)}


def to_dict(event: Event) -> dict[str, Any]:
    """Return a mapping for JSON, whose key `event` names the kind. Fields that are None are left out."""
    return {"event": type(event).__name__.lower(), **_plain(event)}


def from_dict(data: dict[str, Any]) -> Event:
    """Make the event that `to_dict` wrote. Unknown keys are ignored; anything malformed raises ValueError."""
    name = data.get("event", "")
    kind = KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise ValueError(TranslatableText("unknown event {event!r}", event=name))
    if kind is Started and isinstance(data.get("params"), dict) and data["params"].get("grammar"):
        data = data | {"guided": True}
    if kind is Verified and "law" in data:  # schema 1
        data = {"distribution": data["law"]} | data
    return typing.cast(Event, _parse(kind, data, kind.__name__))


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if fields := _fields(value.__class__):
        return {name: _plain(item) for name, *_ in fields if (item := getattr(value, name)) is not None}
    return value


@cache
def _fields(kind: Any) -> tuple[tuple[str, Any, bool], ...]:
    """List a dataclass's fields as (name, type, whether it is required). Return () for other types."""
    if not dataclasses.is_dataclass(kind):
        return ()
    hints = typing.get_type_hints(kind)
    fields = dataclasses.fields(kind)
    return tuple((field.name, hints[field.name], field.default is dataclasses.MISSING) for field in fields)


@cache
def _parts(hint: Any) -> tuple[Any, tuple[Any, ...], tuple[tuple[str, Any, bool], ...]]:
    return typing.get_origin(hint), typing.get_args(hint), _fields(hint)


def _parse(hint: Any, value: Any, name: str) -> Any:
    """Check a JSON value and convert it to the type `hint`. Everything is checked, because anyone can write a trace."""
    origin, inner, fields = _parts(hint)
    if origin in (typing.Union, types.UnionType):
        (kind,) = (each for each in inner if each is not types.NoneType)
        return None if value is None else _parse(kind, value, name)
    if origin is tuple:
        if not isinstance(value, list):
            raise ValueError(TranslatableText("{name} must be a list", name=name))
        return tuple([_parse(inner[0], item, name) for item in value])
    if origin is Literal:
        if value not in inner:
            raise ValueError(TranslatableText("{name} cannot be {value!r}", name=name, value=value))
        return value
    if fields:
        if not isinstance(value, dict):
            raise ValueError(TranslatableText("{name} must be an object", name=hint.__name__))
        present = [(key, kind) for key, kind, required in fields if key in value or required]
        return hint(**{key: _parse(kind, value.get(key), f"{hint.__name__}.{key}") for key, kind in present})
    if hint is float and type(value) is int and abs(value) < MAX_NUMBER:
        value = float(value)
    if type(value) is not hint:
        kinds = {"wanted": hint.__name__, "found": type(value).__name__}
        raise ValueError(TranslatableText("{name} must be of type {wanted}, not {found}", name=name, **kinds))
    if hint in (int, float) and not abs(value) < MAX_NUMBER:
        raise ValueError(TranslatableText("{name} must be a number below 2^64", name=name))
    return value
