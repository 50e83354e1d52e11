"""Contain uses of undocumented parts of Gradio. requirements.txt names the versions that have these parts.

Undocumented names of elements in the browser are not here: the scripts in `assets/page` use them.
"""

import asyncio
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
MOST_SESSIONS = 2_000  # sessions whose messages are stored until they are fetched


def request() -> gr.Request | None:
    """Return the request that is being answered; None outside of a request."""
    return LocalContext.request.get(None)


def scope_of(request: gr.Request) -> dict[str, Any]:
    """Return the ASGI scope of the Starlette request in a Gradio request; `request.scope` is only a converted copy."""
    return dict(getattr(request.request, "scope", {}))


def wrap(demo: gr.Blocks, wrapper: Callable[[Any], Any]) -> None:
    """Wrap the functions of the page that is being built."""
    for event in demo.fns.values():
        if event.fn and event.page == demo.current_page:
            event.fn = wrapper(event.fn)


class Messages(LRUCache[str, Any]):
    """The messages of the newest sessions. Messages for any other session are dropped.

    Without this, a message for a missing session ends Gradio's one loop, which serves all visitors. A session is
    missing, for example, if its visitor has left.
    """

    def __missing__(self, session: str) -> Any:
        return asyncio.Queue()


def guard_queue(demo: gr.Blocks) -> None:
    """Prevent a visitor's call from ending the queue for all others."""
    demo._queue.pending_messages_per_session = Messages(MOST_SESSIONS)


def address_in(page: bytes) -> str:
    """Return the page's own address, which Gradio writes into the page; "" if it wrote none."""
    root = ROOT.search(page)
    return root[1].decode("latin-1").rstrip("/") if root else ""


def with_head(page: bytes, tags: bytes) -> bytes:
    """Replace Gradio's title and preview tags by `tags`. A page without a head is not changed."""
    head, end, rest = page.partition(b"</head>")
    return METAS.sub(b"", head) + tags + b"\n" + end + rest if end else page


def before_app(page: bytes, screen: bytes) -> bytes:
    return page.replace(APP, screen + APP, 1)


@cache
def scripts() -> list[str]:
    """List the scripts that the page waits for, by their names in Gradio's folder `assets`, the entry first.

    Without this list, a browser finds a script only when it has loaded the one that imports it. If a new version of
    Gradio is built differently, fewer scripts are listed, and the page loads later.
    """
    assets = FRONTEND / "assets"
    entry = ENTRY.search((FRONTEND / "index.html").read_text(encoding="utf-8"))
    if entry is None:
        return []
    preload_list = (assets / entry[1]).read_text(encoding="utf-8").partition("\n")[0].partition("])")[0]
    later = [path.name for kind in ("Blocks", "HTML") for path in sorted(assets.glob(f"{kind}-*.js"))]
    return [entry[1], *IMPORTED.findall(preload_list), *later]


def font(name: str) -> bytes | None:
    """Read one of Gradio's own fonts; None if Gradio has no font of that name."""
    path = FRONTEND / "static" / "fonts" / f"{name}.woff2"
    return path.read_bytes() if path.is_file() else None
