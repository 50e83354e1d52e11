"""Adapter for vLLM's completions API, written from the source of 0.32.0 (November 2026).

vLLM streams one chunk per step; for a slow reader, it joins steps. With `--per-request-spec-decode-metrics
detailed` the last chunk reports the drafted and accepted tokens of each step; with `summary`, only their sums.
"""

import contextlib
import math
import re
from collections.abc import Generator, Sequence
from typing import Any

from ..events import FinishReason
from ..types import SamplingParams
from . import answers
from .answers import at, Chunk, Ending, Facts, ServerError, Token
from .stream import Client

POSITION = re.compile(r'vllm:spec_decode_num_accepted_tokens_per_pos_total\{[^}\n]*position="(\d{1,3})"')
NO_TEMPLATE = "default chat template is no longer allowed"  # part of transformers' error for a model without one
PLACEHOLDER = "token_id:"  # vLLM writes it before an id that stands in place of a token's text


class VLLM:
    def __init__(self, client: Client, model: dict[str, Any]) -> None:
        self._client = client
        counters = ""
        with contextlib.suppress(ServerError):  # some servers do not serve their metrics
            counters = client.read_bytes("/metrics").decode(errors="replace")
        self.facts = Facts(
            kind="vLLM",
            version=answers.label(at(client.ask("/version"), "version")),
            model=answers.label(at(model, "id")),
            context=answers.context(at(model, "max_model_len")),
            speculates="vllm:spec_decode_num_drafts_total" in counters if "vllm:" in counters else None,
            k=max((int(position) + 1 for position in POSITION.findall(counters)), default=None),
        )

    def tokenize(self, text: str) -> tuple[int, ...]:
        body = {"model": self.facts.model, "prompt": text}
        return answers.integers(at(self._client.ask("/tokenize", body), "tokens"))

    def tokenize_chat(self, prompt: str) -> tuple[int, ...]:
        """Apply the chat template up to where the answer begins, with thinking switched off."""
        messages = [{"role": "user", "content": prompt}]
        body = {"model": self.facts.model, "messages": messages, "chat_template_kwargs": {"enable_thinking": False}}
        try:
            return answers.integers(at(self._client.ask("/tokenize", body), "tokens"))
        except ServerError as error:
            if NO_TEMPLATE in error.message:
                return self.tokenize(prompt)
            if error.status not in (400, 404, 422, 500):
                raise
            raise ServerError(
                f"The server does not apply its model's chat template to the prompt. {error} Update the server, or "
                "check its --chat-template."
            ) from None

    def stream(
        self, prompt: Sequence[int], params: SamplingParams, top: int = 0
    ) -> Generator[Chunk | Ending, None, None]:
        raw = params.temperature == 1.0 and params.top_k == 0 and params.top_p == 1.0
        exact = params.temperature == 0.0 or raw  # otherwise the reported distribution may not be the sampled one
        options = {"stream": True, "stream_options": {"include_usage": True}, "logprobs": top}
        reason: FinishReason | None = None
        last: Any = None
        for data, arrived in self._client.events("/v1/completions", self._body(prompt, params) | options):
            choice = self._choice(data)
            if choice is None:
                last = data
                continue
            yield Chunk(answers.text(at(choice, "text"), "text"), tokens(choice, params, exact), arrived)
            reason = finish(choice) or reason
        if reason is None:
            raise ServerError("The server ended its answer without saying why.")
        yield ending(reason, at(last, "metrics", "speculative_decoding"))

    def sample(self, prompt: Sequence[int], params: SamplingParams, draws: int) -> list[tuple[int, ...]]:
        """Sample texts in one request. vLLM seeds text i with seed + i."""
        payload = self._client.ask("/v1/completions", self._body(prompt, params) | {"n": draws})
        self._choice(payload)
        choices = answers.listed(at(payload, "choices"), "texts")
        if len(choices) != draws:
            raise answers.unreadable("texts")
        return [answers.integers(at(choice, "token_ids")) for choice in choices]

    def distribution(self, prompt: Sequence[int], params: SamplingParams, top: int) -> dict[int, float]:
        """Return the next token's probabilities. Only `--logprobs-mode processed_logprobs` applies the temperature."""
        body = self._body(prompt, params) | {"max_tokens": 1, "logprobs": top, "return_tokens_as_token_ids": True}
        likeliest = at(self._choice(self._client.ask("/v1/completions", body)), "logprobs", "top_logprobs", 0)
        if not isinstance(likeliest, dict) or not likeliest:
            raise ServerError("The server reports no log-probabilities.")
        return {parse_token_id(name): math.exp(answers.logprob(value)) for name, value in likeliest.items()}

    def _body(self, prompt: Sequence[int], params: SamplingParams) -> dict[str, Any]:
        """Set every sampling parameter, since a model's generation_config.json may have other defaults."""
        return {
            "model": self.facts.model,
            "prompt": list(prompt),
            "max_tokens": params.max_tokens,
            "temperature": params.temperature,
            "top_k": params.top_k,
            "top_p": params.top_p,
            "min_p": 0.0,
            "repetition_penalty": 1.0,
            "presence_penalty": 0.0,
            "frequency_penalty": 0.0,
            "seed": (params.seed + 2**63) % 2**64 - 2**63,  # vLLM accepts signed integers of 64 bits
            "stop": list(params.stop),
            "ignore_eos": params.ignore_end,
            "return_token_ids": True,
        }

    def _choice(self, data: Any) -> Any:
        if at(data, "model") != self.facts.model:
            raise ServerError("The answer comes from another model than the one that was requested.")
        return at(data, "choices", 0)


def tokens(choice: Any, params: SamplingParams, exact: bool) -> tuple[Token, ...]:
    """Read a chunk's tokens. Drop log-probabilities that are not of the sampled distribution (`exact`)."""
    pieces = [answers.text(name, "tokens") for name in answers.listed(at(choice, "logprobs", "tokens") or [], "tokens")]
    token_ids = answers.integers(at(choice, "token_ids") or [])
    values = answers.listed(at(choice, "logprobs", "token_logprobs") or [], "log-probabilities")
    tops = answers.listed(at(choice, "logprobs", "top_logprobs") or [None] * len(pieces), "log-probabilities")
    if len({len(pieces), len(values), len(tops), len(token_ids)}) > 1:
        raise answers.unreadable("tokens")
    result = []
    for piece, token_id, value, top in zip(pieces, token_ids, values, tops, strict=True):
        if not exact or value is None:
            result.append(Token(piece, token_id))
            continue
        if not isinstance(top, dict | None):
            raise answers.unreadable("log-probabilities")
        likeliest = tuple((answers.text(name, "tokens"), answers.logprob(x)) for name, x in (top or {}).items())
        logprob = answers.logprob(value)
        if params.temperature == 0.0:  # the distribution is one-hot on the likeliest token
            best, highest = max(likeliest, key=lambda item: item[1], default=(piece, logprob))
            likeliest = ((piece if logprob >= highest else best, 0.0),)
            logprob = 0.0 if logprob >= highest else -math.inf
        result.append(Token(piece, token_id, logprob, likeliest))
    return tuple(result)


def finish(choice: Any) -> FinishReason | None:
    """Translate the reason: `stop` means a stop string if `stop_reason` is text, else an end token."""
    reason = at(choice, "finish_reason")
    if reason == "stop":
        return "stop" if isinstance(at(choice, "stop_reason"), str) else "end"
    if reason is not None and reason != "length":
        raise ServerError(f"The server aborted the text ({answers.label(reason)}).")
    return reason


def ending(reason: FinishReason, payload: Any) -> Ending:
    name, all_drafted = "counts of drafts", at(payload, "num_draft_tokens")
    if at(payload, "per_step_drafted") is None:
        if all_drafted is None:
            return Ending(reason)
        all_accepted = answers.integer(at(payload, "num_accepted_draft_tokens"), name)
        return Ending(reason, (answers.integer(all_drafted, name), all_accepted))
    drafted, accepted = (answers.integers(at(payload, key), name) for key in ("per_step_drafted", "per_step_accepted"))
    steps = tuple(zip(drafted, accepted, strict=False))
    if len(drafted) != len(accepted) or not all(a <= d <= answers.MAX_DRAFT for d, a in steps):
        raise answers.unreadable(name)
    return Ending(reason, (sum(drafted), sum(accepted)), steps)


def parse_token_id(name: str) -> int:
    digits = name.removeprefix(PLACEHOLDER)
    if digits == name or not digits.isdecimal() or len(digits) > 10:
        raise answers.unreadable("token ids")
    return int(digits)
