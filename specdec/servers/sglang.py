"""SGLang's own route, /generate, read in the source of 0.5.23 (November 2026); it was not run here.

It streams what is new at each step, and at the end tells how many steps accepted 0, 1, 2, … tokens, but not in which
order. Its log-probabilities are those after the temperature, before top-k and top-p, unless the server was started with
SGLANG_RETURN_ORIGINAL_LOGPROB. Speculation cannot be switched off for one request.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from ..events import FinishReason
from ..types import SamplingParams
from . import fields
from .base import Chunk, Ending, Facts, filters, probabilities, ServerError, Token, told_token
from .fields import at
from .stream import Client
from .vllm import Tokenizer

AT_ONCE = 64  # texts asked for in one request


class SGLang(Tokenizer):
    def __init__(self, client: Client, model: dict[str, Any]) -> None:
        self._client = client
        payload = client.ask("/server_info")
        context, nodes = at(model, "max_model_len"), at(payload, "speculative_num_draft_tokens")
        known = isinstance(payload, dict) and "speculative_algorithm" in payload
        speculates = at(payload, "speculative_algorithm") is not None if known else None
        self._whole = at(payload, "incremental_streaming_output") is not True  # each chunk repeats those before
        self.facts = Facts(
            kind="SGLang",
            version=fields.label(at(payload, "version")),
            model=fields.label(at(model, "id")),
            context=context if type(context) is int and context > 0 else None,
            speculates=speculates,
            # its own account takes one token off: the first node of a step is the last token of the text
            k=nodes - 1 if speculates and type(nodes) is int and nodes > 1 else None,
        )

    def stream(
        self, prompt: str | Sequence[int], params: SamplingParams, top: int = 0
    ) -> Generator[Chunk | Ending, None, None]:
        body = self._body(prompt, params) | {
            "stream": True,
            "return_logprob": True,
            "top_logprobs_num": top,
            "return_text_in_logprobs": True,
        }
        body["sampling_params"]["sampling_seed"] = params.seed % 2**63
        seen, before = 0, ""
        for data, arrived in self._client.events("/generate", body):
            meta, text = at(data, "meta_info"), fields.text(at(data, "text"), "text")
            entries = fields.listed(at(meta, "output_token_logprobs"), "log-probabilities")
            tops = fields.listed(at(meta, "output_top_logprobs") or [None] * len(entries), "log-probabilities")
            numbers = fields.ids(at(data, "output_ids"))
            if self._whole:
                entries, tops, numbers = entries[seen:], tops[seen:], numbers[seen:]
                text, before = text[len(before) :], text
            if not len(entries) == len(tops) == len(numbers):
                raise ServerError(
                    "The server sent {pieces} pieces of text with another number of ids.", pieces=len(entries)
                )
            seen += len(entries)
            found = tuple(token(entry, top, params) for entry, top in zip(entries, tops, strict=True))
            if tuple(x.id for x in found) != numbers:
                raise ServerError("The server sent two different lists of token ids.")
            if found or text:
                yield Chunk(text, found, arrived)
            if at(meta, "finish_reason") is not None:
                yield ending(at(meta, "finish_reason"), arrived, meta)
                return

    def sample(self, prompt: Sequence[int], params: SamplingParams, draws: int) -> list[tuple[int, ...]]:
        """Without a seed: all texts of a request would share it."""
        texts = list[tuple[int, ...]]()
        while len(texts) < draws:
            n = min(AT_ONCE, draws - len(texts))
            body = self._body(prompt, params)
            body["sampling_params"]["n"] = n
            payload = self._client.ask("/generate", body)
            found = fields.listed(payload if n > 1 else [payload], "texts")
            if len(found) != n:
                raise ServerError("The server wrote {found} texts where {n} were asked for.", found=len(found), n=n)
            texts += [fields.ids(at(item, "output_ids")) for item in found]
        return texts

    def distribution(self, prompt: Sequence[int], params: SamplingParams, top: int) -> dict[int, float]:
        if filters(params):
            raise ServerError("The server reports probabilities before top-k and top-p only. Switch these off.")
        body = self._body(prompt, params) | {"return_logprob": True, "top_logprobs_num": max(top, 1)}
        body["sampling_params"]["max_new_tokens"] = 1
        found = at(self._client.ask("/generate", body), "meta_info", "output_top_logprobs", 0)
        if not found:
            raise ServerError("The server reports no log-probabilities.")
        logprobs = {
            fields.integer(at(item, 1), "token ids"): fields.logprob(at(item, 0))
            for item in fields.listed(found, "log-probabilities")
        }
        return probabilities(logprobs, params)

    def _body(self, prompt: str | Sequence[int], params: SamplingParams) -> dict[str, Any]:
        return {
            **({"text": prompt} if isinstance(prompt, str) else {"input_ids": list(prompt)}),
            "sampling_params": {
                "max_new_tokens": params.max_tokens,
                "temperature": params.temperature,
                "top_k": params.top_k or -1,
                "top_p": params.top_p,
                "min_p": 0.0,
                "repetition_penalty": 1.0,
                "presence_penalty": 0.0,
                "frequency_penalty": 0.0,
                "stop": list(params.stop),
                "ignore_eos": params.ignore_end,
            },
        }


def token(entry: Any, top: Any, params: SamplingParams) -> Token:
    """From (log-probability, id, text), with the distribution in use where that is reported."""
    piece, number = fields.text(at(entry, 2), "pieces of text"), fields.integer(at(entry, 1), "token ids")
    if filters(params) and params.temperature > 0.0:
        return Token(piece, number)
    value = fields.logprob(at(entry, 0))
    likeliest = tuple(
        (fields.text(at(item, 2), "tokens"), fields.logprob(at(item, 0)))
        for item in fields.listed(top or [], "log-probabilities")
    )
    return told_token(piece, number, value, likeliest, params)


def ending(finish: Any, arrived: float, counts: Any) -> Ending:
    kind = at(finish, "type")
    reason: FinishReason = "stop" if isinstance(at(finish, "matched"), str) else "end"
    if kind == "length":
        reason = "length"
    elif kind != "stop":
        raise ServerError("The server broke the text off ({reason}).", reason=fields.label(kind))
    drafted, accepted = (at(counts, f"spec_num_{name}_drafts") for name in ("proposed", "correct"))
    histogram = at(counts, "spec_correct_drafts_histogram")
    return Ending(reason, arrived, **fields.totals(drafted, accepted, histogram))
