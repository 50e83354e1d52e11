"""What is asked for wrongly is refused with a status of 4xx and a quiet sentence; what breaks here stays a 500.

Nobody's prompt belongs into a log: not that of a call that lacks an argument, nor where one is of a wrong type, nor
where our own code breaks over it.
"""

from __future__ import annotations

import functools
import json
import logging
import os
import re
import traceback
from typing import Any

import gradio as gr
from fastapi.exceptions import RequestValidationError
from gradio.route_utils import FnIndexInferError
from gradio.server_messages import UnexpectedErrorMessage
from starlette.datastructures import QueryParams
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .bodies import again
from .text import ENGLISH, LANGUAGES, speaking, strings

log = logging.getLogger(__name__)
# Of Gradio's doors those that this page has no use for: it keeps uploaded files for half an hour, so anybody could fill
# the disk; it fetches what a stranger names; it has tools for whoever writes a page.
CLOSED = re.compile(
    r"(/gradio_api)?/"
    r"(upload|proxy=|vibe-|undo-vibe-edit|process_recording|run-history|profiling|monitoring|custom_component/)"
)
NAMED = "/gradio_api/call/v2/"
STREAM = re.compile(r"/gradio_api/(?:queue/data|call/[^/]+/([^/]+))/?")  # of messages, to a session or to one call
DIRECT = ("/gradio_api/run/", "/gradio_api/api/")  # calls beside the queue
MARK = "specdec.refused"  # in the scope of a call that was refused


class UnknownName(KeyError):
    """A visitor asked for a function or a component that is not there."""


class Known(dict[Any, Any]):
    """What Gradio looks up by the numbers that visitors send."""

    def __missing__(self, key: Any) -> Any:
        raise UnknownName(key)


class Refused(gr.Error):
    """A call is not of the kind that its function takes."""


class Blocks(gr.Blocks):
    """A page whose log tells what happened to a call, and not what was in it."""

    def launch(self, *settings: Any, **named: Any) -> Any:
        os.environ["FORWARDED_ALLOW_IPS"] = ""  # uvicorn would believe any program here; `doors.py` decides whom
        self.default_config.fns = Known(self.default_config.fns)
        self.default_config.blocks = Known(self.default_config.blocks)
        return super().launch(*settings, **named)

    @functools.cached_property
    def named(self) -> dict[str, dict[str, bool]]:
        """The arguments of each public function, and whether it has a value for one that is left out."""
        told = self.get_api_info()["named_endpoints"]
        return {
            path[1:]: {one["parameter_name"]: bool(one["parameter_has_default"]) for one in about["parameters"]}
            for path, about in told.items()
        }

    async def preprocess_data(self, block_fn: Any, *asked: Any, **named: Any) -> Any:
        try:
            return await super().preprocess_data(block_fn, *asked, **named)
        except Exception as error:
            log.warning("a call was refused: %s", type(error).__name__)
            raise said(Refused, "arguments", block_fn) from None

    async def process_api(self, block_fn: Any, inputs: list[Any], *more: Any, **named: Any) -> dict[str, Any]:
        try:
            if not block_fn.fn:  # the browser does it alone
                raise said(Refused, "arguments", block_fn)
            return await super().process_api(block_fn, inputs, *more, **named)
        except Refused:
            scope = getattr(getattr(named.get("request"), "request", None), "scope", {})
            scope.get(MARK, []).append(True)
            raise
        except gr.Error:
            raise
        except Exception as error:
            log.error("a call broke: %s", without_words(error))
            raise said(gr.Error, "broke", block_fn) from None
        finally:
            forget(block_fn, named.get("state"))


def forget(block_fn: Any, state: Any) -> None:
    """What was sent and answered. Gradio keeps it in the session for links to a state, which this page has not."""
    for block in (*block_fn.inputs, *block_fn.outputs) if state else ():
        state.config_values.get(block._id, {}).get("props", {}).pop("value", None)


def said(kind: type[gr.Error], sentence: str, block_fn: Any) -> gr.Error:
    with speaking(block_fn.page if block_fn.page in LANGUAGES else ENGLISH):
        return kind(strings("page")["errors"][sentence], print_exception=False)


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
            if not is_kept(scope, found[1]):
                answer = gone()
        elif path.startswith(NAMED) and scope["method"] == "POST":
            body = (await receive()).get("body", b"")  # in one piece, as `doors.py` gives it
            receive = again(body, receive)
            arguments = scope["app"].get_blocks().named.get(path.removeprefix(NAMED).rstrip("/"))
            if arguments is None:
                answer = unknown()
            elif not fits(body, arguments):
                answer = unreadable()
        elif path.startswith(DIRECT):
            refused = scope[MARK] = list[bool]()

            async def tell(message: Message) -> None:
                wrong = refused and message["type"] == "http.response.start"
                await send({**message, "status": 422} if wrong else message)

            await self.app(scope, receive, tell)
            return
        await answer(scope, receive, send)


def fits(body: bytes, arguments: dict[str, bool]) -> bool:
    """Whether the call names arguments that there are, and all that it has to."""
    try:
        sent = json.loads(body)
    except ValueError:
        return False
    needed = {name for name, has_default in arguments.items() if not has_default}
    return isinstance(sent, dict) and needed <= sent.keys() <= {*arguments, "oauth_token"}


def is_kept(scope: Scope, event: str | None) -> bool:
    """Whether there are messages for whom the stream is: Gradio notices only once it has begun, and breaks."""
    queue = scope["app"].get_blocks()._queue
    if event is None:
        asked = QueryParams(scope["query_string"]).get("session_hash")
        return asked is None or asked in queue.pending_messages_per_session
    waiting = any(event in events for events in queue.pending_event_ids_session.values())
    return waiting or event in queue.event_ids_to_events or event in queue.pending_messages_per_session


def gone() -> Response:
    """As Gradio tells it: its page reads the message, whatever the status."""
    told = UnexpectedErrorMessage(message="There is no such call, or no such session.", session_not_found=True)
    return Response(f"event: error\ndata: {told.model_dump_json()}\n\n", 404, media_type="text/event-stream")


def unreadable(*_: Any) -> JSONResponse:
    return JSONResponse({"detail": "The request cannot be read. See /?view=api for what is expected."}, 422)


def unknown(*_: Any) -> JSONResponse:
    return JSONResponse({"detail": "There is nothing of that name. See /?view=api for what there is."}, 404)


HANDLERS = {RequestValidationError: unreadable, FnIndexInferError: unknown, UnknownName: unknown}
