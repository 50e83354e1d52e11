"""Define what the adapters for vLLM and llama.cpp return, read it from a server's JSON, and describe it for events.

A wrong type or range, like any other fault of the server, raises ServerError.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..events import Candidate, Distribution, FinishReason, Position, UNNAMED
from ..messages import Refused

MAX_ID = 2**31
MAX_DRAFT = 256  # most tokens that a cycle can draft; traces have the same limit


class ServerError(Refused):
    """A server cannot be used as requested. Its own `message`, if it answered `status`, never has the API key."""

    def __init__(self, sentence: str, status: int = 0, message: str = "") -> None:
        super().__init__(sentence)
        self.status, self.message = status, message


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts that a server reports about itself. A fact that it does not report is None or ""."""

    kind: str  # "vLLM", "llama.cpp"
    version: str
    model: str
    context: int | None = None
    speculates: bool | None = None
    k: int | None = None  # the largest number of tokens that a cycle drafts


@dataclass(frozen=True, slots=True)
class Token:
    """One token of a text. A distribution that the server does not report leaves `logprob` None and `top` empty."""

    piece: str
    id: int | None = None  # None if the server sends only text
    logprob: float | None = None  # in nats
    top: tuple[tuple[str, float], ...] = ()  # the likeliest tokens at this place, with their log-probabilities


@dataclass(frozen=True, slots=True)
class Chunk:
    """The next part of a text: of one cycle, if the server tells cycles apart, or what came together."""

    text: str
    tokens: tuple[Token, ...]
    at: float  # seconds since the request was sent
    drafted: int | None = None  # in this cycle; None if the server does not report it
    accepted: int | None = None


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a stream, with (drafted, accepted) of each step with a draft and of the text; None: not reported."""

    reason: FinishReason
    counts: tuple[int, int] | None = None
    steps: tuple[tuple[int, int], ...] | None = None


def at(data: Any, *path: str | int) -> Any:
    """Return the value at `path` in nested JSON objects and lists; None if there is no such value."""
    for step in path:
        if isinstance(step, str):
            data = data.get(step) if isinstance(data, dict) else None
        else:
            data = data[step] if isinstance(data, list) and len(data) > step else None
    return data


def listed(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise unreadable(name)
    return value


def integers(value: Any, name: str = "token ids") -> tuple[int, ...]:
    return tuple(integer(item, name) for item in listed(value, name))


def integer(value: Any, name: str) -> int:
    if type(value) is not int or not 0 <= value < MAX_ID:
        raise unreadable(name)
    return value


def text(value: Any, name: str) -> str:
    """Return a text, with lone surrogates replaced, because no UTF-8 file can store them."""
    if not isinstance(value, str):
        raise unreadable(name)
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def logprob(value: Any) -> float:
    if type(value) not in (int, float) or math.isnan(value) or value > 1e-3:
        raise unreadable("log-probabilities")
    return min(0.0, float(value))


def label(value: Any) -> str:
    """Return a short printable name; "" if `value` is not a string."""
    return "".join(c for c in value[:120] if c.isprintable() and c not in "<>") if isinstance(value, str) else ""


def context(value: Any) -> int | None:
    return value if type(value) is int and value > 0 else None


def unreadable(name: str) -> ServerError:
    return ServerError(f"The server's answer holds {name} that cannot be read.")


def position(node: int, accepted: int, tokens: Sequence[Token]) -> Position:
    """Make the `Position` of drafted token `node`, which is rejected if its index is `accepted`."""
    token = tokens[node] if node < len(tokens) else None
    row = distribution(token) if token is not None and node <= accepted else None
    if node >= accepted:
        status = "rejected" if node == accepted else "discarded"
        return Position(node, UNNAMED, "", status, None, None, None, target=row)  # type: ignore[arg-type]
    if token is None:
        return Position(node, UNNAMED, "", "accepted", None, None, None)
    return Position(node, id_of(token), token.piece, "accepted", chance(token), None, None, target=row)


def id_of(token: Token) -> int:
    return UNNAMED if token.id is None else token.id


def chance(token: Token | None) -> float | None:
    return None if token is None or token.logprob is None else math.exp(token.logprob)


def distribution(token: Token) -> Distribution | None:
    """Make a distribution of `token.top`, all other tokens counted as one; None if the server sent none."""
    if not token.top:
        return None
    candidates = [
        Candidate(id_of(token) if piece == token.piece else UNNAMED, piece, math.exp(value))
        for piece, value in token.top
    ]
    candidates.sort(key=lambda x: -x.prob)
    rest = max(0.0, 1.0 - sum(x.prob for x in candidates))
    entropy = sum(-p * math.log(p) for p in (*(x.prob for x in candidates), rest) if p > 0.0)
    return Distribution(tuple(candidates), rest, entropy)
