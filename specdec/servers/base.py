"""The protocol of a server: what the adapters for vLLM and llama.cpp offer, and the types that they return."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ..events import FinishReason
from ..types import SamplingParams, TranslatableText


class ServerError(ValueError):
    """A server answered wrongly, or cannot be asked: one `sentence`, which never holds the key."""

    def __init__(self, reason: str, /, **values: Any) -> None:
        self.sentence = reason if isinstance(reason, TranslatableText) else TranslatableText(reason, **values)
        super().__init__(self.sentence)


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts that a server reports about itself; None or "" if it does not."""

    kind: str  # "vLLM", "llama.cpp"
    version: str
    model: str
    context: int | None = None
    speculates: bool | None = None
    k: int | None = None  # tokens drafted a cycle, at most


@dataclass(frozen=True, slots=True)
class Token:
    """One token. `logprob` and `top`, the likeliest tokens of this place, are log-probabilities in nats under the
    distribution that the token was drawn from; None and () where the server does not report that one.
    """

    piece: str
    id: int | None = None  # None where the server sends text only
    logprob: float | None = None
    top: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Chunk:
    """Text and tokens that arrived together. `drafted` and `accepted` are running sums, if the server sends them."""

    text: str
    tokens: tuple[Token, ...]
    at: float  # seconds since the request was sent
    drafted: int | None = None
    accepted: int | None = None


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a stream. `steps` lists what each step that drafted drafted and accepted; `drafted` and `accepted` are
    the sums.
    """

    reason: FinishReason
    at: float
    steps: tuple[tuple[int, int], ...] | None = None
    drafted: int | None = None
    accepted: int | None = None

    @property
    def counts(self) -> tuple[int, int] | None:
        """Tokens drafted and accepted in the whole text; None if the server reports neither steps nor sums."""
        if self.steps is not None:
            return sum(drafted for drafted, _ in self.steps), sum(accepted for _, accepted in self.steps)
        return None if self.drafted is None or self.accepted is None else (self.drafted, self.accepted)


class Server(Protocol):
    """One server. Every method raises ServerError, and nothing else, for whatever the server does."""

    @property
    def facts(self) -> Facts: ...

    def tokenize(self, text: str) -> tuple[int, ...]:
        """The server's ids for `text`, special tokens included."""
        ...

    def tokenize_chat(self, prompt: str) -> tuple[int, ...]:
        """The ids of a user's message inside the model's chat template; as `tokenize` where it has none."""
        ...

    def stream(
        self, prompt: str | Sequence[int], params: SamplingParams, top: int = 0
    ) -> Generator[Chunk | Ending, None, None]:
        """Yield one text as it arrives, `Ending` last, with `top` alternatives a token. Closing it stops the server."""
        ...

    def sample(self, prompt: Sequence[int], params: SamplingParams, draws: int) -> list[tuple[int, ...]]:
        """Return the tokens of `draws` independent texts of `params.max_tokens` each, repeatable by `params.seed`."""
        ...

    def distribution(self, prompt: Sequence[int], params: SamplingParams, top: int) -> dict[int, float]:
        """Return the likeliest tokens after `prompt` with their probabilities under `params`."""
        ...
