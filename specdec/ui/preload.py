"""Gradio's scripts that the first screen waits for, named in the page's header, so that all are fetched at once.

Its modules name each other, and a browser finds each level only after it has read the one before. The names are read
from Gradio's built files; where another version is built otherwise, fewer are named, and the page is as it is, later.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import gradio
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .language import PATHS

FRONTEND = Path(gradio.__file__).parent / "templates" / "frontend"
ENTRY = re.compile(r"assets/(index-[\w-]+\.js)")
IMPORTED = re.compile(r'"\./([\w-]+\.js)"')


class Preload:
    """Middleware that adds the header to the page's answer; its addresses are relative to the page."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def name_scripts(message: Message) -> None:
            if message["type"] == "http.response.start" and scripts():
                links = ", ".join(f"<assets/{name}>; rel=modulepreload" for name in scripts())
                MutableHeaders(scope=message).append("Link", links)
            await send(message)

        is_page = scope["type"] == "http" and scope["path"] in PATHS.values()
        await self.app(scope, receive, name_scripts if is_page else send)


@cache
def scripts() -> list[str]:
    """Names of files in Gradio's folder `assets`, the entry first."""
    assets = FRONTEND / "assets"
    try:
        entry = ENTRY.search((FRONTEND / "index.html").read_text(encoding="utf-8"))
        if entry is None:
            return []
        text = (assets / entry[1]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return []
    imports = text.partition("\n")[0].partition("])")[0]  # its first list
    later = [path.name for kind in ("Blocks", "HTML") for path in sorted(assets.glob(f"{kind}-*.js"))]
    return [entry[1], *IMPORTED.findall(imports), *later]
