"""A server of others, watched from the page: here it replays what a real vLLM told (`tests/servers/payloads`)."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import toyrun
from stub import Asked, recording, Reply, Stub

from specdec import settings
from specdec.exposure import OWN
from specdec.lanes.heartbeat import THREAD
from specdec.traces.file import Trace
from specdec.types import SamplingParams
from specdec.ui import session, watch
from specdec.ui.components import engine
from specdec.ui.request import InputError
from specdec.ui.tabs import race
from specdec.ui.text import speaking
from specdec.ui.watch import WatchRequest

SPECULATIVE, PLAIN = "vllm-draft_model-mended", "vllm-plain"
PROMPT, KEY = "The old lighthouse keeper", "sk-very-secret"
SETTINGS = ("draft_model", 3, 0.0, 1, 0, 24, 3, "", "rejection", "embedded", False)  # of which a server takes some
SILENT, PATIENCE = 120.0, 30.0  # seconds: no test waits for the first


def vllm(name: str, pause: float = 0.0) -> Stub:
    """It answers any request of a kind with what was recorded of that kind; for a text, with the greedy story."""
    calls = recording(name)["calls"]
    story = next(json.loads(x["blocks"][0])["tokens"] for x in calls if x["path"] == "/tokenize")

    def answer(asked: Asked) -> Reply:
        for call in calls:
            streamed = bool((call["body"] or {}).get("stream"))
            told = call["body"] and (call["body"].get("prompt"), call["body"].get("temperature"))
            if (call["method"], call["path"]) == (asked.method, asked.path) and (
                not streamed or (asked.body["stream"] and told == (story, 0.0))
            ):
                blocks: list[Any] = [block.encode() for block in call["blocks"]]
                return Reply(blocks[:2] + [pause] * bool(pause and streamed) + blocks[2:], call["status"], call["type"])
        return Reply.of({"error": "not recorded"}, 404)

    return Stub(answer)


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[Stub, Stub]]:
    with vllm(SPECULATIVE) as server, vllm(PLAIN) as plain:
        yield server, plain


def request(server: Stub, plain: Stub | None = None, key: str = "") -> WatchRequest:
    params = SamplingParams(max_tokens=24, seed=3)
    return WatchRequest(PROMPT, params, server.address, plain.address if plain else "", key)


def test_a_run_comes_live_and_is_counted_again_at_its_end(servers: tuple[Stub, Stub]) -> None:
    server, plain = servers
    updates = list(race.begin("server", server.address, plain.address, KEY, PROMPT, *SETTINGS))
    logs = [update[0] for update in updates if isinstance(update[0], str)]
    final = Trace.loads(logs[-1])
    lines = [json.loads(line) for line in logs[-1].splitlines()]
    assert final.header.lanes == ("speculative", "plain") and final.header.machine == {}
    told = {line["lane"]: line for line in lines if line["event"] == "finished"}
    assert (
        told["speculative"]["counted"] in ("exact", "merged") and told["speculative"]["text"] == told["plain"]["text"]
    )
    assert any(x["status"] == "rejected" for line in lines for x in line.get("positions", []))
    news = list(watch.run(request(server, plain)))
    live = "".join(one.text for one in news if one.kind == "lines")
    (whole,) = (one.text for one in news if one.kind == "whole")
    assert '"rejected"' not in live and '"rejected"' in whole  # vLLM tells it with its last word only
    assert Trace.loads(live).header.run != Trace.loads(whole).header.run  # so the page takes it as another run
    assert [one.kind for one in news][-1] == "done" and "vLLM 0.32.0" in next(
        one.text for one in news if "model" in one.text and one.kind == "notice"
    )


def test_a_run_without_a_plain_server_has_one_lane(servers: tuple[Stub, Stub]) -> None:
    (whole,) = (one.text for one in watch.run(request(servers[0])) if one.kind == "whole")
    assert Trace.loads(whole).header.lanes == ("speculative",)


def test_the_key_goes_to_the_server_and_nowhere_else(servers: tuple[Stub, Stub], caplog: Any, capsys: Any) -> None:
    server, plain = servers
    server.asked.clear()
    updates = list(race.begin("server", server.address, plain.address, KEY, PROMPT, *SETTINGS))
    assert {asked.headers.get("authorization") for asked in server.asked} == {f"Bearer {KEY}"}
    assert updates and not any(secret in str(updates) for secret in (KEY, server.address, plain.address))
    assert KEY not in repr(request(server, plain, KEY))
    with Stub(lambda asked: Reply.of({"error": f"{asked.headers['authorization']} is wrong"}, 500)) as rude:
        refused = list(race.begin("server", rude.address, "", KEY, PROMPT, *SETTINGS))
    assert refused[-1][1]["wrong"] and KEY not in str(refused)
    assert KEY not in caplog.text + "".join(capsys.readouterr())


def test_a_server_that_cannot_be_asked_is_told_in_one_sentence_of_the_visitors_language() -> None:
    with Stub(lambda asked: Reply()) as gone:
        address = gone.address
    for language, said in (("en", "cannot be reached"), ("zh", "连不上服务器")):
        with speaking(language):
            news = list(watch.run(WatchRequest(PROMPT, SamplingParams(), address)))
        assert news[-1].kind == "error" and said in news[-1].text
    wrong = list(watch.run(WatchRequest(PROMPT, SamplingParams(), "http://[")))
    assert wrong[-1].kind == "error" and "begins with http" in wrong[-1].text


BAD = {
    "no address": ("", "", "", "Give the server"),
    "blank": ("  ", None, None, "Give the server"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_before_anything_is_asked(name: str) -> None:
    address, plain, key, said = BAD[name]
    (update,) = race.begin("server", address, plain, key, PROMPT, *SETTINGS)
    assert update[1]["wrong"] and said in update[1]["value"]
    with pytest.raises(InputError, match="empty"):
        engine.check_server(dict(zip(settings.SETTINGS, (" ", *SETTINGS), strict=True)), "http://127.0.0.1:1", "", "")


def test_closing_a_run_hangs_up_and_it_never_took_the_machine() -> None:
    with vllm(SPECULATIVE, SILENT) as server:
        running = watch.run(request(server))
        next(one for one in running if '"committed"' in one.text)
        assert not session._machine.locked()
        running.close()
        asked = len(server.asked)
        deadline = time.monotonic() + PATIENCE
        while any(thread.name.startswith(THREAD) for thread in threading.enumerate()):
            assert time.monotonic() < deadline, "somebody still reads"
            time.sleep(0.05)
        assert len(server.asked) == asked


def test_a_run_is_cut_at_its_deadline(servers: tuple[Stub, Stub], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "limits", lambda: replace(OWN, seconds=0.0))
    assert [one.kind for one in watch.run(request(servers[0]))][-1] == "cut"


def test_who_asks_often_waits_for_a_server_too(servers: tuple[Stub, Stub], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "visitor_address", lambda: "address")
    monkeypatch.setattr(session.rate_limit, "wait_s", lambda address: 4.5)
    servers[0].asked.clear()
    (only,) = watch.run(request(servers[0]))
    assert only.kind == "error" and "5 seconds" in only.text and not servers[0].asked


# ---- where requests may go ----

ONE, OTHER = "http://127.0.0.1:8000", "http://127.0.0.1:8001"


# ---- the page beside it ----


def test_the_rail_takes_from_a_servers_run_what_is_not_the_servers() -> None:
    told = race.settings_of(toyrun.server_trace().dumps())
    assert told["prompt"] == toyrun.header().prompt and told["temperature"] == 0.8
    assert not {"family", "drafter", "k", "rule", "peer"} & told.keys()
