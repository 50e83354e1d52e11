"""The first screen is in the page's own HTML: it is read and plays before Gradio, a megabyte of scripts, has mounted.

What draws it is `assets/page/shared/first.js`; the player in it is the page's own, which then moves into Gradio's page.
"""

from __future__ import annotations

import html
from functools import cache

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .language import LANGUAGE_AT
from .text import PAGE, speaking, strings

PLACE = b"<gradio-app"  # Gradio's own element, which this stands before


class First:
    """Middleware that writes the first screen into the page. It belongs inside of the compression."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start: Message = {}
        body = b""

        async def write(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start":
                start = message
                return
            body += message.get("body", b"")
            if not message.get("more_body"):
                page = body.replace(PLACE, screen(LANGUAGE_AT[scope["path"]]) + PLACE, 1)
                MutableHeaders(scope=start)["Content-Length"] = str(len(page))
                await send(start)
                await send({**message, "body": page})

        is_page = scope["type"] == "http" and scope["method"] == "GET" and scope["path"] in LANGUAGE_AT
        await self.app(scope, receive, write if is_page else send)


@cache
def screen(language: str) -> bytes:
    template, script = ((PAGE / f"shared/first.{kind}").read_text(encoding="utf-8") for kind in ("html", "js"))
    with speaking(language):
        waiting = html.escape(strings("page")["waiting"])
    return template.replace("@@waiting@@", waiting).replace("@@script@@", script).encode()
