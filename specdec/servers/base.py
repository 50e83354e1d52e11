"""Define what the adapters for vLLM and llama.cpp return, and raise for any fault of the server."""

from dataclasses import dataclass
from typing import Any

from ..events import FinishReason
from ..types import TranslatableText


class ServerError(ValueError):
    """A server cannot be used as requested. `sentence` is the message, without the API key."""

    def __init__(self, reason: str, /, **values: Any) -> None:
        self.sentence = reason if isinstance(reason, TranslatableText) else TranslatableText(reason, **values)
        super().__init__(self.sentence)


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
    """One token of a text.

    `logprob` is the token's log-probability in nats. `top` lists the likeliest tokens at its position, each with its
    log-probability. If the server reports no distribution to sample from, `logprob` is None and `top` is ().
    """

    piece: str
    id: int | None = None  # None if the server sends only text
    logprob: float | None = None
    top: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Chunk:
    """The next part of a text and its tokens. `drafted` and `accepted` are running sums, None if not sent."""

    text: str
    tokens: tuple[Token, ...]
    at: float  # seconds since the request was sent
    drafted: int | None = None
    accepted: int | None = None


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a stream. `steps` has (drafted, accepted) of each step with a draft."""

    reason: FinishReason
    at: float
    steps: tuple[tuple[int, int], ...] | None = None
    drafted: int | None = None  # in the whole text
    accepted: int | None = None

    @property
    def counts(self) -> tuple[int, int] | None:
        """Tokens drafted and accepted in the whole text; None if the server reports neither steps nor sums."""
        if self.steps is not None:
            return sum(drafted for drafted, _ in self.steps), sum(accepted for _, accepted in self.steps)
        return None if self.drafted is None or self.accepted is None else (self.drafted, self.accepted)
