"""What every visitor is sent: answered from memory the second time, and only where everybody gets the same."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from specdec.ui import first, gradio_private, kept


@pytest.fixture
def visit():
    """Ask the little app; its answer counts how often it was really asked."""
    asked = []

    def answer(request):
        asked.append(request.url)
        status = 404 if "none" in request.url.path else 200
        return PlainTextResponse(f"{len(asked)} " + "x" * 3000, status)

    app = Starlette(
        routes=[Route("/{path:path}", answer, methods=["GET", "POST"])],
        middleware=[Middleware(kept.Kept), Middleware(first.Preload), Middleware(GZipMiddleware, minimum_size=100)],
    )
    client = TestClient(app)

    def get(path="/", method="GET", **headers):
        return client.request(method, path, headers=headers)

    return get


def test_the_second_visitor_is_sent_what_the_first_one_was(visit):
    first, second = visit(), visit()
    assert first.text == second.text and first.text.startswith("1 ")
    assert second.headers == first.headers and second.headers["content-encoding"] == "br"
    assert visit(**{"accept-encoding": "gzip"}).headers["content-encoding"] == "gzip"
    assert visit("/zh").text.startswith("3 ") and visit("/assets/a.js").text.startswith("4 ")
    assert visit("/?k=5").text.startswith("1 ")  # the settings of a link are read by the page itself


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/", {"host": "elsewhere.org"}),
        ("/", {"accept-encoding": "identity"}),
        ("/", {"x-forwarded-host": "elsewhere.org"}),
        ("/?deep_link=a", {}),
        ("/", {"cookie": "access-token-unsecure-x=1"}),
        ("/", {"range": "bytes=0-9"}),
        ("/gradio_api/info", {}),
    ],
)
def test_what_may_differ_is_asked_again(visit, path, headers):
    visit("/")
    visit("/gradio_api/info")
    assert not visit(path, **headers).text.startswith("1 ")


def test_a_failure_is_not_kept_and_a_post_is_no_visit(visit):
    assert [visit("/assets/none.js").text[:2] for _ in range(2)] == ["1 ", "2 "]
    assert [visit(method="POST").text[:2] for _ in range(2)] == ["3 ", "4 "]


def test_memory_is_bounded(visit, monkeypatch):
    monkeypatch.setattr(kept, "MOST", 10)
    assert [visit().text[:2] for _ in range(2)] == ["1 ", "2 "]


def test_odd_hosts_push_out_no_file_and_few_pages(visit):
    """Anybody can make up a name of a host."""
    assert visit("/assets/a.js").text.startswith("1 ") and visit().text.startswith("2 ")
    for number in range(100):
        visit(host=f"{number}.example")
        assert visit().text.startswith("2 ")  # asked for all the time
    assert visit("/assets/a.js", host="new.example").text.startswith("1 ")  # no file depends on the host
    assert visit(host="99.example").text.startswith("102 ") and visit(host="0.example").text.startswith("103 ")


def test_what_was_asked_for_longest_ago_is_forgotten(visit, monkeypatch):
    monkeypatch.setattr(kept, "MOST", 130)  # a file is fifty bytes when compressed
    first, second, again = visit("/assets/a.js"), visit("/assets/b.js"), visit("/assets/a.js")
    assert first.text == again.text and len(second.content) > 130
    visit("/assets/c.js")
    visit("/assets/d.js")
    assert visit("/assets/d.js").text.startswith("4 ") and visit("/assets/b.js").text.startswith("5 ")


def test_half_an_answer_is_not_kept():
    """As when an app gives up in the middle of a file."""
    asked = []

    async def app(scope, receive, send):
        asked.append(scope["path"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"half", "more_body": len(asked) == 1})

    client = TestClient(kept.Kept(app))
    for _ in range(3):
        client.get("/")
    assert len(asked) == 2


def test_the_page_names_gradios_scripts_and_they_are_there(visit):
    names = gradio_private.scripts()
    assert {name.partition("-")[0] for name in names} >= {"index", "core", "Blocks", "HTML"}
    assert all((gradio_private.FRONTEND / "assets" / name).is_file() for name in names)
    links = visit().headers["link"].split(", ")
    assert links == [f"<assets/{name}>; rel=modulepreload" for name in names]
    assert "link" not in visit("/assets/a.js").headers


@pytest.mark.parametrize("gone", ["index.html", "assets/index-a.js"])
def test_a_file_of_gradios_that_is_not_there_costs_the_header_alone(visit, tmp_path, monkeypatch, gone):
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<script src='./assets/index-a.js'></script>")
    (tmp_path / "assets" / "index-a.js").write_text('import "./core-b.js"')
    monkeypatch.setattr(gradio_private, "FRONTEND", tmp_path)
    (tmp_path / gone).unlink()
    gradio_private.scripts.cache_clear()
    try:
        page = visit()
        assert page.status_code == 200 and "link" not in page.headers
    finally:
        gradio_private.scripts.cache_clear()


def test_another_build_of_gradio_has_no_such_header_and_works(tmp_path, monkeypatch):
    (tmp_path / "index.html").write_text("<script src='main.js'></script>")
    monkeypatch.setattr(gradio_private, "FRONTEND", tmp_path)
    gradio_private.scripts.cache_clear()
    try:
        assert gradio_private.scripts() == []
    finally:
        gradio_private.scripts.cache_clear()


def test_whether_the_page_is_there_is_answered_without_making_it(visit):
    """Gradio asks so as it starts, and does not start where the answer takes three seconds."""
    assert visit("/", "HEAD").status_code == 200 and visit("/zh", "HEAD").status_code == 200
    visit("/assets/a.js", "HEAD")  # of anything else it is asked
    assert visit().text.startswith("2 ")
