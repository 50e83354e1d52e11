"""Wrap an engine of another library, in this process, as a `Server`. It reports texts, and no log-probabilities."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace

from ..events import FinishReason
from ..types import SamplingParams
from .base import Chunk, Ending, Facts, ServerError, Token

Write = Callable[[Sequence[int], SamplingParams], Sequence[int]]  # the new tokens of one text after a prompt
Counts = Callable[[], tuple[int, int] | None]  # tokens drafted and accepted in the text written last


class InProcess:
    """`write` must keep `params.seed`, or draw anew at each call; `encode` is the model's tokenizer."""

    def __init__(
        self, facts: Facts, encode: Callable[[str], Sequence[int]], write: Write, counts: Counts = lambda: None
    ) -> None:
        self.facts, self._encode, self._write, self._counts = facts, encode, write, counts

    def tokenize(self, text: str) -> tuple[int, ...]:
        return tuple(self._encode(text))

    tokenize_chat = tokenize

    def stream(
        self, prompt: str | Sequence[int], params: SamplingParams, top: int = 0
    ) -> Generator[Chunk | Ending, None, None]:
        began = time.perf_counter()
        tokens = self._write(self.tokenize(prompt) if isinstance(prompt, str) else prompt, params)
        at = time.perf_counter() - began
        yield Chunk("", tuple(Token(f"#{token}", token) for token in tokens), at)
        drafted, accepted = self._counts() or (None, None)
        reason: FinishReason = "length" if len(tokens) == params.max_tokens else "end"
        yield Ending(reason, at, drafted=drafted, accepted=accepted)

    def sample(self, prompt: Sequence[int], params: SamplingParams, draws: int) -> list[tuple[int, ...]]:
        seeds = range(params.seed, params.seed + draws)
        return [tuple(self._write(prompt, replace(params, seed=seed))) for seed in seeds]

    def distribution(self, prompt: Sequence[int], params: SamplingParams, top: int) -> dict[int, float]:
        raise ServerError("The server reports no log-probabilities.")
