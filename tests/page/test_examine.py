"""A server of others, certified from the page: here our own engine behind HTTP, with and without a mistake in it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from ours import of_pair, serving
from stub import Asked, Reply, Stub

from specdec.exposure import OWN
from specdec.proof.mistakes import MISTAKES
from specdec.proof.pair import toy
from specdec.servers.verdict import so_far
from specdec.ui import examine, session
from specdec.ui.request import check_examination, ExaminationRequest, InputError
from specdec.ui.tabs import lossless
from specdec.ui.text import speaking

KEY = "sk-very-secret"
SILENT, PATIENCE = 120.0, 30.0  # seconds: no test waits for the first


@pytest.fixture(scope="module")
def plain() -> Iterator[str]:
    with serving(of_pair(toy(), k=0)) as address:
        yield address


def request(address: str, plain: str, **more: Any) -> ExaminationRequest:
    return replace(check_examination(address, plain, seed=5), **{"draws": 200, **more})


def told(news: list[session.News]) -> list[dict[str, Any]]:
    return [json.loads(one.text) for one in news if one.kind == "lines" and one.text]


def last(address: str, plain: str, **more: Any) -> dict[str, Any]:
    return told(list(examine.run(request(address, plain, **more))))[-1]


def silent(asked: Asked) -> Reply:
    return Reply([SILENT])


def nobody_examines() -> bool:
    return examine._free._value == examine.AT_ONCE


def test_a_lossless_server_is_green_and_says_what_it_would_have_shown(plain: str) -> None:
    with serving(of_pair(toy())) as address:
        news = list(examine.run(request(address, plain, key=KEY, draws=120)))
    states = told(news)
    end = states[-1]
    assert (end["verdict"], end["reference"], end["pair"], end["seed"]) == (
        "lossless", "log-probabilities", "server", 5
    )  # fmt: skip
    assert "would have shown" in end["sentences"][0] and len(end["contexts"]) == 3
    for one in end["contexts"]:
        assert one["done"] == 120 and len(one["tests"]) == 4 and len(one["needed"]) == len(MISTAKES) and one["witness"]
    assert {one.kind for one in news} == {"notice", "lines", "done"}
    assert all("verdict" not in one for one in states[:-1])
    assert KEY not in str(news) and address not in str(news) and KEY not in repr(request(address, plain, key=KEY))
    assert nobody_examines()


def test_a_planted_mistake_is_red_before_the_end_and_in_the_visitors_language(plain: str) -> None:
    with serving(of_pair(toy(), MISTAKES["argmax_draft"])) as address, speaking("zh"):
        states = told(list(examine.run(request(address, plain))))
    assert states[-1]["verdict"] == "not lossless" and states[-1]["sentences"][0].startswith("不是无损的")
    first = next(one for one in states if "verdict" in one)
    assert first["doing"].startswith("服务器：") and sum("tests" in one for one in first["contexts"]) == 1


def test_only_a_mistake_is_certain_before_the_end() -> None:
    contexts = [{"greedy": {"gap": None}, "near_tie": False}]
    assert so_far({"contexts": contexts, "plain": {}}) == {} == so_far({"contexts": []})
    assert so_far({"contexts": [{"name": "flat"}, *contexts]}) == {}  # its greedy text is not there yet
    parted = {"name": "flat", "greedy": {"gap": 2.0, "equal": 3}, "near_tie": False}
    assert so_far({"contexts": [parted], "plain": {}, "temperature": 0.0})["verdict"] == "not lossless"


def test_without_a_server_there_is_one_sentence(plain: str) -> None:
    with Stub(lambda asked: Reply()) as gone:
        address = gone.address
    news = list(examine.run(request(address, plain, key=KEY, draws=120)))
    assert [one.kind for one in news if one.text] == ["notice", "error"] and "cannot be reached" in news[-1].text
    assert KEY not in str(news) and nobody_examines()


def test_one_that_dies_in_the_middle_cannot_be_tested(plain: str) -> None:
    def broken(asked: Asked) -> Reply:
        if asked.path == "/v1/models":
            return Reply.of({"data": [{"id": "ours", "owned_by": "vllm", "max_model_len": 64}]})
        return Reply.of({"error": KEY}, 500)

    with Stub(broken) as server:
        news = list(examine.run(request(server.address, plain, key=KEY)))
    assert KEY not in str(news) and news[-1].kind in ("error", "done")
    assert news[-1].kind == "error" or told(news)[-1]["verdict"] == "cannot be tested"


def test_stop_hangs_up_on_a_silent_server_and_nobody_waited_for_it(plain: str) -> None:
    with Stub(silent) as server:
        running = examine.run(request(server.address, plain))
        assert next(running).kind == "notice" and next(running).kind == "lines"
        assert not session._machine.locked()
        while not server.asked:
            next(running)
        began = time.monotonic()
        running.close()  # type: ignore[attr-defined]
        assert time.monotonic() - began < PATIENCE and nobody_examines()


def test_at_the_deadline_what_is_known_is_told(plain: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examine, "limits", lambda: replace(OWN, examination=0.0))
    with serving(of_pair(toy())) as address:
        news = list(examine.run(request(address, plain)))
    assert news[-1].kind == "cut" and "take fewer draws" in news[-1].text and nobody_examines()

    def states(*_: Any) -> Iterator[dict[str, Any]]:
        yield {"contexts": [], "doing": "", "notes": [], "reference": "weights", "plain": None}

    monkeypatch.setattr(examine.child, "examining", states)
    end = told(list(examine.run(request(address, plain))))[-1]
    assert end["verdict"] == "cannot be tested" and "take fewer draws" in end["sentences"][0]


def test_too_many_at_once_are_sent_away(plain: str) -> None:
    gates = [examine._free.acquire(blocking=False) for _ in range(examine.AT_ONCE)]
    try:
        (news,) = examine.run(request("http://127.0.0.1:1", plain))
        assert news.kind == "error" and "Too many" in news.text
    finally:
        for _ in filter(None, gates):
            examine._free.release()


BAD = {
    "no address": ({"address": " "}, "Give the server"),
    "no reference": ({"plain": ""}, "plain server of the same model"),
    "not a text": ({"address": 7}, "must be text"),
    "a list for a key": ({"key": ["k"]}, "must be text"),
    "a word for yes": ({"embedded": "yes"}, "true or false"),
    "too many": ({"draws": 1_000_000}, "1,000, 2,000"),
    "too hot": ({"temperature": 9}, "from 0 to 2"),
    "no seed": ({"seed": -1}, "whole number"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_before_anything_is_asked(name: str) -> None:
    fields, said = BAD[name]
    good = {"address": "http://127.0.0.1:1", "plain": "http://127.0.0.1:2", "key": None, "embedded": False}
    good |= {"draws": 1_000, "temperature": 0.8, "seed": 1}
    with pytest.raises(InputError, match=said):
        check_examination(**good | fields)
    asked: Any = SimpleNamespace(pair="server", **{**good, **fields})
    (update,) = lossless.start(asked)
    assert update["wrong"] and said in update["said"]
