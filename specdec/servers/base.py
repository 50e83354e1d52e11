"""What any server is asked and what it tells, whoever wrote it; and from log-probabilities the distribution in use."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ..events import FinishReason
from ..proof.warp import warped
from ..types import SamplingParams, TranslatableText


class ServerError(ValueError):
    """What a server did wrong, or why it cannot be asked: one sentence for people (`said`), without its key."""

    def __init__(self, reason: str, /, **values: Any) -> None:
        self.said = reason if isinstance(reason, TranslatableText) else TranslatableText(reason, **values)
        super().__init__(self.said)


@dataclass(frozen=True, slots=True)
class Facts:
    """What a server says of itself; None and "" where it does not."""

    kind: str  # "vLLM", "llama.cpp"
    version: str
    model: str
    context: int | None = None
    speculates: bool | None = None
    k: int | None = None  # tokens drafted a cycle, at most


@dataclass(frozen=True, slots=True)
class Token:
    """One token as a server tells it. `id` is None where it tells text only.

    `top` are the likeliest tokens of this place with their log-probabilities in nats, this one perhaps among them.
    `logprob` and `top` are those of the distribution that this token was drawn from; None and () where the server tells
    another.
    """

    piece: str
    id: int | None = None
    logprob: float | None = None
    top: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Chunk:
    """What arrived together. `drafted` and `accepted` are sums so far, where a server tells them as it goes."""

    text: str
    tokens: tuple[Token, ...]
    at: float  # seconds since the request was sent
    drafted: int | None = None
    accepted: int | None = None


@dataclass(frozen=True, slots=True)
class Ending:
    """The last word of a stream. Steps are the server's own list, without the first token, which the prompt gives,
    and without steps that drafted nothing. `histogram` says how many steps accepted 0, 1, 2, … drafted tokens.
    """

    reason: FinishReason
    at: float
    step_drafted: tuple[int, ...] | None = None
    step_accepted: tuple[int, ...] | None = None
    drafted: int | None = None
    accepted: int | None = None
    histogram: tuple[int, ...] | None = None

    @property
    def counts(self) -> tuple[int, int] | None:
        """Tokens drafted and accepted, of the steps or in all; None where the server tells neither."""
        if self.step_drafted is not None and self.step_accepted is not None:
            return sum(self.step_drafted), sum(self.step_accepted)
        return None if self.drafted is None or self.accepted is None else (self.drafted, self.accepted)


class Server(Protocol):
    """One server at one address. Every method raises ServerError, and nothing else, for whatever a server does."""

    @property
    def facts(self) -> Facts: ...

    def tokenize(self, text: str) -> tuple[int, ...]:
        """The ids that the server reads for `text`, special tokens included."""
        ...

    def read(self, prompt: str) -> tuple[int, ...]:
        """The ids of a person's prompt: inside the model's chat template, where it has one; else as `tokenize`."""
        ...

    def stream(
        self, prompt: str | Sequence[int], params: SamplingParams, top: int = 0
    ) -> Generator[Chunk | Ending, None, None]:
        """One text as it arrives, `Ending` last. `top` asks for so many alternatives a token.

        Closing the generator hangs up, and the server stops.
        """
        ...

    def sample(self, prompt: Sequence[int], params: SamplingParams, draws: int) -> list[tuple[int, ...]]:
        """The tokens of `draws` independent texts of `params.max_tokens` each: one request where the server can.

        The same `params.seed` asks for the same texts, where the server keeps its word.
        """
        ...

    def distribution(self, prompt: Sequence[int], params: SamplingParams, top: int) -> dict[int, float]:
        """The likeliest tokens after `prompt` with their probabilities under `params`, as the server tells them."""
        ...


def filters(params: SamplingParams) -> bool:
    return params.top_k > 0 or params.top_p < 1.0


def after_warp(logprobs: dict[int, float], params: SamplingParams) -> dict[int, float]:
    """Probabilities after temperature, top-k and top-p; `logprobs` must hold the whole vocabulary, or its likeliest
    tokens at temperature 0.
    """
    tokens = sorted(logprobs)  # of equals the lower id comes first
    chances = warped([logprobs[token] for token in tokens], params)
    return {token: p for token, p in zip(tokens, chances, strict=True) if p > 0.0}


def probabilities(logprobs: dict[int, float], params: SamplingParams) -> dict[int, float]:
    """Of log-probabilities that are those of the distribution in use; at temperature 0 it is one-hot."""
    if params.temperature == 0.0:
        return after_warp(logprobs, params)
    return {token: math.exp(value) for token, value in logprobs.items()}


def told_token(
    piece: str, number: int | None, logprob: float, top: tuple[tuple[str, float], ...], params: SamplingParams
) -> Token:
    """The same of a token; at temperature 0 the distribution is one-hot on what the model likes best."""
    if params.temperature > 0.0:
        return Token(piece, number, logprob, top)
    best = max(top, key=lambda item: item[1], default=(piece, logprob))
    if logprob >= best[1]:
        return Token(piece, number, 0.0, ((piece, 0.0),))
    return Token(piece, number, -math.inf, ((best[0], 0.0),))
