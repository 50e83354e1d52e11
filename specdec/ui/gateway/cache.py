"""Choose a visitor's language, and cache what is the same for all: each language's page, scripts and fonts.

Gradio would take half a second of processor time for each visitor. Until its scripts are loaded, the browser shows the
first screen, which `assets/page/shared/first.js` draws. Its player then moves into Gradio's page.
"""

import asyncio
import gzip
import re
from collections import OrderedDict
from collections.abc import Callable
from functools import partial

import brotli
import httpx
from starlette.datastructures import Headers, QueryParams
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ..browser import link_modules
from ..text import ASSETS, ENGLISH, filled, language, LANGUAGES, speaking, strings, TAGS
from . import gradio_private

PATHS = {language: "/" if language == ENGLISH else f"/{language}" for language in LANGUAGES}
LANGUAGE_AT = {path: language for language, path in PATHS.items()}
PICTURE = ASSETS / "preview.png"
PREVIEW = "/preview.png"  # the picture's path on the server
FOLDERS = ("/assets/", "/static/")  # a file here gets a new name when its content or Gradio changes
MOST_ANSWERS = 250  # the pages and their files are 80; visitors can add pages by invented host names
ENCODINGS: dict[str, Callable[[bytes], bytes]] = {"br": partial(brotli.compress, quality=9), "gzip": gzip.compress}
BYPASS = {"range", "if-none-match"}  # requests with these headers bypass the cache
# Gradio writes the page's own address into the page. It takes the address from these headers, which a proxy may set.
ADDRESS = ("host", "x-forwarded-host", "x-forwarded-proto", "x-gradio-server")


class Cache:
    """Middleware that stores compressed answers, and serves the preview's picture."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.answers: OrderedDict[tuple[object, ...], tuple[bytes, dict[str, str]]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method, path = scope.get("method", ""), scope.get("path", "")
        headers = Headers(scope=scope) if scope["type"] == "http" else Headers()
        is_page = path in LANGUAGE_AT and method in ("GET", "HEAD")
        is_file = path.startswith(FOLDERS) and method == "GET" and not BYPASS & {*headers}
        answer: ASGIApp = self.app
        if path == PREVIEW and method in ("GET", "HEAD"):
            answer = FileResponse(PICTURE, headers={"Cache-Control": "max-age=86400"})
        elif is_page and method == "HEAD":
            # Answer at once: when Gradio starts, it checks its page by HEAD, and waits three seconds at most.
            answer = Response(media_type="text/html")
        elif is_page or is_file:
            answer = await self.answer(scope, headers)
        await answer(scope, receive, send)

    async def answer(self, scope: Scope, headers: Headers) -> Response:
        path, accepted = scope["path"], by_weight(headers.get("accept-encoding", ""))
        encoding = next((name for name in ENCODINGS if name in accepted), "")
        here = LANGUAGE_AT.get(path)
        key = (path, encoding, *((scope["scheme"], *map(headers.get, ADDRESS)) if here else ()))
        if key not in self.answers:
            status, body, fields = await self.ask(scope)
            if status != 200:
                return Response(body, status, fields)
            if here:
                body = with_first_screen(body, here)
            if encoding:
                body = await asyncio.to_thread(ENCODINGS[encoding], body)  # a page takes a tenth of a second
                fields = {**fields, "content-encoding": encoding}
            self.answers[key] = body, {**fields, "vary": "Accept-Encoding"}
            if len(self.answers) > MOST_ANSWERS:
                self.answers.popitem(last=False)
        self.answers.move_to_end(key)
        body, fields = self.answers[key]
        return Response(body, headers=fields)

    async def ask(self, scope: Scope) -> tuple[int, bytes, dict[str, str]]:
        """Ask the app for an uncompressed answer, and return its status, body and headers."""
        # The app does not hear that the visitor leaves: it would end the answer, and others would get half of it.
        bare = [pair for pair in scope["headers"] if pair[0] != b"accept-encoding"]

        async def app(_: Scope, receive: Receive, send: Send) -> None:
            await self.app({**scope, "headers": bare}, receive, send)

        answer = await httpx.ASGITransport(app).handle_async_request(httpx.Request("GET", "http://localhost"))
        fields = {name: value for name, value in answer.headers.items() if name != "content-length"}
        return answer.status_code, await answer.aread(), fields


def with_first_screen(page: bytes, here: str) -> bytes:
    """Add our title and preview, import map, preload links, and the first screen."""
    names = gradio_private.scripts()
    preloads = "".join(f'<link rel="modulepreload" href="./assets/{name}" crossorigin>' for name in names)
    with speaking(here):
        screen = filled("shared/first.html", words=strings("page"))
        described = tags(gradio_private.address_in(page) + PREVIEW)
    return gradio_private.completed(page, link_modules() + preloads, described, screen)


def tags(picture: str) -> str:
    """Write the tags for title, description and preview, whose image is at `picture`."""
    locale = TAGS[language()].replace("-", "_")
    return filled("shared/tags.html", words=strings("page"), picture=picture, locale=locale)


class LanguageRedirect:
    """Middleware that redirects between `/` and `/zh`: by `?lang=zh`, or else by the browser's preference."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = self.app
        if scope["type"] == "http" and scope["method"] == "GET" and scope["path"] in LANGUAGE_AT:
            query, here = scope["query_string"].decode("latin-1"), LANGUAGE_AT[scope["path"]]
            by_browser = preferred(Headers(scope=scope).get("accept-language", ""))
            wanted = supported(QueryParams(query).get("lang", "")) or (by_browser if here == ENGLISH else here)
            if wanted != here:
                address = f".{PATHS[wanted]}?{query}"  # relative, because the app may be served below any prefix
                answer = RedirectResponse(address, headers={"Vary": "Accept-Language", "Cache-Control": "no-store"})
        await answer(scope, receive, send)


def preferred(accepted: str) -> str:
    """Return the best language of a header such as `zh-CN,zh;q=0.9`, or English."""
    return next(filter(None, map(supported, by_weight(accepted))), ENGLISH)


def by_weight(accepted: str) -> list[str]:
    """Return a header's values in lower case, those of highest q first, without q=0."""
    weights = {}
    for part in accepted.lower().split(","):
        value, _, parameters = part.partition(";")
        weight = re.search(r"q=(\d(\.\d+)?)", parameters)
        weights[value.strip()] = float(weight[1]) if weight else 1.0
    return sorted(filter(weights.get, weights), key=lambda value: -weights[value])


def supported(tag: str) -> str:
    """Return the language of a tag such as `zh-CN`; "" for a language that the page does not have."""
    name = tag.strip().lower().partition("-")[0]
    return name if name in LANGUAGES else ""
