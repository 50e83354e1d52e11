"""What comes in by HTTP: how much, under which name, from which page, and from whom."""

from __future__ import annotations

import gc
import json
import logging
import random
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from gradio.state_holder import SessionState
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from specdec.exposure import EXPOSURE
from specdec.ui import api, bodies, doors, gradio_private, session, visitors

WORD = "canaryword"


@pytest.fixture(autouse=True)
def own(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SPACE_ID", "SPECDEC_PUBLIC", doors.HOSTS, doors.PROXIES):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(EXPOSURE, "own")


@pytest.fixture
def client(address: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=address, timeout=60) as client:
        yield client


def endless(piece: bytes = b" " * 100_000, count: int = 1_000) -> Iterator[bytes]:
    for _ in range(count):
        yield piece


# ---- how much ----


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("gradio_api/call/theory", 256_000),
        ("gradio_api/run/predict", 256_000),
        ("gradio_api/cancel", 256_000),
        ("nowhere", 256_000),
        ("gradio_api/mcp/", 4_000_000),
        ("gradio_api/call/audit", 20_000_000),
        ("gradio_api/call/v2/explain", 20_000_000),
        ("gradio_api/queue/join", 20_000_000),
        ("gradio_api/component_server", 20_000_000),
    ],
)
def test_more_than_a_path_takes_is_refused_with_or_without_a_length(
    client: httpx.Client, path: str, allowed: int
) -> None:
    for content in (b" " * (allowed + 1), endless()):
        answer = client.post(path, content=content)
        assert answer.status_code == 413 and f"at most {allowed:,} bytes" in answer.json()["detail"]


@pytest.mark.parametrize(
    "content",
    [
        b'{"trace": [' + b"{}," * 300_000 + b"{}]}",
        b'{"trace": [' + b"0," * 300_000 + b"0]}",
        b'{"trace": [' + b'"",' * 300_000 + b'""]}',
        b'{"a":' * 20_000,
        b"[" * 60 + b"]" * 60,
        json.dumps({"trace": "\u2200", "more": [{}] * 50_000}, ensure_ascii=False).encode("utf-16"),
        json.dumps({"trace": [{}] * 50_000}).encode("utf-32"),
    ],
    ids=["objects", "numbers", "strings", "nested", "deep", "UTF-16", "UTF-32"],
)
def test_json_that_would_become_many_objects_is_refused_before_it_is_parsed(
    client: httpx.Client, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in ("call/v2/audit", "call/audit", "queue/join", "component_server"):
        answer = client.post(f"gradio_api/{path}", content=content)
        assert answer.status_code in (400, 413) and answer.json()["detail"].endswith(".")
        assert "See /?view=api" not in answer.text  # that is said of what was parsed


def test_a_trace_of_the_largest_size_is_read(client: httpx.Client) -> None:
    trace = '{"event":"header"}\n' + '"\\' * 4_000 + "x" * 15_900_000
    for name in ("audit", "summarise", "explain", "audit"):
        event = client.post(f"gradio_api/call/v2/{name}", json={"trace": trace}).json()["event_id"]
        assert "This is no run that can be read" in client.get(f"gradio_api/call/{name}/{event}").text


def test_what_is_counted_is_what_json_holds_in_whichever_pieces_it_comes() -> None:
    rng = random.Random(3)
    for _ in range(300):
        text = json.dumps(made(rng, 0), ensure_ascii=rng.random() < 0.5, indent=rng.choice([None, 1]))
        sent, whole, cut = text.encode(), bodies.Structure(), bodies.Structure()
        whole.feed(sent)
        at = 0
        while at < len(sent):
            end = at + rng.choice([1, 1, 2, 3, 7, 100])
            cut.feed(sent[at:end])
            at = end
        bare = outside(text)
        assert whole.depth == cut.depth == 0
        assert whole.marks == cut.marks == sum(bare.count(mark) for mark in '[]{},"')


def made(rng: random.Random, level: int) -> Any:
    kind = rng.randrange(3 if level > 4 else 5)
    if kind < 3:
        return "".join(rng.choice('a"\\[]{},:\n∀') for _ in range(rng.randrange(9)))
    inner = [made(rng, level + 1) for _ in range(rng.randrange(5))]
    return inner if kind == 3 else {f'"{{{number}\\': one for number, one in enumerate(inner)}


def outside(text: str) -> str:
    """JSON text without what its strings hold, by a reader of its own."""
    out, inside, escaped = "", False, False
    for mark in text:
        if inside and not escaped and mark == "\\":
            escaped = True
            continue
        if mark == '"' and not escaped:
            inside = not inside
            out += mark
        elif not inside:
            out += mark
        escaped = False
    return out


def test_large_bodies_count_together_until_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio

    monkeypatch.setattr(bodies, "TOGETHER", 0.05)

    async def come(address: str = "") -> dict[str, Any]:
        scope = {"type": "http", "path": "/gradio_api/call/audit", "headers": [], "client": (address, 1)}

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"x" * 600_000}

        await bodies.read(scope, receive)
        return scope

    monkeypatch.setattr(bodies, "Weight", type("Weight", (bodies.Weight,), {"of": Counter()}))
    held = asyncio.run(come())
    with pytest.raises(bodies.Refused, match="in a few seconds"):
        asyncio.run(come())
    del held
    gc.collect()  # what was raised holds the frames it went through
    held = asyncio.run(come())
    monkeypatch.setattr(bodies, "TOGETHER", 1.0)
    monkeypatch.setattr(bodies, "ALONE", 0.05)
    with pytest.raises(bodies.Refused, match="in a few seconds"):
        asyncio.run(come())
    asyncio.run(come("another"))
    del held


@pytest.mark.parametrize("pieces", [1, 7])
def test_a_number_that_python_cannot_read_is_refused(pieces: int) -> None:
    sent = b'{"id": ' + b"9" * 20_000 + b"}"
    structure, size = bodies.Structure(), len(sent) // pieces + 1
    with pytest.raises(bodies.Refused, match="too many digits"):
        for at in range(0, len(sent), size):
            structure.feed(sent[at : at + size])
    bodies.Structure().feed(b'{"trace": "' + b"9" * 20_000 + b'", "p": 0.' + b"1" * 900 + b"}")


def test_a_body_that_does_not_come_is_given_up(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setattr(bodies, "SLOWEST", 0.2)

    def slow() -> Iterator[bytes]:
        yield b"{"
        time.sleep(1)
        yield b"}"

    answer = httpx.post(f"{address}gradio_api/call/audit", content=slow(), timeout=60)
    assert answer.status_code == 408 and "too long" in answer.json()["detail"]


# ---- under which name, and from which page ----


@pytest.mark.parametrize(
    ("row", "host", "status"),
    [
        ("own", "127.0.0.1:7860", 200),
        ("own", "LOCALHOST", 200),
        ("own", "[::1]:9", 200),
        ("own", "localhost.", 200),
        ("own", "evil.example", 421),
        ("own", "127.0.0.1.evil.example:7860", 421),
        ("own", "192.0.2.7", 421),
        ("own", "", 400),
        ("own", "[evil", 400),
        ("own", "a:b", 400),
        ("network", "192.0.2.7:7860", 200),
        ("network", "[2001:db8::7]", 200),
        ("network", "evil.example", 421),
        ("class", "192.0.2.7:7860", 200),
        ("class", "evil.example", 421),
        ("public", "any.example", 200),
        ("public", "[evil", 400),
    ],
)
def test_the_page_answers_to_its_own_names(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch, row: str, host: str, status: int
) -> None:
    monkeypatch.setenv(EXPOSURE, row)
    for path in ("", "config", "gradio_api/info", "gradio_api/mcp/"):
        answer = client.get(path, headers={"Host": host})
        assert answer.status_code == status, path
    assert status == 200 or answer.json()["detail"].endswith(".")


@pytest.mark.parametrize(
    ("row", "origin", "status"),
    [
        ("own", "http://127.0.0.1:7860", 200),
        ("own", "http://localhost:3000", 200),
        ("own", "http://evil.example", 403),
        ("own", "https://127.0.0.1.evil.example", 403),
        ("own", "http://192.0.2.7", 403),
        ("own", "null", 403),
        ("own", "http://[", 400),
        ("network", "http://192.0.2.7", 403),
        ("class", "http://evil.example", 403),
        ("public", "http://other.example", 200),
        ("public", "http://[", 400),
    ],
)
def test_the_page_of_another_site_may_not_ask(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch, row: str, origin: str, status: int
) -> None:
    monkeypatch.setenv(EXPOSURE, row)
    monkeypatch.setenv("SPECDEC_PAIRS", "")
    host = {"Host": "page.example"} if row == "public" else {}
    call = client.post("gradio_api/call/theory", json={"data": []}, headers={"Origin": origin, **host})
    asked = {"Origin": origin, "Access-Control-Request-Method": "POST", **host}
    before = client.options("gradio_api/call/theory", headers=asked)
    assert call.status_code == before.status_code == status
    for answer in (call, before):
        assert answer.headers.get("access-control-allow-origin") == (origin if status == 200 else None)


def test_an_owner_lists_more_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(doors.HOSTS, "demo.example, [2001:db8::7]")
    names = doors.own_names("Box.Example.")
    assert {"localhost", "demo.example", "2001:db8::7", "box.example"} <= names
    door = doors.Door(Starlette(), names)
    for host in (b"demo.example:80", b"[2001:db8::7]:80", b"box.example"):
        door.check_names({"headers": [(b"host", host), (b"origin", b"http://demo.example")]})
    with pytest.raises(bodies.Refused):
        door.check_names({"headers": [(b"host", b"sub.demo.example")]})
    with pytest.raises(bodies.Refused):
        door.check_names({"headers": [(b"host", b"localhost"), (b"host", b"localhost")]})


# ---- from whom ----


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The tab and the address of each run that is asked for; none is begun."""
    seen = []
    monkeypatch.setattr(visitors.visitors, "wait", lambda tab, address: seen.append((tab, address)) or 60.0)
    return seen


@pytest.mark.parametrize(
    ("said", "forwarded", "visitor"),
    [
        ({}, "203.0.113.7", "127.0.0.1"),
        ({"SPECDEC_PUBLIC": "1"}, "203.0.113.7", "127.0.0.1"),
        ({"SPECDEC_PUBLIC": "1", doors.PROXIES: "10.0.0.0/8"}, "203.0.113.7", "127.0.0.1"),
        ({"SPECDEC_PUBLIC": "1", doors.PROXIES: "127.0.0.1"}, "203.0.113.7", "203.0.113.7"),
        ({doors.PROXIES: "10.0.0.0/8, 127.0.0.0/8"}, "198.51.100.1, 203.0.113.7, 10.1.2.3", "203.0.113.7"),
        ({doors.PROXIES: "127.0.0.1"}, "203.0.113.7:4711", "203.0.113.7"),
        ({doors.PROXIES: "127.0.0.1"}, "nonsense", "127.0.0.1"),
        ({doors.PROXIES: "127.0.0.1"}, "", "127.0.0.1"),
        ({"SPACE_ID": "somebody/specdec"}, "198.51.100.1, 203.0.113.7", "203.0.113.7"),
    ],
)
def test_only_a_proxy_that_the_owner_names_says_who_asks(
    client: httpx.Client,
    monkeypatch: pytest.MonkeyPatch,
    asked: list[tuple[str, str]],
    said: dict[str, str],
    forwarded: str,
    visitor: str,
) -> None:
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    told = {"X-Forwarded-For": forwarded}
    event = client.post("gradio_api/call/v2/compare", json={"prompt": "Once"}, headers=told).json()["event_id"]
    client.get(f"gradio_api/call/compare/{event}")
    assert [address for _, address in asked] == [visitor]


@pytest.mark.parametrize("name", ["X-Forwarded-Host", "X-Gradio-Server"])
def test_nobody_else_says_where_the_page_is(client: httpx.Client, name: str) -> None:
    told = {name: "http://evil.example" if "Server" in name else "evil.example", "X-Forwarded-Proto": "https"}
    answer = client.get("config", headers=told)
    assert answer.status_code == 200 and "evil.example" not in answer.text and "https://127" not in answer.text


@pytest.mark.parametrize(("peer", "kept"), [("127.0.0.1", True), ("::ffff:127.0.0.1", True), ("192.0.2.7", False)])
def test_only_this_machine_asks_for_its_models(peer: str, kept: bool) -> None:
    scope = {"client": (peer, 4711), "headers": [(b"host", b"x"), (b"x-gradio-user", b"mcp"), (b"forwarded", b"for=x")]}
    assert len(doors.introduced(scope)["headers"]) == 1 + kept


def test_a_proxy_that_is_no_address_is_said_as_the_page_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(doors.PROXIES, "10.0.0.0/8, nginx")
    with pytest.raises(ValueError, match="nginx"):
        doors.opened("")


# ---- what breaks ----


@pytest.mark.parametrize("started", [False, True])
def test_a_failure_stays_one_and_is_logged_without_the_words_of_it(
    caplog: pytest.LogCaptureFixture, started: bool
) -> None:
    import asyncio

    sent: list[dict[str, Any]] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if started:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        {}[WORD]

    async def keep(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "path": "/", "method": "GET", "headers": [(b"host", b"localhost")], "client": ("::1", 1)}
    asyncio.run(doors.Door(app, frozenset({"localhost"}))(scope, None, keep))  # type: ignore[arg-type]
    assert sent[0]["status"] == (200 if started else 500)
    assert (
        "KeyError" in caplog.text and "test_doors.py" in caplog.text and WORD not in caplog.text.replace("{}[WORD]", "")
    )


def test_a_key_that_is_missing_in_our_own_code_is_no_unknown_name(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: Any
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        {}[WORD]

    monkeypatch.setattr("gradio.routes.PlainTextResponse", broken)
    assert client.get("theme.css").status_code == 500
    monkeypatch.setattr(api.closed, "best_k", broken)
    event = client.post("gradio_api/call/theory", json={"data": [0.7, 4, 0.1, 1.0, 0.0]}).json()["event_id"]
    told = client.get(f"gradio_api/call/theory/{event}").text
    assert "event: error" in told and "was logged" in told and WORD not in told
    said = capfd.readouterr()
    log = caplog.text + said.out + said.err
    assert log.count("KeyError") >= 2 and "theory" in log and WORD not in log


def test_nothing_of_a_call_stays_in_its_session(client: httpx.Client) -> None:
    """Gradio keeps a session for an hour, and in it what was sent and answered."""
    trace = session.first_recorded()
    event = client.post("gradio_api/call/v2/summarise", json={"trace": trace + WORD}).json()["event_id"]
    assert "is not JSON" in client.get(f"gradio_api/call/summarise/{event}").text
    sessions = [one for one in gc.get_objects() if isinstance(one, SessionState)]
    assert sessions and not any(WORD in repr(one.config_values) for one in sessions)


# ---- models ----


def asks(client: httpx.Client, method: str, params: Any) -> httpx.Response:
    sent = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return client.post("gradio_api/mcp/", json=sent, headers={"Accept": "application/json, text/event-stream"})


def test_a_model_is_answered_by_its_tools_alone(client: httpx.Client, asked: list[tuple[str, str]]) -> None:
    pytest.importorskip("mcp")
    for name in ("run", "run_zh", "certify", "audit", "summarise"):
        told = asks(client, "tools/call", {"name": name, "arguments": {"prompt": "Once", "trace": ""}})
        assert "Unknown tool" in told.text
    assert not asked and "2.7731" in asks(client, "tools/call", {"name": "theory", "arguments": {"alpha": 0.7}}).text


def test_no_word_of_a_models_question_is_in_the_log(
    client: httpx.Client, caplog: pytest.LogCaptureFixture, capfd: Any
) -> None:
    pytest.importorskip("mcp")
    caplog.set_level(logging.INFO)
    deep: Any = WORD
    for _ in range(45):
        deep = [deep]
    for params in (
        {"name": "theory", "arguments": WORD},
        {"name": "theory", "arguments": {"alpha": WORD}},
        {"name": "theory", "arguments": {WORD: WORD}},
        {"name": "theory", "arguments": {"alpha": deep}},
        {"name": "theory", "arguments": {}, "_meta": WORD},
        {"name": WORD, "arguments": {}},
        WORD,
        [WORD],
    ):
        assert asks(client, "tools/call", params).status_code < 500
    assert asks(client, WORD, {}).status_code < 500
    said = capfd.readouterr()
    assert "MCP, session, line" in caplog.text and WORD not in caplog.text + said.out + said.err


def test_a_deep_question_is_refused_before_the_library_reads_it(client: httpx.Client, capfd: Any) -> None:
    deep = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"a":' + b"[" * 5_000 + b"]" * 5_000 + b"}}"
    answer = client.post("gradio_api/mcp/", content=deep, headers={"Accept": "application/json, text/event-stream"})
    assert answer.status_code == 413 and "deep" in answer.json()["detail"]
    assert "Traceback" not in capfd.readouterr().err


# ---- Gradio's own files ----


def test_the_page_is_there_without_a_file_of_gradios_that_it_reads(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setattr(gradio_private, "FRONTEND", tmp_path / "moved")
    gradio_private.scripts.cache_clear()
    try:
        page = client.get("", headers={"Accept-Encoding": "identity;q=0.9"}, params={"lang": "en", "deep_link": "x"})
        assert page.status_code == 200 and "link" not in page.headers and "<gradio-app" in page.text
    finally:
        gradio_private.scripts.cache_clear()


def test_a_bare_app_has_the_door_around_all_of_it() -> None:
    import asyncio

    async def ask() -> httpx.Response:
        app = Starlette(routes=[Route("/", lambda _: PlainTextResponse("here"))])
        transport = httpx.ASGITransport(doors.Door(app, frozenset()), raise_app_exceptions=True)
        async with httpx.AsyncClient(transport=transport, base_url="http://evil.example") as client:
            return await client.get("/")

    assert asyncio.run(ask()).status_code == 421
