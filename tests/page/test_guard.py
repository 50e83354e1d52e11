"""The guard checks requests by host name, origin, size, speed and address."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from anyio.from_thread import start_blocking_portal
from starlette.exceptions import HTTPException

from specdec import exposure
from specdec.exposure import Host, limits
from specdec.ui.build import build
from specdec.ui.gateway import guard
from specdec.ui.session import session
from specdec.ui.theme import launch_settings


@pytest.fixture(autouse=True)
def own(monkeypatch) -> None:
    for name in ("SPACE_ID", guard.HOSTS, guard.PROXIES):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(exposure, "host", Host())


@pytest.mark.parametrize("path", ["gradio_api/call/run", "gradio_api/queue/join", "nowhere"])
def test_more_than_the_limit_is_refused_with_or_without_a_length(client, path: str) -> None:
    most = limits().body
    for content in (b" " * (most + 1), (b" " * 100_000 for _ in range(200))):
        answer = client.post(path, content=content)
        assert answer.status_code == 413 and f"at most {most:,} bytes" in answer.json()["detail"]


@pytest.mark.parametrize(
    "content",
    [
        b'{"trace": [' + b"{}," * 300_000 + b"{}]}",
        b'{"trace": [' + b'"",' * 300_000 + b'""]}',
        b'{"a":' * 20_000,
        b'{"a": "' + b"\\\\" * 9 + b'", "b": [' + b"0," * 300_000 + b"0]}",  # the string ends before that quote
        json.dumps({"trace": "\u2200", "more": [{}] * 50_000}, ensure_ascii=False).encode("utf-16"),
    ],
    ids=["objects", "strings", "nested", "after an escape", "UTF-16"],
)
def test_json_that_would_become_many_objects_is_refused_before_it_is_parsed(content: bytes) -> None:
    with pytest.raises(HTTPException) as refusal:
        guard.check_structure(content)
    assert refusal.value.status_code in (400, 413)


def test_a_text_of_the_largest_size_is_read(client) -> None:
    trace = '{"event":"header"}\n' + '"\\{[,' * 4_000 + "x" * (limits().body - 100_000)
    event = client.post("gradio_api/call/v2/run", json={"prompt": trace}).json()["event_id"]
    assert "the limit is 4,000. Shorten it." in client.get(f"gradio_api/call/run/{event}").text


def test_a_slow_body_is_given_up_and_refuses_nobody_elses(monkeypatch, address) -> None:
    monkeypatch.setattr(guard, "GRACE_S", 0.2)

    def slow() -> Iterator[bytes]:
        for _ in range(100):
            yield b"{"
            time.sleep(0.1)

    answer = httpx.post(f"{address}gradio_api/call/run", content=slow(), timeout=60)
    assert answer.status_code == 408 and "too slowly" in answer.json()["detail"]


def test_of_one_address_few_large_bodies_come_at_once() -> None:
    async def app(*_: Any) -> None: ...

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"{}"}

    receiving = guard.Guard(app)
    receiving.receiving["192.0.2.7"] = full = guard.AT_ONCE * limits().body
    with start_blocking_portal() as portal:  # a thread: browser tests may have an event loop in this one
        with pytest.raises(HTTPException, match="of yours"):
            portal.call(receiving.read_body, receive, "192.0.2.7")
        assert portal.call(receiving.read_body, receive, "192.0.2.8") == b"{}"
    assert receiving.receiving == {"192.0.2.7": full}


@pytest.mark.parametrize("path", ["upload", "proxy=http://127.0.0.1:1/", "dev/reload", f"assets/{'a' * 5000}"])
def test_no_file_is_taken_and_no_address_is_fetched(client, path: str) -> None:
    for place in ("gradio_api/", ""):
        assert client.post(place + path).status_code == client.get(place + path).status_code == 404


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:7860", 200),
        ("evil.example", 400),
        ("127.0.0.1.evil.example:7860", 400),
        ("192.0.2.7", 400),
    ],
)
def test_a_page_of_ones_own_answers_to_its_own_names(client, host: str, status: int) -> None:
    for path in ("", "config", "gradio_api/info"):
        assert client.get(path, headers={"Host": host}).status_code == status, path


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://127.0.0.1:7860", 200),
        ("http://localhost:3000", 200),
        ("http://evil.example", 422),
        ("https://127.0.0.1.evil.example", 422),
        ("null", 422),
    ],
)
def test_the_page_of_another_site_cannot_ask(client, origin: str, status: int) -> None:
    """For JSON a browser first asks whether it may; what it sends without asking is no JSON."""
    asked = {"Origin": origin, "Access-Control-Request-Method": "POST"}
    for path in ("call/run", "call/v2/run", "queue/join", "run/run"):
        before = client.options(f"gradio_api/{path}", headers=asked)
        assert before.headers.get("access-control-allow-origin") == (origin if status == 200 else None)
        for kind in ("text/plain", "application/x-www-form-urlencoded", None):
            sent = {"Origin": origin} | ({"Content-Type": kind} if kind else {})
            assert client.post(f"gradio_api/{path}", content=b'{"data": []}', headers=sent).status_code == 422


def test_an_owner_lists_more_names_and_a_page_for_others_answers_to_any(monkeypatch) -> None:
    monkeypatch.setenv(guard.HOSTS, "demo.example, Other.example")
    assert {"localhost", "::1", "demo.example", "other.example", "box"} <= {*guard.allowed_hosts("box")}
    for row in ("network", "class", "public"):
        monkeypatch.setattr(exposure, "host", Host(row))
        assert guard.allowed_hosts("0.0.0.0") == ["*"]


def test_only_a_proxy_that_the_owner_names_says_who_asks(address, monkeypatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr(session.rate_limit, "wait_s", lambda address: seen.append(address) or 60.0)
    monkeypatch.setenv(guard.PROXIES, "10.0.0.0/8, 127.0.0.0/8")
    demo = build()
    _, proxied, _ = demo.launch(prevent_thread_lock=True, quiet=True, **launch_settings())
    told = {"X-Forwarded-For": "198.51.100.1, 203.0.113.7, 10.1.2.3"}
    for url in (address, proxied):
        event = httpx.post(f"{url}gradio_api/call/v2/run", json={"prompt": "Once"}, headers=told).json()["event_id"]
        httpx.get(f"{url}gradio_api/call/run/{event}")
    demo.close()
    assert seen == ["127.0.0.1", "203.0.113.7"]


def test_whose_word_is_taken(monkeypatch) -> None:
    assert guard.trusted_proxies() == ""
    monkeypatch.setenv("SPACE_ID", "somebody/specdec")
    assert "10.0.0.0/8" in guard.trusted_proxies()
    monkeypatch.setenv(guard.PROXIES, "10.0.0.0/8, nginx")
    with pytest.raises(ValueError, match="nginx"):
        launch_settings()
