"""vLLM's completions API, read in the source of 0.32.0 (November 2026) and tried.

It streams one chunk a step; a slow reader gets steps joined. With `--per-request-spec-decode-metrics detailed` (or
`summary`) the last chunk tells what each step drafted and accepted (or how many of each). Speculation cannot be
switched off for one request: a baseline is a second server. Without that flag the counters of /metrics tell the same,
if nobody else was served meanwhile.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections import Counter
from collections.abc import Generator, Sequence
from itertools import pairwise
from typing import Any

from ..events import FinishReason
from ..types import SamplingParams
from . import fields
from .base import after_warp, Chunk, Ending, Facts, filters, probabilities, ServerError, Token, told_token
from .fields import at
from .stream import Client

AT_ONCE = 64  # texts asked for in one request
COUNTER = re.compile(r'^vllm:(\w+)_total\{(?:[^}\n]*position="(\d{1,3})")?[^}\n]*\} ([\d.e+]{1,20})$', re.MULTILINE)
WRITTEN, DRAFTS = "generation_tokens", "spec_decode_num_drafts"
DRAFTED, ACCEPTED = "spec_decode_num_draft_tokens", "spec_decode_num_accepted_tokens"
PLACES = "spec_decode_num_accepted_tokens_per_pos"
NO_TEMPLATE = "default chat template is no longer allowed"
PLACEHOLDER = "token_id:"  # how an id is written where names of tokens are expected

Counters = Counter[tuple[str, int]]


class VLLM:
    def __init__(self, client: Client, model: dict[str, Any]) -> None:
        self._client = client
        counters = self._counters()
        places = [place for name, place in counters if name == PLACES]
        context = at(model, "max_model_len")
        self.facts = Facts(
            kind="vLLM",
            version=fields.label(at(client.ask("/version"), "version")),
            model=fields.label(at(model, "id")),
            context=context if type(context) is int and context > 0 else None,
            speculates=(DRAFTS, -1) in counters if counters else None,
            k=max(places) + 1 if places else None,
        )
        self._processed: bool | None = None

    def tokenize(self, text: str) -> tuple[int, ...]:
        payload = self._client.ask("/tokenize", {"model": self.facts.model, "prompt": text})
        return fields.ids(at(payload, "tokens"))

    def read(self, prompt: str) -> tuple[int, ...]:
        """As a user's message, the answer begun, without thinking. A model without a template is refused in the
        words of transformers.
        """
        messages = [{"role": "user", "content": prompt}]
        kwargs = {"enable_thinking": False}
        body = {"model": self.facts.model, "messages": messages, "chat_template_kwargs": kwargs}
        try:
            return fields.ids(at(self._client.ask("/tokenize", body), "tokens"))
        except ServerError as error:
            if NO_TEMPLATE in error.said.values.get("said", ""):
                return self.tokenize(prompt)
            if error.said.values.get("status") not in (400, 404, 422, 500):
                raise
            raise ServerError(
                "The server does not put the prompt into its model's chat template. {reason} Update the server, or "
                "check its --chat-template.",
                reason=error.said,
            ) from None

    def _counters(self) -> Counters:
        """By name and position (-1 without one), of all engines together; empty where they are not shown."""
        try:
            metrics = self._client.text("/metrics")
        except ServerError:  # it may be closed to strangers
            return Counters()
        counters = Counters()
        for name, place, value in COUNTER.findall(metrics):
            with contextlib.suppress(ValueError, OverflowError):
                counters[name, int(place) if place else -1] += int(float(value))
        return counters

    def stream(
        self, prompt: str | Sequence[int], params: SamplingParams, top: int = 0
    ) -> Generator[Chunk | Ending, None, None]:
        known = self._tells_distribution(params)
        body = self._body(prompt, params) | {
            "stream": True,
            "stream_options": {"include_usage": True},
            "logprobs": top,
        }
        before = self._counters() if self.facts.speculates else Counters()
        reason: FinishReason | None = None
        last: Any = None
        arrived, count = 0.0, 0
        for data, arrived in self._client.events("/v1/completions", body):
            self._check_model(data)
            choice = at(data, "choices", 0)
            if choice is None:
                last = data
                continue
            found = tokens(choice, params, known)
            yield Chunk(fields.text(at(choice, "text"), "text"), found, arrived)
            reason, count = finish(choice) or reason, count + len(found)
        if reason is None:
            raise ServerError("The server ended its answer without saying why.")
        payload = at(last, "metrics", "speculative_decoding") or (self._grown(before, count) if before else None)
        yield ending(reason, arrived, payload)

    def _grown(self, before: Counters, count: int) -> dict[str, Any] | None:
        """What the counters tell of a text of so many tokens, as the last chunk would; None if others wrote, too."""
        for _ in range(3):
            grown = Counters({key: value - before[key] for key, value in self._counters().items()})
            reached = [grown[DRAFTS, -1], *(grown[PLACES, place] for place in range(self.facts.k or 0)), 0]
            if grown[WRITTEN, -1] == count and reached == sorted(reached, reverse=True):
                return {
                    "num_draft_tokens": grown[DRAFTED, -1],
                    "num_accepted_draft_tokens": grown[ACCEPTED, -1],
                    "acceptance_histogram": [here - further for here, further in pairwise(reached)],
                }
            time.sleep(0.1)  # they are raised a little after the last token is sent
        return None

    def sample(self, prompt: Sequence[int], params: SamplingParams, draws: int) -> list[tuple[int, ...]]:
        """vLLM seeds the i-th text of a request with seed + i, so requests go on where the last one ended."""
        texts = list[tuple[int, ...]]()
        while len(texts) < draws:
            n = min(AT_ONCE, draws - len(texts))
            body = self._body(prompt, params) | {"n": n, "seed": seed(params.seed + len(texts))}
            payload = self._client.ask("/v1/completions", body)
            self._check_model(payload)
            choices = fields.listed(at(payload, "choices"), "texts")
            if len(choices) != n:
                raise ServerError("The server wrote {found} texts where {n} were asked for.", found=len(choices), n=n)
            texts += [fields.ids(at(choice, "token_ids")) for choice in choices]
        return texts

    def distribution(self, prompt: Sequence[int], params: SamplingParams, top: int) -> dict[int, float]:
        if params.temperature == 0.0 or self._tells_distribution(params):
            return probabilities(self._first(prompt, params, top), params)
        try:  # before temperature, top-k and top-p: these can be done here if all of the distribution is reported
            return after_warp(self._first(prompt, params, -1), params)
        except ServerError as error:
            if error.said.values.get("status") != 400:
                raise
            raise ServerError(
                "The server reports probabilities before the temperature only. Start it with "
                "--logprobs-mode processed_logprobs, or with --max-logprobs -1."
            ) from error

    def _first(self, prompt: Sequence[int], params: SamplingParams, top: int) -> dict[int, float]:
        """Log-probabilities after `prompt`, as the server tells them: of the `top` likeliest tokens; of all with -1."""
        body = self._body(prompt, params) | {"max_tokens": 1, "logprobs": top, "return_tokens_as_token_ids": True}
        payload = self._client.ask("/v1/completions", body)
        self._check_model(payload)
        found = at(payload, "choices", 0, "logprobs", "top_logprobs", 0)
        if not isinstance(found, dict) or not found:
            raise ServerError("The server reports no log-probabilities.")
        return {number(name): fields.logprob(value) for name, value in found.items()}

    def _tells_distribution(self, params: SamplingParams) -> bool:
        """Whether its log-probabilities are those of the distribution in use, or (the default) of the model's own.

        `--logprobs-mode` is not reported. But a temperature of 2 halves the gap of two logits, if it is applied.
        """
        if params.temperature == 0.0 or (params.temperature == 1.0 and not filters(params)):
            return True
        if self._processed is None:
            gaps = []
            for temperature in (1.0, 2.0):
                two = sorted(self._first([0], SamplingParams(temperature, seed=1), 2).values())[-2:]
                gaps.append(two[1] - two[0])
            self._processed = abs(gaps[1] - gaps[0] / 2) < abs(gaps[1] - gaps[0])
        return self._processed

    def _body(self, prompt: str | Sequence[int], params: SamplingParams) -> dict[str, Any]:
        """All is said, since a model's own generation_config.json may hold other defaults."""
        return {
            "model": self.facts.model,
            "prompt": prompt if isinstance(prompt, str) else list(prompt),
            "max_tokens": params.max_tokens,
            "temperature": params.temperature,
            "top_k": params.top_k,
            "top_p": params.top_p,
            "min_p": 0.0,
            "repetition_penalty": 1.0,
            "presence_penalty": 0.0,
            "frequency_penalty": 0.0,
            "seed": seed(params.seed),
            "stop": list(params.stop),
            "ignore_eos": params.ignore_end,
            "return_token_ids": True,
        }

    def _check_model(self, data: Any) -> None:
        if at(data, "model") != self.facts.model:
            raise ServerError("Another model answered than the one that was asked.")


def tokens(choice: Any, params: SamplingParams, known: bool) -> tuple[Token, ...]:
    """Those of a chunk, with the distribution in use where the log-probabilities are `known` to tell it."""
    ids = at(choice, "token_ids")
    numbers = fields.ids(ids) if ids is not None else None
    names = at(choice, "logprobs", "tokens")
    if names is None:
        if numbers:
            raise ServerError("The server sent ids of tokens without their text.")
        return ()
    pieces = [fields.text(name, "pieces of text") for name in fields.listed(names, "pieces of text")]
    values = fields.listed(at(choice, "logprobs", "token_logprobs"), "log-probabilities")
    tops = fields.listed(at(choice, "logprobs", "top_logprobs") or [None] * len(pieces), "log-probabilities")
    if len({len(pieces), len(values), len(tops), len(pieces if numbers is None else numbers)}) > 1:
        raise ServerError("The server sent {pieces} pieces of text with another number of ids.", pieces=len(pieces))
    found = []
    for place, (piece, value, top) in enumerate(zip(pieces, values, tops, strict=True)):
        number = numbers[place] if numbers is not None else None
        if not known or value is None:
            found.append(Token(piece, number))
            continue
        top = fields.named(top or {}, "log-probabilities")
        likeliest = tuple((fields.text(name, "tokens"), fields.logprob(x)) for name, x in top.items())
        found.append(told_token(piece, number, fields.logprob(value), likeliest, params))
    return tuple(found)


def finish(choice: Any) -> FinishReason | None:
    """`stop` is an end token, or with a reason that is text, a stop string."""
    reason = at(choice, "finish_reason")
    if reason is None:
        return None
    if reason == "stop":
        return "stop" if isinstance(at(choice, "stop_reason"), str) else "end"
    if reason == "length":
        return "length"
    raise ServerError("The server broke the text off ({reason}).", reason=fields.label(reason))


def ending(reason: FinishReason, arrived: float, payload: Any) -> Ending:
    if not isinstance(payload, dict):
        return Ending(reason, arrived)
    drafted, accepted, histogram = (
        payload.get(name) for name in ("num_draft_tokens", "num_accepted_draft_tokens", "acceptance_histogram")
    )
    lists = payload.get("per_step_drafted"), payload.get("per_step_accepted")
    steps = fields.steps(*lists) if all(x is not None for x in lists) else (None, None)
    return Ending(reason, arrived, *steps, **fields.totals(drafted, accepted, histogram))


def number(name: str) -> int:
    digits = name.removeprefix(PLACEHOLDER)
    if digits == name or not digits.isdecimal() or len(digits) > 10:
        raise fields.unreadable("token ids")
    return int(digits)


def seed(wanted: int) -> int:
    """As a signed number of 64 bits."""
    return (wanted + 2**63) % 2**64 - 2**63
