"""What is the same for every visitor is made once: the page of a language, and the files of its scripts and fonts.

Gradio renders a page of a megabyte and compresses some seventy files anew for each visitor: half a second of
processor time, before the first token is drawn. From memory it is a few milliseconds, thirty visitors or one.
"""

from __future__ import annotations

from starlette.datastructures import Headers, QueryParams
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .language import PATHS

FOLDERS = ("/assets/", "/static/")  # their files' names change with their content, or with Gradio's version
MOST = 16_000_000  # bytes
# What a page or its compression depends on. Gradio writes its own address into the page, as a proxy names it.
ASKED = ("host", "x-forwarded-host", "x-forwarded-proto", "x-gradio-server", "accept-encoding")
OWN = ("range", "if-none-match", "if-modified-since")  # a part of a file, or a file that may be unchanged


class Kept:
    """Middleware that answers again what it saw answered once. It belongs outside of the compression."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.answers: dict[tuple[str | None, ...], list[Message]] = {}
        self.size = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "HEAD" and scope["path"] in PATHS.values():
            # So Gradio asks, as it starts, whether its page can be reached, and gives up after three seconds: on a busy
            # machine the page is not made by then.
            await Response(media_type="text/html")(scope, receive, send)
            return
        if not is_common(scope):
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        key = (scope["path"], scope["scheme"], scope.get("root_path"), *map(headers.get, ASKED))
        if key not in self.answers:
            told: list[Message] = []

            async def listen(message: Message) -> None:
                told.append(copied(message))
                await send(message)

            await self.app(scope, receive, listen)
            size = sum(len(message.get("body", b"")) for message in told)
            whole = told[-1]["type"] == "http.response.body" and not told[-1].get("more_body")
            if told[0].get("status") == 200 and whole and self.size + size <= MOST:
                self.answers[key], self.size = told, self.size + size
            return
        for message in self.answers[key]:
            await send(copied(message))


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
