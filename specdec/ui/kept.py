"""What is the same for every visitor is made once: the page of a language, and the files of its scripts and fonts.

Gradio renders a page of a megabyte and compresses some seventy files anew for each visitor: half a second of
processor time, before the first token is drawn. From memory it is a few milliseconds, thirty visitors or one.
"""

from __future__ import annotations

import gzip
from collections import OrderedDict
from collections.abc import Callable
from functools import partial

import brotli
from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .language import PATHS

FOLDERS = ("/assets/", "/static/")  # their files' names change with their content, or with Gradio's version
MOST, MOST_PAGES = 16_000_000, 8  # bytes of all, and pages; visitors can make up names of hosts, and so pages
# Gradio writes its own address into a page, as a proxy names it.
ASKED = ("host", "x-forwarded-host", "x-forwarded-proto")
# How a page is made small; brotli's is a sixth smaller, and takes a tenth of a second, once.
ENCODINGS: dict[str, Callable[[bytes], bytes]] = {"br": partial(brotli.compress, quality=9), "gzip": gzip.compress}
OWN = ("range", "if-none-match", "if-modified-since")  # a part of a file, or a file that may be unchanged


class Kept:
    """Middleware that answers again what it saw answered once. It belongs outside of the compression.

    Of too much, what was asked for longest ago is forgotten.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.pages: OrderedDict[tuple[object, ...], list[Message]] = OrderedDict()
        self.files: OrderedDict[tuple[object, ...], list[Message]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_page = scope["type"] == "http" and scope["path"] in PATHS.values()
        if is_page and scope["method"] == "HEAD":
            # So Gradio asks, as it starts, whether its page can be reached, and gives up after three seconds: on a busy
            # machine the page is not made by then.
            await Response(media_type="text/html")(scope, receive, send)
            return
        if not is_common(scope):
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        accepted = headers.get("accept-encoding", "")
        key: tuple[object, ...] = (scope["path"], "gzip" in accepted)
        encoding = ""
        if is_page:
            encoding = next((name for name in ENCODINGS if name in accepted), "")
            key = (scope["path"], encoding, scope["scheme"], scope.get("root_path"), *map(headers.get, ASKED))
            scope = {**scope, "headers": [pair for pair in scope["headers"] if pair[0] != b"accept-encoding"]}
        known = self.pages if is_page else self.files
        if key not in known:
            told: list[Message] = []

            async def listen(message: Message) -> None:
                told.append(copied(message))
                if not encoding:
                    await send(message)

            await self.app(scope, receive, listen)
            whole = told[-1]["type"] == "http.response.body" and not told[-1].get("more_body")
            if encoding:
                told = compressed(told, encoding) if whole else told
                for message in told:
                    await send(copied(message))
            if told[0].get("status") == 200 and whole:
                known[key] = told
                self.forget()
            return
        known.move_to_end(key)
        for message in known[key]:
            await send(copied(message))

    def forget(self) -> None:
        while len(self.pages) > MOST_PAGES:
            self.pages.popitem(last=False)
        while sum(map(size, self.files.values())) + sum(map(size, self.pages.values())) > MOST:
            (self.files or self.pages).popitem(last=False)


def size(told: list[Message]) -> int:
    return sum(len(message.get("body", b"")) for message in told)


def compressed(told: list[Message], encoding: str) -> list[Message]:
    """The same answer, its body in one piece and small."""
    start, body = copied(told[0]), ENCODINGS[encoding](b"".join(message.get("body", b"") for message in told))
    headers = MutableHeaders(raw=start["headers"])
    headers["content-encoding"], headers["content-length"] = encoding, str(len(body))
    headers.add_vary_header("Accept-Encoding")
    return [start, {"type": "http.response.body", "body": body}]


def copied(message: Message) -> Message:
    """A middleware around this one may write into the headers."""
    return {**message, "headers": [*message["headers"]]} if "headers" in message else {**message}


def is_common(scope: Scope) -> bool:
    """Whether every visitor is answered the same."""
    if scope["type"] != "http" or scope["method"] != "GET":
        return False
    headers = Headers(scope=scope)
    if any(name in headers for name in OWN) or "access-token" in headers.get("cookie", ""):  # logged in
        return False
    page = scope["path"] in PATHS.values() and "deep_link" not in QueryParams(scope["query_string"])
    return page or scope["path"].startswith(FOLDERS)
