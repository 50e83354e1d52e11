"""What the page's own HTML says before Gradio, a megabyte of scripts, has mounted: the first screen, and what others
show of a link to it, a title, a sentence and a picture.

What draws the screen is `assets/page/shared/first.js`; the player in it is the page's own, which then moves into
Gradio's page.
"""

from __future__ import annotations

import html
from functools import cache

from starlette.datastructures import MutableHeaders
from starlette.responses import FileResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..scripts import served
from ..text import ASSETS, PAGE, speaking, strings, TAGS
from .gradio_private import address_in, before_app, scripts, with_head
from .language import LANGUAGE_AT

PICTURE, PREVIEW = ASSETS / "preview.png", "/preview.png"


class First:
    """Middleware that writes both into the page, and serves the picture. It belongs inside of the compression."""

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
                page = before_app(introduced(body, here := LANGUAGE_AT[scope["path"]]), screen(here))
                MutableHeaders(scope=start)["Content-Length"] = str(len(page))
                await send(start)
                await send({**message, "body": page})

        if scope["type"] == "http" and scope["method"] in ("GET", "HEAD") and scope["path"] == PREVIEW:
            await FileResponse(PICTURE, headers={"Cache-Control": "max-age=86400"})(scope, receive, send)
            return
        is_page = scope["type"] == "http" and scope["method"] == "GET" and scope["path"] in LANGUAGE_AT
        await self.app(scope, receive, write if is_page else send)


def introduced(page: bytes, language: str) -> bytes:
    """The page with our title, description and preview in place of Gradio's; and, before all other scripts, where
    ours are, and which of Gradio's it waits for, so that all are fetched at once."""
    page = with_head(page, tags(language, address_in(page) + PREVIEW).encode())
    waits = "".join(f'<link rel="modulepreload" href="./assets/{name}" crossorigin>' for name in scripts())
    return page.replace(b"<head>", f"<head>{served()}{waits}".encode(), 1)


def tags(language: str, picture: str) -> str:
    """Title, description and preview; `picture` is the address of its image."""
    with speaking(language):
        words = strings("page")
    title, about, brand, alt = map(
        html.escape, (words["title"], f"{words['headline']} {words['lead']}", words["brand"], words["preview"])
    )
    return f"""<title>{title}</title>
<meta name="description" content="{about}">
<meta property="og:type" content="website">
<meta property="og:site_name" content="{brand}">
<meta property="og:title" content="{title}">
<meta property="og:description" content="{about}">
<meta property="og:image" content="{html.escape(picture)}">
<meta property="og:image:width" content="1200">
<meta property="og:image:height" content="630">
<meta property="og:image:alt" content="{alt}">
<meta property="og:locale" content="{TAGS[language].replace("-", "_")}">
<meta name="twitter:card" content="summary_large_image">"""


@cache
def screen(language: str) -> bytes:
    """The first screen's markup and script."""
    template, script = ((PAGE / f"shared/first.{kind}").read_text(encoding="utf-8") for kind in ("html", "js"))
    with speaking(language):
        waiting = html.escape(strings("page")["waiting"])
    return template.replace("@@waiting@@", waiting).replace("@@script@@", script).encode()
