"""llama.cpp's llama-server, read in the source that llama-cpp-python 0.3.36 carries (November 2026).

It sends a token a chunk. `timings_per_token` adds running sums: `draft_n` grows before a cycle's first token is sent,
`draft_n_accepted` with it, so cycles are known as they come. Accepted tokens carry no probabilities. Speculation cannot
be switched off for one request.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Sequence
from typing import Any

from ..events import FinishReason
from ..types import SamplingParams
from . import fields
from .base import Chunk, Ending, Facts, ServerError, Token
from .fields import at
from .stream import Client

REASONS: dict[str, FinishReason] = {"limit": "length", "eos": "end", "word": "stop"}
NO_TEMPLATE = """{%- for message in messages -%}
  {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
  {{- '<|im_start|>assistant\n' -}}
{%- endif -%}"""  # what it puts in place of a template that a model does not have
SEEDS = 2**32 - 1  # the last number of 32 bits stands for chance


class LlamaCpp:
    def __init__(self, client: Client, model: dict[str, Any]) -> None:
        self._client = client
        props = client.ask("/props")
        context = at(props, "default_generation_settings", "n_ctx")
        self.facts = Facts(
            kind="llama.cpp",
            version=fields.label(at(props, "build_info")),
            model=fields.label(at(model, "id")),
            context=context if type(context) is int and context > 0 else None,
            speculates=self._speculates(),
        )
        own = {name: at(props, "default_generation_settings", "params", name) for name in ("top_k", "top_p")}
        # What a request gets that names none.
        self.usual = {name: float(one) for name, one in own.items() if isinstance(one, (int, float))}
        self._chats = at(props, "chat_template") not in (None, "", NO_TEMPLATE)

    def _speculates(self) -> bool | None:
        try:
            speculative = at(self._client.ask("/slots"), 0, "speculative")
        except ServerError:  # started with --no-slots
            return None
        return speculative if isinstance(speculative, bool) else None

    def tokenize(self, text: str) -> tuple[int, ...]:
        return fields.ids(at(self._client.ask("/tokenize", {"content": text, "add_special": True}), "tokens"))

    def read(self, prompt: str) -> tuple[int, ...]:
        if not self._chats:
            return self.tokenize(prompt)
        messages = [{"role": "user", "content": prompt}]
        body = {"messages": messages, "chat_template_kwargs": {"enable_thinking": False}}
        return self.tokenize(fields.text(at(self._client.ask("/apply-template", body), "prompt"), "text"))

    def stream(
        self, prompt: str | Sequence[int], params: SamplingParams, top: int = 0
    ) -> Generator[Chunk | Ending, None, None]:
        body = self._body(prompt, params) | {"stream": True, "timings_per_token": True, "n_probs": max(top, 1)}
        cycle = Cycle()
        count = 0
        for data, arrived in self._client.events("/completion", body):
            sums = at(data, "timings", "draft_n") or 0, at(data, "timings", "draft_n_accepted") or 0
            drafted, accepted = (fields.integer(value, "counts of drafts") for value in sums)
            if at(data, "stop") is True:
                yield from cycle.flush()
                yield Ending(reason(data), arrived, drafted=drafted, accepted=accepted)
                return
            predicted = fields.integer(at(data, "tokens_predicted"), "counts of tokens")
            # Tokens that are part of a character are not sent alone.
            silent = [Token("")] * min(predicted - count - 1, params.max_tokens)
            count = predicted
            yield from cycle.take(
                [*silent, token(data)], fields.text(at(data, "content"), "text"), arrived, drafted, accepted
            )

    def sample(self, prompt: Sequence[int], params: SamplingParams, draws: int) -> list[tuple[int, ...]]:
        """A request each: several texts in one need as many slots as the server was started with."""
        texts = []
        for draw in range(draws):
            body = self._body(prompt, params) | {"return_tokens": True, "seed": (params.seed + draw) % SEEDS}
            texts.append(fields.ids(at(self._client.ask("/completion", body), "tokens")))
        return texts

    def timed(self, prompt: Sequence[int], params: SamplingParams) -> tuple[tuple[int, ...], float]:
        """A text's token ids, and the seconds that it took after the first one by the server's own clock."""
        payload = self._client.ask("/completion", self._body(prompt, params) | {"n_probs": 0, "return_tokens": True})
        tokens, spent = fields.ids(at(payload, "tokens")), at(payload, "timings", "predicted_ms")
        if type(spent) not in (int, float) or not spent > 0.0:
            raise fields.unreadable("times")
        return tokens, spent / 1e3

    def distribution(self, prompt: Sequence[int], params: SamplingParams, top: int) -> dict[int, float]:
        payload = self._client.ask("/completion", self._body(prompt, params) | {"n_predict": 1, "n_probs": max(top, 1)})
        found = at(payload, "completion_probabilities", 0, "top_probs")
        if not found:
            raise ServerError("The server reports no probabilities.")
        return {
            fields.integer(at(item, "id"), "token ids"): math.exp(probability(at(item, "prob")))
            for item in fields.listed(found, "probabilities")
        }

    def _body(self, prompt: str | Sequence[int], params: SamplingParams) -> dict[str, Any]:
        """Temperature, top-k and top-p alone; the server by itself would do more."""
        return {
            "prompt": prompt if isinstance(prompt, str) else list(prompt),
            "n_predict": params.max_tokens,
            "temperature": params.temperature,
            "top_k": params.top_k,
            "top_p": params.top_p,
            "samplers": ["temperature", "top_k", "top_p"],
            "min_p": 0.0,
            "repeat_penalty": 1.0,
            "seed": params.seed % SEEDS,
            "stop": list(params.stop),
            "ignore_eos": params.ignore_end,
            "post_sampling_probs": True,
        }


class Cycle:
    """Joins the chunks of one cycle: the tokens from one growth of the sums to the last that this cycle brings."""

    def __init__(self) -> None:
        self._drafted = self._accepted = self._missing = 0
        self._held: Chunk | None = None

    def take(self, tokens: list[Token], text: str, at: float, drafted: int, accepted: int) -> Iterator[Chunk]:
        if drafted != self._drafted or self._missing <= 0:
            yield from self.flush()
            self._missing = 1 + accepted - self._accepted
            self._drafted, self._accepted = drafted, accepted
        self._missing -= len(tokens)
        before = self._held or Chunk("", (), at)
        self._held = Chunk(before.text + text, (*before.tokens, *tokens), at, drafted, accepted)
        if self._missing <= 0:
            yield from self.flush()

    def flush(self) -> Iterator[Chunk]:
        if self._held is not None:
            yield self._held
        self._held, self._missing = None, 0


def token(data: Any) -> Token:
    """The one of a chunk, with the distribution that it was drawn from where the server tells it."""
    found = fields.ids(at(data, "tokens"))
    if len(found) != 1:
        raise fields.unreadable("token ids")
    probabilities = at(data, "completion_probabilities", 0)
    if probabilities is None:
        return Token(fields.text(at(data, "content"), "text"), found[0])
    top = tuple(
        (fields.text(at(item, "token"), "tokens"), probability(at(item, "prob")))
        for item in fields.listed(at(probabilities, "top_probs") or [], "probabilities")
    )
    return Token(fields.text(at(data, "content"), "text"), found[0], probability(at(probabilities, "prob")), top)


def probability(value: Any) -> float:
    """As a log-probability."""
    if type(value) not in (int, float) or not 0.0 <= value <= 1.001:
        raise fields.unreadable("probabilities")
    return math.log(min(1.0, value)) if value else -math.inf


def reason(data: Any) -> FinishReason:
    found = REASONS.get(fields.label(at(data, "stop_type")))
    if found is None:
        raise ServerError("The server ended its answer without saying why.")
    return "context" if found == "length" and at(data, "truncated") is True else found
