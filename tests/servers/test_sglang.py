"""SGLang's answers, written after the source of 0.5.23 (managers/tokenizer_manager.py), not recorded from a server."""

from __future__ import annotations

import math
from typing import Any

import pytest
from stub import Asked, Reply, Stub

from specdec.events import Committed, Finished, Started, Verified
from specdec.servers import lane
from specdec.servers.base import ServerError
from specdec.servers.connect import connect
from specdec.types import SamplingParams

WORDS = [" a", " b", " c", " d", " e", " f"]
STEPS = (1, 3, 2)  # tokens of each chunk


def served(whole: bool = True, speculates: bool = True, end: dict[str, Any] | None = None) -> Stub:
    """`whole`: each chunk repeats those before, as it does by default."""
    info = {
        "version": "0.5.23",
        "speculative_algorithm": "EAGLE" if speculates else None,
        "speculative_num_draft_tokens": 4 if speculates else None,
        "incremental_streaming_output": not whole,
    }
    told = {
        "/v1/models": {"data": [{"id": "m", "owned_by": "sglang", "max_model_len": 99}]},
        "/server_info": info,
        "/tokenize": {"tokens": [1, 2], "count": 2, "max_model_len": 99},
    }

    def stream() -> list[Any]:
        chunks, start = [], 0
        for place, size in enumerate(STEPS):
            upto = start + size
            part = range(0 if whole else start, upto)
            meta: dict[str, Any] = {
                "finish_reason": {"type": "length", "length": 6} if place == len(STEPS) - 1 else None,
                "output_token_logprobs": [[-0.5, i, WORDS[i]] for i in part],
                "output_top_logprobs": [[[-0.5, i, WORDS[i]], [-1.5, 50, " x"]] for i in part],
            }
            if meta["finish_reason"]:
                counts = {"spec_verify_ct": 2, "spec_num_proposed_drafts": 6, "spec_num_correct_drafts": 3}
                meta |= ({**counts, "spec_correct_drafts_histogram": [0, 1, 1, 0]} if speculates else {}) | (end or {})
            chunks.append({"text": "".join(WORDS[i] for i in part), "output_ids": list(part), "meta_info": meta})
            start = upto
        return [*chunks, "[DONE]"]

    def answer(asked: Asked) -> Reply:
        if asked.path in told:
            return Reply.of(told[asked.path])
        if asked.body.get("stream"):
            return Reply.stream(stream())
        one = {"output_ids": [4, 5], "meta_info": {"output_top_logprobs": [[[-0.5, 4, None], [-1.5, 5, None]]]}}
        n = asked.body["sampling_params"].get("n", 1)
        return Reply.of([one] * n if n > 1 else one)

    return Stub(answer)


def last_of(stub: Stub, params: SamplingParams) -> tuple[Any, ...]:
    *_, last = lane.race(connect(stub.address), None, "Once", params)
    assert isinstance(last, lane.FinalTrace)
    return last.events


@pytest.mark.parametrize("whole", [True, False])
def test_its_steps_are_confirmed_by_the_histogram(whole: bool) -> None:
    with served(whole) as stub:
        events = last_of(stub, SamplingParams(temperature=0.8, max_tokens=6))
    assert events[0] == Started("speculative", "", 3, SamplingParams(0.8, max_tokens=6), 2, server="SGLang 0.5.23")
    assert [e.accepted for e in events if isinstance(e, Committed)] == [0, 2, 1]
    assert [e.text for e in events if isinstance(e, Committed)] == [" a", " b c d", " e f"]
    assert [len(e.positions) for e in events if isinstance(e, Verified)] == [0, 3, 3]
    assert isinstance(events[-1], Finished) and events[-1].counted == "exact"
    found = [x.p for e in events if isinstance(e, Verified) for x in e.positions if x.status == "accepted"]
    assert found == [pytest.approx(math.exp(-0.5))] * 3


def test_another_histogram_leaves_the_sums_alone() -> None:
    with served(end={"spec_correct_drafts_histogram": [2, 0, 0, 0], "spec_num_correct_drafts": 0}) as stub:
        last = last_of(stub, SamplingParams(max_tokens=6))[-1]
    assert isinstance(last, Finished) and (last.counted, last.drafted, last.accepted) == ("totals", 6, 0)


def test_without_speculation_each_token_is_a_step() -> None:
    with served(speculates=False) as stub:
        events = last_of(stub, SamplingParams(max_tokens=6))
    assert [len(e.tokens) for e in events if isinstance(e, Committed)] == [1] * 6
    assert isinstance(events[-1], Finished) and events[-1].counted is None


def test_probabilities_before_top_k_are_not_those_in_use() -> None:
    with served() as stub:
        events = last_of(stub, SamplingParams(temperature=0.8, top_k=5, max_tokens=6))
        assert {e.p for e in events if isinstance(e, Verified)} == {None}
        with pytest.raises(ServerError, match="before top-k and top-p only"):
            connect(stub.address).distribution([1], SamplingParams(temperature=0.8, top_k=5), 5)
        distribution = connect(stub.address).distribution([1], SamplingParams(temperature=0.8), 5)
    assert distribution == {4: pytest.approx(math.exp(-0.5)), 5: pytest.approx(math.exp(-1.5))}


def test_texts_of_one_request_share_no_seed() -> None:
    with served() as stub:
        assert len(connect(stub.address).sample([1], SamplingParams(temperature=1.0, max_tokens=2), 70)) == 70
        bodies = [asked.body["sampling_params"] for asked in stub.asked if asked.path == "/generate"]
    assert [body["n"] for body in bodies] == [64, 6]
    assert not any("sampling_seed" in body for body in bodies)


def test_an_aborted_text_is_said() -> None:
    with served(end={"finish_reason": {"type": "abort", "message": "x"}}) as stub:
        last = last_of(stub, SamplingParams(max_tokens=6))[-1]
    assert isinstance(last, Finished) and last.reason == "failed"
