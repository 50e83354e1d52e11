"""All that the page uses of Gradio without its documentation's word; a later version may lack any of it.

Each is read by `private`, and its docstring says what the page is without it: plainer or slower, but there. A test
takes away one after the other. Names of Gradio's elements in the browser are in `assets/page`.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections import OrderedDict
from collections.abc import Callable, Collection
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import gradio as gr


def private(owner: Any, name: str, default: Any = None) -> Any:
    """What `owner` keeps under that name; `owner` may be a module of Gradio's."""
    try:
        return getattr(import_module(f"gradio.{owner}") if isinstance(owner, str) else owner, name, default)
    except ImportError:
        return default


# ---- who asks ----


def tells_requests() -> bool:
    """Without, nobody can be told from another: all visitors share the bounds of one."""
    return private(private("context", "LocalContext"), "request") is not None


def request() -> gr.Request | None:
    """The request of what is being computed; None outside of one."""
    current = private(private("context", "LocalContext"), "request")
    return current.get(None) if current else None


def scope_of(asked: gr.Request) -> dict[str, Any]:
    """Gradio's own request makes text of what it hands out, so its Starlette request is asked. {}: no teacher leads."""
    found: dict[str, Any] = private(private(asked, "request"), "scope", {})
    return found


# ---- the functions behind the page ----


def demo_of(app: Any) -> Any:
    """The page that an app serves."""
    return private(app, "get_blocks", lambda: None)()


def functions(demo: gr.Blocks) -> dict[int, Any]:
    """By their numbers. Without, answers are in English, and what programs may call is told to models, too."""
    found: dict[int, Any] = private(demo, "fns", {})
    return found


def wrap(demo: gr.Blocks, wrapper: Callable[[Any], Any]) -> None:
    """Those of the page that is being built."""
    for event in functions(demo).values():
        if private(event, "fn") and private(event, "page") == private(demo, "current_page"):
            event.fn = wrapper(event.fn)


def public(demo: gr.Blocks) -> list[Any]:
    """Those that programs call by name."""
    every = functions(demo).values()
    return [one for one in every if private(one, "fn") and private(one, "api_visibility") == "public"]


def only_tools(demo: gr.Blocks, names: Collection[str]) -> None:
    """What else is public is no tool for a model: Gradio lists as tools what has no other type."""
    for event in public(demo):
        if event.api_name not in names:
            event.fn._mcp_type = "endpoint"


def answer_only_tools(demo: gr.Blocks, names: Collection[str]) -> bool:
    """What the MCP server does not list it does not call either. Whether there is such a server."""
    server = private(demo, "mcp_server_obj")
    if tools := private(server, "tool_to_endpoint"):
        server.tool_to_endpoint = {name: at for name, at in tools.items() if at.removeprefix("/") in names}
    return server is not None


def arguments(demo: gr.Blocks) -> dict[str, dict[str, bool]]:
    """The arguments of each public function, and whether it has a value for one that is left out."""
    told = private(demo, "get_api_info", dict)().get("named_endpoints", {})
    return {
        path[1:]: {one["parameter_name"]: bool(one["parameter_has_default"]) for one in about["parameters"]}
        for path, about in told.items()
    }


# ---- calls ----


class UnknownName(KeyError):
    """A visitor asked for a function or a component that is not there."""


class Known(dict[Any, Any]):
    """What Gradio looks up by the numbers that visitors send."""

    def __missing__(self, key: Any) -> Any:
        raise UnknownName(key)


class Blocks(gr.Blocks):
    """What fails of a call is told to `failure`. Without, Gradio tells it in its own words, and logs them."""

    def failure(self, error: Exception | None, language: str, scope: dict[str, Any]) -> gr.Error:
        """What is raised in its place; there is no error where there is no function, or the arguments do not fit it."""
        raise NotImplementedError

    def launch(self, *settings: Any, **named: Any) -> Any:
        os.environ["FORWARDED_ALLOW_IPS"] = ""  # uvicorn would believe any program here; `doors.py` decides whom
        for name in ("fns", "blocks"):
            if found := private(private(self, "default_config"), name):
                setattr(self.default_config, name, Known(found))
        return super().launch(*settings, **named)

    async def preprocess_data(self, block_fn: Any, *asked: Any, **named: Any) -> Any:
        try:
            return await super().preprocess_data(block_fn, *asked, **named)
        except Exception as error:
            raise Unfit(type(error).__name__) from None

    async def process_api(self, block_fn: Any, inputs: list[Any], *more: Any, **named: Any) -> dict[str, Any]:
        language, scope = private(block_fn, "page", ""), scope_of(named["request"]) if "request" in named else {}
        try:
            if not private(block_fn, "fn", True):
                raise self.failure(None, language, scope)
            return await super().process_api(block_fn, inputs, *more, **named)
        except gr.Error:
            raise
        except Exception as error:
            raise self.failure(error, language, scope) from None
        finally:
            forget(block_fn, named.get("state"))


class Unfit(Exception):
    """The arguments of a call are not of the kind that its function takes."""


def forget(block_fn: Any, state: Any) -> None:
    """What was sent and answered. Gradio keeps it in the session for links to a state, which this page has not."""
    kept = private(state, "config_values", {})
    for block in (*private(block_fn, "inputs", ()), *private(block_fn, "outputs", ())):
        kept.get(private(block, "_id"), {}).get("props", {}).pop("value", None)


# ---- the queue ----


class Messages(OrderedDict[str, Any]):
    """By session, of the newest `most` sessions. Nobody takes those to a session that is not kept.

    Gradio's one loop would end for good where it has a message for one: because it is named "", or its visitor left at
    the wrong moment, or 2,000 others came.
    """

    most = 2_000

    def __missing__(self, session: str) -> Any:
        return asyncio.Queue()

    def __setitem__(self, session: str, messages: Any) -> None:
        super().__setitem__(session, messages)
        self.move_to_end(session)
        while len(self) > self.most:
            self.popitem(last=False)


def guard_queue(demo: gr.Blocks, alone: str) -> None:
    """Have no call end the queue for all others; `alone` is said of what the browser does. Without, one may."""
    queue = private(demo, "_queue")
    push = private(queue, "push")
    if private(queue, "pending_messages_per_session") is not None:
        queue.pending_messages_per_session = Messages()

    async def named(body: Any, **more: Any) -> Any:
        event = functions(demo).get(body.fn_index)
        if body.fn_index is None:
            raise UnknownName(body.fn_index)
        if event and not private(event, "fn", True):
            return False, alone, "error"
        body.session_hash = body.session_hash or None  # a call without a session is one by itself, with its own limits
        return await push(body=body, **more)

    if push:
        queue.push = named


def has_messages(demo: gr.Blocks, session: str | None, event: str | None) -> bool:
    """Whether there are any for a session or an event. Without, yes: Gradio notices once the stream has begun."""
    queue = private(demo, "_queue")
    by_session = private(queue, "pending_messages_per_session")
    if by_session is None:
        return True
    if event is None:
        return session is None or session in by_session
    waiting = any(event in events for events in private(queue, "pending_event_ids_session", {}).values())
    return waiting or event in private(queue, "event_ids_to_events", ()) or event in by_session


# ---- the page and its files ----

APP = b"<gradio-app"  # the element that the page is mounted in; without, there is no first screen before it
METAS = re.compile(rb"""\s*<meta\s+(?:property|name)="(?:og|twitter):[^>]*>|\s*<title>[^<]*</title>""")
ROOT = re.compile(rb'"root":"(https?://[^"\\\s<>]+)"')  # else the preview has a relative address
FRONTEND = Path(gr.__file__).parent / "templates" / "frontend"
ENTRY = re.compile(r"assets/(index-[\w-]+\.js)")
IMPORTED = re.compile(r'"\./([\w-]+\.js)"')


def address_in(page: bytes) -> str:
    """The page's own address, as a proxy names it; "" where Gradio writes none."""
    root = ROOT.search(page)
    return root[1].decode("latin-1").rstrip("/") if root else ""


def with_head(page: bytes, tags: bytes) -> bytes:
    """With these tags in place of Gradio's; without a head it is as it was."""
    head, end, rest = page.partition(b"</head>")
    return METAS.sub(b"", head) + tags + b"\n" + end + rest if end else page


def before_app(page: bytes, screen: bytes) -> bytes:
    return page.replace(APP, screen + APP, 1)


@cache
def scripts() -> list[str]:
    """Of Gradio's scripts, in its folder `assets`, those that the page waits for, the entry first.

    Its modules name each other, and a browser finds each level only after it has read the one before. Where another
    version is built otherwise, fewer are named, and the page is as it is, later.
    """
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


def font(name: str) -> bytes | None:
    """Of Gradio's own fonts; None, and the reader's own stands in."""
    path = FRONTEND / "static" / "fonts" / f"{name}.woff2"
    return path.read_bytes() if path.is_file() else None


class SwappedFont(gr.themes.LocalFont):
    """Gradio's own copy, served by the app. Until it has arrived, text stands in a font that is there.

    Its semi-bold lacks most letters, so 600 falls on the bold one.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name, weights=(400, 700))

    def stylesheet(self) -> dict[str, Any]:
        sheet = dict(super().stylesheet())
        css = (sheet.get("css") or "").replace("font-style: normal;", "font-style: normal; font-display: swap;")
        return sheet | {"css": css}
