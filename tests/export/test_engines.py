"""Engines of others read what was exported, and write our engine's greedy text, token for token.

    specdec export vllm --out models          # then `vllm serve models/target …`
    SPECDEC_VLLM_SERVERS=http://127.0.0.1:8000,http://127.0.0.1:8001 pytest -m server tests/export
    SPECDEC_LLAMA_SERVERS=http://127.0.0.1:8080 pytest -m server tests/export

The servers compute in float32 (llama.cpp: `-ctk f32 -ctv f32 -fa off`); with fewer bits, near-ties part. Seen on
23 November 2026: vLLM 0.32.0 plain and with draft_model, medusa and eagle3, and the llama-server of
llama-cpp-python 0.3.36 plain and with draft-simple: identical for all prompts.
"""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest

from specdec import generate, load, SamplingParams, Task
from specdec.bench.prompts import PROMPTS
from specdec.events import Committed
from specdec.families.zoo import Family

pytestmark = [pytest.mark.server, pytest.mark.long]
TOKENS, K = 48, 4


def addresses(variable: str) -> list[Any]:
    """Those that the environment names, or one test that says which variable would."""
    named = [address.rstrip("/") for address in os.environ.get(variable, "").split(",") if address]
    return named or [pytest.param("", marks=pytest.mark.skip(reason=f"{variable} names no server"))]


def ask(url: str, question: dict[str, Any] | None = None) -> dict[str, Any]:
    data = None if question is None else json.dumps(question).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=120) as answer:
        found = json.load(answer)
    assert isinstance(found, dict)
    return found


def ours(family: Family, prompt: str, drafter: str = "none") -> tuple[list[int], list[int]]:
    """Our engine's greedy tokens, and how many drafts each cycle after the prompt's accepted."""
    target, way = family.lane(drafter, capacity=256)
    params = SamplingParams(temperature=0.0, max_tokens=TOKENS)
    events = list(generate(Task(target, family.encode(prompt), params, way, k=K, piece=family.pieces.piece)))
    commits = [event for event in events if isinstance(event, Committed)]
    return [token for event in commits for token in event.tokens], [event.accepted for event in commits[1:]]


@pytest.mark.parametrize("domain", PROMPTS)
@pytest.mark.parametrize("address", addresses("SPECDEC_VLLM_SERVERS"))
def test_vllm_writes_our_greedy_text(address: str, domain: str) -> None:
    family, model = load(), ask(f"{address}/v1/models")["data"][0]["id"]
    for prompt in PROMPTS[domain]:
        question = {"model": model, "prompt": family.encode(prompt), "max_tokens": TOKENS, "temperature": 0}
        answer = ask(f"{address}/v1/completions", question | {"return_token_ids": True})
        assert answer["choices"][0]["token_ids"] == ours(family, prompt)[0], prompt


@pytest.mark.parametrize("address", addresses("SPECDEC_VLLM_SERVERS")[:1])
def test_vllm_accepts_as_many_drafts_as_our_engine(address: str, record_property: Callable[[str, str], None]) -> None:
    """The first address drafts with draft_model, four tokens; the same weights, of which ours are in 8 bits."""
    family, model = load(), ask(f"{address}/v1/models")["data"][0]["id"]
    theirs, own = list[int](), list[int]()
    for prompt in [prompt for prompts in PROMPTS.values() for prompt in prompts]:
        question = {"model": model, "prompt": family.encode(prompt), "max_tokens": TOKENS, "temperature": 0}
        told = ask(f"{address}/v1/completions", question)["metrics"]["speculative_decoding"]
        theirs += told["per_step_accepted"][:-1]  # the last one's count goes on beyond the end of the text
        own += ours(family, prompt, "draft_model")[1][:-1]
    tau = [1 + sum(accepted) / len(accepted) for accepted in (theirs, own)]
    record_property("figure", f"block efficiency, greedy: vLLM {tau[0]:.3f}, ours {tau[1]:.3f}")
    assert abs(tau[0] / tau[1] - 1) < 0.02


@pytest.mark.parametrize("address", addresses("SPECDEC_LLAMA_SERVERS"))
def test_llama_cpp_reads_our_words_and_writes_our_greedy_text(address: str) -> None:
    family = load()
    for prompt in [prompt for prompts in PROMPTS.values() for prompt in prompts]:
        words = ask(f"{address}/tokenize", {"content": prompt, "add_special": True})
        assert words["tokens"] == family.encode(prompt)
        question = {"prompt": prompt, "n_predict": TOKENS, "temperature": 0, "return_tokens": True}
        assert ask(f"{address}/completion", question)["tokens"] == ours(family, prompt)[0], prompt
