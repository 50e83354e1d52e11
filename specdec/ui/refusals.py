"""What is asked for wrongly is refused with a status of 4xx and a quiet sentence; what breaks here stays a 500.

Nobody's prompt belongs into a log: not that of a call that lacks an argument, nor where one is of a wrong type, nor
where our own code breaks over it.
"""

from __future__ import annotations

import functools
import json
import logging
import re
import traceback
from typing import Any

import gradio as gr
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import QueryParams
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .bodies import again
from .gradio_private import arguments, Blocks, demo_of, functions, has_messages, Unfit, UnknownName
from .text import ENGLISH, LANGUAGES, speaking, strings

log = logging.getLogger(__name__)
# Of Gradio's doors those that this page has no use for: it keeps uploaded files for half an hour, so anybody could fill
# the disk; it fetches what a stranger names; it has tools for whoever writes a page.
CLOSED = re.compile(
    r"(/gradio_api)?/"
    r"(upload|proxy=|vibe-|undo-vibe-edit|process_recording|run-history|profiling|monitoring|custom_component/)"
)
CALL = re.compile(r"/gradio_api/(call/v2|call|run|api)/([^/]+)/?")  # by name; `run` and `api` go beside the queue
STREAM = re.compile(r"/gradio_api/(?:queue/data|call/[^/]+/([^/]+))/?")  # of messages, to a session or to one call
MARK = "specdec.refused"  # in the scope of a call that was refused


class Page(Blocks):
    """A page whose log tells what happened to a call, and not what was in it."""

    def failure(self, error: Exception | None, language: str, scope: dict[str, Any]) -> gr.Error:
        refused = error is None or isinstance(error, Unfit)
        if refused:
            scope.get(MARK, []).append(True)
            log.warning("a call was refused: %s", error or "it has no function here")
        elif error:
            log.error("a call broke: %s", without_words(error))
        with speaking(language if language in LANGUAGES else ENGLISH):
            return gr.Error(strings("page")["errors"]["arguments" if refused else "broke"], print_exception=False)

    @functools.cached_property
    def arguments(self) -> dict[str, dict[str, bool]]:
        return arguments(self)


def without_words(error: BaseException) -> str:
    """What broke and where, but not what the error says: that may be the visitor's own words."""
    inner = "".join(map(without_words, getattr(error, "exceptions", ())))
    return f"{type(error).__name__}\n{''.join(traceback.format_tb(error.__traceback__))}{inner}"


class Refusals:
    """Middleware: files are not taken, and a call that is of no use is no failure of ours.

    Gradio breaks over names of functions, arguments and sessions that it does not know, and answers 500 whatever ends
    a call beside the queue.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"] if scope["type"] == "http" else ""
        answer: ASGIApp = self.app
        if CLOSED.match(path):
            answer = PlainTextResponse("Nothing is served here. The page reads files in the browser.", 404)
        elif scope.get("method") == "GET" and (found := STREAM.fullmatch(path)):
            session = QueryParams(scope["query_string"]).get("session_hash")
            if not has_messages(demo_of(scope["app"]), session, found[1]):
                answer = gone()
        elif scope.get("method") == "POST" and (found := CALL.fullmatch(path)):
            kind, name = found.groups()
            body = (await receive()).get("body", b"")  # in one piece, as `doors.py` gives it
            receive = again(body, receive)
            demo = demo_of(scope["app"])
            needed = demo.arguments if demo else {}
            names = {one.api_name for one in functions(demo).values()} or needed.keys()
            # Where Gradio tells no names, it finds out by itself.
            if names and name not in names and (kind.startswith("call") or numbers_none(body)):
                answer = unknown()
            elif kind == "call/v2" and not fits(body, needed.get(name)):
                answer = unreadable()
            elif not kind.startswith("call"):
                refused = scope[MARK] = list[bool]()

                async def tell(message: Message) -> None:
                    wrong = refused and message["type"] == "http.response.start"
                    await send({**message, "status": 422} if wrong else message)

                await self.app(scope, receive, tell)
                return
        await answer(scope, receive, send)


def numbers_none(body: bytes) -> bool:
    """Whether the call names no function by its number, either."""
    try:
        sent = json.loads(body)
    except ValueError:
        return False  # Gradio says so
    return isinstance(sent, dict) and sent.get("fn_index") is None


def fits(body: bytes, arguments: dict[str, bool] | None) -> bool:
    """Whether the call names arguments that there are, and all that it has to. Without any told it may."""
    if arguments is None:
        return True
    try:
        sent = json.loads(body)
    except ValueError:
        return False
    needed = {name for name, has_default in arguments.items() if not has_default}
    return isinstance(sent, dict) and needed <= sent.keys() <= {*arguments, "oauth_token"}


def gone() -> Response:
    """As Gradio tells it: its page reads the message, whatever the status."""
    said = {"message": "There is no such call, or no such session.", "success": False, "session_not_found": True}
    told = json.dumps({"msg": "unexpected_error", **said}, separators=(",", ":"))
    return Response(f"event: error\ndata: {told}\n\n", 404, media_type="text/event-stream")


def unreadable(*_: Any) -> JSONResponse:
    return JSONResponse({"detail": "The request cannot be read. See /?view=api for what is expected."}, 422)


def unknown(*_: Any) -> JSONResponse:
    return JSONResponse({"detail": "There is nothing of that name. See /?view=api for what there is."}, 404)


HANDLERS = {RequestValidationError: unreadable, UnknownName: unknown}
