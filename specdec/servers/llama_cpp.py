"""Adapter for llama.cpp's llama-server, written from the source in llama-cpp-python 0.3.36 (November 2026).

The server sends a chunk per token. With `timings_per_token`, a chunk also has `draft_n` and `draft_n_accepted`, sums
over the text. Both change in the chunk of a cycle's first token. The server sends no probabilities of accepted tokens.
"""

import math
from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any

from ..events import FinishReason
from ..types import SamplingParams
from . import answers
from .answers import at, Chunk, Ending, Facts, ServerError, Token
from .stream import Client

REASONS: dict[str, FinishReason] = {"limit": "length", "eos": "end", "word": "stop"}
NO_TEMPLATE = """{%- for message in messages -%}
  {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
  {{- '<|im_start|>assistant\n' -}}
{%- endif -%}"""  # llama-server reports this template for a model without one
SEEDS = 2**32 - 1  # this number itself means "a random seed" to the server


class LlamaCpp:
    def __init__(self, client: Client, model: dict[str, Any]) -> None:
        self._client = client
        props = client.ask("/props")
        settings = at(props, "default_generation_settings")
        try:
            speculative = at(client.ask("/slots"), 0, "speculative")
        except ServerError:  # the server was started with --no-slots
            speculative = None
        self.facts = Facts(
            kind="llama.cpp",
            version=answers.label(at(props, "build_info")),
            model=answers.label(at(model, "id")),
            context=answers.context(at(settings, "n_ctx")),
            speculates=speculative if isinstance(speculative, bool) else None,
        )
        self._has_template = at(props, "chat_template") not in (None, "", NO_TEMPLATE)

    def tokenize(self, text: str) -> tuple[int, ...]:
        return answers.integers(at(self._client.ask("/tokenize", {"content": text, "add_special": True}), "tokens"))

    def tokenize_chat(self, prompt: str) -> tuple[int, ...]:
        if not self._has_template:
            return self.tokenize(prompt)
        messages = [{"role": "user", "content": prompt}]
        body = {"messages": messages, "chat_template_kwargs": {"enable_thinking": False}}
        return self.tokenize(answers.text(at(self._client.ask("/apply-template", body), "prompt"), "text"))

    def stream(
        self, prompt: Sequence[int], params: SamplingParams, top: int = 0
    ) -> Generator[Chunk | Ending, None, None]:
        """Yield a `Chunk` per cycle. A cycle with a draft begins with the server's chunk in which the sums grow."""
        options = {"stream": True, "timings_per_token": True, "n_probs": max(top, 1)}
        cycle: Chunk | None = None
        sums, missing, count = (0, 0), 0, 0  # sums in the cycle's first chunk; tokens the cycle lacks; all tokens
        for data, arrived in self._client.events("/completion", self._body(prompt, params) | options):
            counts = at(data, "timings", "draft_n") or 0, at(data, "timings", "draft_n_accepted") or 0
            drafted, accepted = (answers.integer(value, "counts of drafts") for value in counts)
            last = at(data, "stop") is True
            if cycle and (last or drafted != sums[0]):
                yield cycle
                cycle = None
            if last:
                yield Ending(finish(data), (drafted, accepted))
                return
            if cycle is None:
                cycle = Chunk("", (), arrived, drafted - sums[0], accepted - sums[1])
                missing, sums = 1 + accepted - sums[1], (drafted, accepted)
            predicted = answers.integer(at(data, "tokens_predicted"), "counts of tokens")
            # The server sends no chunk for a token that ends inside a character: an empty token replaces it.
            tokens = *[Token("")] * min(predicted - count - 1, params.max_tokens), token(data)
            count, missing = predicted, missing - len(tokens)
            text = cycle.text + answers.text(at(data, "content"), "text")
            cycle = replace(cycle, text=text, tokens=(*cycle.tokens, *tokens), at=arrived)
            if missing <= 0:
                yield cycle
                cycle = None

    def sample(self, prompt: Sequence[int], params: SamplingParams, draws: int) -> list[tuple[int, ...]]:
        """Sample texts, one per request: a request for n texts would need n slots of the server."""
        texts = []
        for draw in range(draws):
            body = self._body(prompt, params) | {"return_tokens": True, "seed": (params.seed + draw) % SEEDS}
            texts.append(answers.integers(at(self._client.ask("/completion", body), "tokens")))
        return texts

    def distribution(self, prompt: Sequence[int], params: SamplingParams, top: int) -> dict[int, float]:
        payload = self._client.ask("/completion", self._body(prompt, params) | {"n_predict": 1, "n_probs": max(top, 1)})
        likeliest = at(payload, "completion_probabilities", 0, "top_probs")
        if not likeliest:
            raise ServerError("The server reports no log-probabilities.")
        return {
            answers.integer(at(item, "id"), "token ids"): math.exp(logprob(at(item, "prob")))
            for item in answers.listed(likeliest, "probabilities")
        }

    def _body(self, prompt: Sequence[int], params: SamplingParams) -> dict[str, Any]:
        """Make the body of a request. It switches off the server's other samplers, such as min-p."""
        return {
            "prompt": list(prompt),
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


def token(data: Any) -> Token:
    ids = answers.integers(at(data, "tokens"))
    if len(ids) != 1:
        raise answers.unreadable("token ids")
    piece, reported = answers.text(at(data, "content"), "text"), at(data, "completion_probabilities", 0)
    if reported is None:
        return Token(piece, ids[0])
    top = answers.listed(at(reported, "top_probs") or [], "probabilities")
    likeliest = tuple((answers.text(at(entry, "token"), "tokens"), logprob(at(entry, "prob"))) for entry in top)
    return Token(piece, ids[0], logprob(at(reported, "prob")), likeliest)


def logprob(probability: Any) -> float:
    if type(probability) not in (int, float) or not 0.0 <= probability <= 1.001:
        raise answers.unreadable("probabilities")
    return math.log(min(1.0, probability)) if probability else -math.inf


def finish(data: Any) -> FinishReason:
    reason = REASONS.get(answers.label(at(data, "stop_type")))
    if reason is None:
        raise ServerError("The server ended its answer without saying why.")
    return "context" if reason == "length" and at(data, "truncated") is True else reason
