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
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .language import LANGUAGE_AT

FOLDERS = ("/assets/", "/static/")  # their files' names change with their content, or with Gradio's version
MOST_ANSWERS = 250  # the page and its files are 80; visitors can make up names of hosts, and so pages
ENCODINGS: dict[str, Callable[[bytes], bytes]] = {"br": partial(brotli.compress, quality=9), "gzip": gzip.compress}
# Gradio writes its own address into a page, as a proxy names it.
ADDRESS = ("host", "x-forwarded-host", "x-forwarded-proto", "x-gradio-server")


class Cache:
    """Middleware that answers again what it saw answered once, compressed. What was asked for longest ago goes."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.answers: OrderedDict[tuple[object, ...], tuple[bytes, dict[str, str]]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, is_page = scope.get("path", ""), scope.get("path") in LANGUAGE_AT
        headers = Headers(scope=scope) if scope["type"] == "http" else Headers()
        if scope.get("method") == "HEAD" and is_page:
            # So Gradio asks, as it starts, whether its page can be reached, and gives up after three seconds.
            await Response(media_type="text/html")(scope, receive, send)
            return
        is_whole = scope.get("method") == "GET" and "range" not in headers and "if-none-match" not in headers
        if not is_whole or not (is_page or path.startswith(FOLDERS)):
            await self.app(scope, receive, send)
            return
        accepted = headers.get("accept-encoding", "")
        encoding = next((name for name in ENCODINGS if name in accepted), "")
        key = (path, encoding, *((scope["scheme"], *map(headers.get, ADDRESS)) if is_page else ()))
        if key not in self.answers:
            status, body, fields = await self.ask(scope, receive)
            if status != 200:
                await Response(body, status, fields)(scope, receive, send)
                return
            if encoding:
                body, fields = ENCODINGS[encoding](body), {**fields, "content-encoding": encoding}
            self.answers[key] = body, {**fields, "vary": "Accept-Encoding"}
            if len(self.answers) > MOST_ANSWERS:
                self.answers.popitem(last=False)
        self.answers.move_to_end(key)
        body, fields = self.answers[key]
        await Response(body, headers=fields)(scope, receive, send)

    async def ask(self, scope: Scope, receive: Receive) -> tuple[int, bytes, dict[str, str]]:
        """Status, body and headers of the app's answer, not compressed."""
        messages = list[Message]()

        async def listen(message: Message) -> None:
            messages.append(message)

        bare = [pair for pair in scope["headers"] if pair[0] != b"accept-encoding"]
        await self.app({**scope, "headers": bare}, receive, listen)
        start, *pieces = messages
        fields = {name: value for name, value in Headers(raw=start["headers"]).items() if name != "content-length"}
        return start["status"], b"".join(one.get("body", b"") for one in pieces), fields
