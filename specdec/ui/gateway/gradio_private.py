"""Use undocumented parts of Gradio, which the versions in requirements.txt have."""

import asyncio
import base64
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import gradio as gr
from gradio.context import LocalContext
from gradio.utils import LRUCache

APP = b"<gradio-app"  # the element that the page is mounted in
METAS = re.compile(rb"""\s*<meta\s+(?:property|name)="(?:og|twitter):[^>]*>|\s*<title>[^<]*</title>""")
ROOT = re.compile(rb'"root":"(https?://[^"\\\s<>]+)"')
FRONTEND = Path(gr.__file__).parent / "templates" / "frontend"
ENTRY = re.compile(r"assets/(index-[\w-]+\.js)")
IMPORTED = re.compile(r'"\./([\w-]+\.js)"')
# The app's fonts: family, weight, file. The bold file also serves as semi-bold, whose own file lacks most letters.
FONTS = (
    ("IBM Plex Sans", 400, "IBMPlexSans/IBMPlexSans-Regular"),
    ("IBM Plex Sans", 600, "IBMPlexSans/IBMPlexSans-Bold"),
    ("IBM Plex Mono", 400, "IBMPlexMono/IBMPlexMono-Regular"),
)
MOST_SESSIONS = 2_000  # sessions whose messages are stored until they are fetched


def scope() -> dict[str, Any]:
    """Return the scope of the request that is being answered; {} outside of one."""
    request = LocalContext.request.get(None)  # its own `scope` is a converted copy
    return dict(getattr(getattr(request, "request", None), "scope", {}))


def wrap(demo: gr.Blocks, wrapper: Callable[[Any], Any]) -> None:
    for event in demo.fns.values():
        if event.fn and event.page == demo.current_page:
            event.fn = wrapper(event.fn)


class Messages(LRUCache[str, Any]):
    """The messages of the newest sessions. One for a visitor who has left would end Gradio's loop."""

    def __missing__(self, session: str) -> Any:
        return asyncio.Queue()


def guard_queue(demo: gr.Blocks) -> None:
    """Prevent a visitor's call from ending the queue for all others."""
    demo._queue.pending_messages_per_session = Messages(MOST_SESSIONS)


def address_in(page: bytes) -> str:
    """Return the page's own address, which Gradio writes into the page; "" if it wrote none."""
    root = ROOT.search(page)
    return root[1].decode("latin-1").rstrip("/") if root else ""


def completed(page: bytes, links: str, tags: str, screen: str) -> bytes:
    """Put `links` and `tags`, in place of Gradio's, into the head, and `screen` before the app."""
    head, end, body = page.partition(b"</head>")
    head = METAS.sub(b"", head).replace(b"<head>", b"<head>" + links.encode(), 1)
    return head + tags.encode() + b"\n" + end + body.replace(APP, screen.encode() + APP, 1)


@cache
def scripts() -> list[str]:
    """List the scripts that the page waits for, the entry first, so that browsers find them at once."""
    assets = FRONTEND / "assets"
    entry = ENTRY.search((FRONTEND / "index.html").read_text(encoding="utf-8"))
    if entry is None:
        return []
    preload_list = (assets / entry[1]).read_text(encoding="utf-8").partition("\n")[0].partition("])")[0]
    later = [path.name for kind in ("Blocks", "HTML") for path in sorted(assets.glob(f"{kind}-*.js"))]
    return [entry[1], *IMPORTED.findall(preload_list), *later]


@cache
def fonts(embedded: bool = True) -> str:
    """Write CSS rules for the app's fonts, which contain the files or link them."""
    rules = []
    for family, weight, name in FONTS:
        path = FRONTEND / "static" / "fonts" / f"{name}.woff2"
        if path.is_file():  # else the reader's own font is used
            data = f"data:font/woff2;base64,{base64.b64encode(path.read_bytes()).decode()}"
            source = f"src: url({data})" if embedded else f"font-display: swap; src: url(static/fonts/{name}.woff2)"
            rules.append(f'@font-face {{ font-family: "{family}"; font-weight: {weight}; {source} }}\n')
    return "".join(rules)
