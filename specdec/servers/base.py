"""Define the protocol that the adapters for vLLM and llama.cpp implement, and the types that they return."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ..events import FinishReason
from ..types import SamplingParams, TranslatableText


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


class Server(Protocol):
    """One server. For any fault of the server, every method raises ServerError and no other error."""

    @property
    def facts(self) -> Facts: ...

    def tokenize(self, text: str) -> tuple[int, ...]:
        """Return the server's token ids for `text`, including special tokens."""
        ...

    def tokenize_chat(self, prompt: str) -> tuple[int, ...]:
        """Return the ids of a user's message in the model's chat template; without a template, do as `tokenize`."""
        ...

    def stream(
        self, prompt: Sequence[int], params: SamplingParams, top: int = 0
    ) -> Generator[Chunk | Ending, None, None]:
        """Yield chunks, then `Ending`; `top` is the size of `Token.top`. Closing the generator ends the request."""
        ...

    def sample(self, prompt: Sequence[int], params: SamplingParams, draws: int) -> list[tuple[int, ...]]:
        """Return the tokens of `draws` independent texts of `params.max_tokens` tokens, seeded by `params.seed`."""
        ...

    def distribution(self, prompt: Sequence[int], params: SamplingParams, top: int) -> dict[int, float]:
        """Return the `top` likeliest tokens after `prompt`, with the probabilities that the server reports."""
        ...
