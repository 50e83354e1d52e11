"""The cache answers from memory the second time, and only if every visitor gets the same answer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import brotli
import httpx
import pytest
from anyio.from_thread import start_blocking_portal
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from specdec.ui.gateway import cache, gradio_private

Visit = Callable[..., httpx.Response]


@pytest.fixture
def visit() -> Visit:
    """Request something from a small app whose answers count its requests."""
    asked = []

    def answer(request: Request) -> PlainTextResponse:
        asked.append(request.url)
        status = 404 if "none" in request.url.path else 200
        return PlainTextResponse(f"{len(asked)} " + "x" * 3000, status)

    routes = [Route("/{path:path}", answer, methods=["GET", "POST"])]
    client = TestClient(Starlette(routes=routes, middleware=[Middleware(cache.Cache)]))

    def get(path: str = "/", method: str = "GET", **headers: Any) -> httpx.Response:
        return client.request(method, path, headers=headers)

    return get


def test_the_second_visitor_is_sent_what_the_first_one_was(visit) -> None:
    first, second = visit(), visit()
    assert first.text == second.text and first.text.startswith("1 ")
    assert second.headers == first.headers and second.headers["content-encoding"] == "br"
    for accepted in ("gzip", "gzip, br;q=0"):
        assert visit(**{"accept-encoding": accepted}).headers["content-encoding"] == "gzip"
    assert visit("/zh").text.startswith("3 ") and visit("/assets/a.js").text.startswith("4 ")
    assert visit("/?k=5").text.startswith("1 ")  # the settings of a link are read by the page itself


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/", {"host": "elsewhere.org"}),
        ("/", {"accept-encoding": "identity"}),
        ("/", {"x-forwarded-host": "elsewhere.org"}),
        ("/", {"x-gradio-server": "http://elsewhere.org"}),
        ("/gradio_api/info", {}),
    ],
)
def test_what_may_differ_is_asked_again(visit, path: str, headers: dict[str, str]) -> None:
    visit("/")
    visit("/gradio_api/info")
    assert not visit(path, **headers).text.startswith("1 ")


def test_a_failure_is_not_kept_a_post_is_no_visit_and_a_head_makes_no_page(visit) -> None:
    assert visit("/", "HEAD").status_code == 200  # not counted: it is answered without the app
    assert [visit("/assets/none.js").text[:2] for _ in range(2)] == ["1 ", "2 "]
    assert [visit(method="POST").text[:2] for _ in range(2)] == ["3 ", "4 "]
    assert visit().text.startswith("5 ")


def test_a_visitor_who_leaves_does_not_halve_the_file_for_others() -> None:
    async def pieces() -> AsyncIterator[str]:
        for _ in range(3):
            await asyncio.sleep(0.01)
            yield "a piece;"

    routes = [Route("/assets/a.js", lambda _: StreamingResponse(pieces()))]
    app = Starlette(routes=routes, middleware=[Middleware(cache.Cache)])

    async def leave() -> None:
        scope = {"type": "http", "method": "GET", "path": "/assets/a.js", "headers": [], "query_string": b""}

        async def receive() -> dict[str, str]:
            return {"type": "http.disconnect"}

        async def send(_: Any) -> None:
            pass

        await app(scope, receive, send)

    with start_blocking_portal() as portal:
        portal.call(leave)
    assert TestClient(app).get("/assets/a.js", headers={"accept-encoding": ""}).text == 3 * "a piece;"


def test_others_are_answered_while_a_page_is_compressed(monkeypatch) -> None:
    answered = threading.Event()

    def compress(body: bytes) -> bytes:
        assert answered.wait(10)
        return brotli.compress(body)

    async def visit_both() -> None:
        app = Starlette(
            routes=[Route("/{path:path}", lambda _: PlainTextResponse("x"))], middleware=[Middleware(cache.Cache)]
        )
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here") as client:
            page = asyncio.create_task(client.get("/", headers={"accept-encoding": "br"}))
            await asyncio.sleep(0.1)
            assert (await client.get("/gradio_api/info")).text == "x"
            answered.set()
            assert (await page).status_code == 200

    monkeypatch.setitem(cache.ENCODINGS, "br", compress)
    with start_blocking_portal() as portal:  # a thread: browser tests may have an event loop in this one
        portal.call(visit_both)


def test_memory_is_bounded_whatever_hosts_are_made_up(visit, monkeypatch) -> None:
    monkeypatch.setattr(cache, "MOST_ANSWERS", 5)
    assert visit("/assets/a.js").text.startswith("1 ") and visit().text.startswith("2 ")
    for number in range(20):
        visit(host=f"{number}.example")
        assert visit().text.startswith("2 ")  # asked for all the time
    assert visit("/assets/a.js").text.startswith("23 ")


def test_the_page_names_gradios_scripts_and_they_are_there(address) -> None:
    names = gradio_private.scripts()
    assert {name.partition("-")[0] for name in names} >= {"index", "core", "Blocks", "HTML"}
    assert all((gradio_private.FRONTEND / "assets" / name).is_file() for name in names)
    page = httpx.get(address, headers={"Accept-Language": "en"}).text
    assert all(f'<link rel="modulepreload" href="./assets/{name}" crossorigin>' in page for name in names)
    assert gradio_private.fonts().count("@font-face") == len(gradio_private.FONTS)
