"""A chat model behind a server reads a prompt inside its chat template, as each server applies it."""

from collections.abc import Callable
from typing import Any

import pytest

from specdec.servers import lane, llama_cpp
from specdec.servers.answers import ServerError
from specdec.servers.connect import connect
from specdec.types import SamplingParams
from tests.servers.stub import Asked, Reply, Stub
from tests.servers.test_bad import vllm

RAW, CHAT = [5, 6], [1, 5, 6, 2]
RENDERED = "<|user|>Why is the sky blue?<|end|><|assistant|>"
MESSAGE = {"role": "user", "content": "Why is the sky blue?"}


def llama(template: str | None) -> Callable[[Asked], Reply]:
    def answer(asked: Asked) -> Reply:
        told: dict[str, Any] = {
            "/v1/models": {"data": [{"id": "m", "owned_by": "llamacpp"}]},
            "/props": {"chat_template": template} if template is not None else {},
            "/slots": [{"speculative": True}],
            "/apply-template": {"prompt": RENDERED},
        }
        if asked.path == "/tokenize":
            return Reply.of({"tokens": CHAT if asked.body["content"] == RENDERED else RAW})
        return Reply.of(told[asked.path]) if asked.path in told else Reply([], 500)

    return answer


def never(_: Asked) -> Reply:
    return Reply([], 500)


def read(answer: Callable[[Asked], Reply]) -> tuple[tuple[int, ...], list[Asked]]:
    with Stub(answer) as stub:
        return lane.tokens(connect(stub.address), MESSAGE["content"]), stub.asked


def test_vllm_applies_the_template_itself() -> None:
    found, asked = read(vllm(never, Reply.of({"tokens": CHAT})))
    assert found == tuple(CHAT)
    assert asked[-1].body["messages"] == [MESSAGE]
    assert asked[-1].body["chat_template_kwargs"] == {"enable_thinking": False}


def test_a_template_that_cannot_be_applied_is_said_before_anything_runs() -> None:
    refusal = Reply.of({"error": {"message": "prompt is required"}}, 400)
    with Stub(vllm(never, refusal)) as stub:
        with pytest.raises(ServerError, match=r"chat template to the prompt\. .*prompt is required.* --chat-template"):
            lane.race(connect(stub.address), None, MESSAGE["content"], SamplingParams())
        assert [asked.path for asked in stub.asked if "complet" in asked.path] == []


def test_llama_cpp_renders_and_then_reads_its_own_template() -> None:
    found, asked = read(llama("{{ messages }}"))
    assert found == tuple(CHAT)
    assert asked[-2].body["messages"] == [MESSAGE] and asked[-1].body["content"] == RENDERED


@pytest.mark.parametrize("template", [None, llama_cpp.NO_TEMPLATE])
def test_the_template_that_llama_cpp_puts_in_place_of_none_is_none(template: str | None) -> None:
    found, asked = read(llama(template))
    assert found == tuple(RAW) and "/apply-template" not in [one.path for one in asked]
