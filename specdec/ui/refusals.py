"""What Gradio would answer with a 500, or write into the log with all that it holds, is refused with a quiet sentence.

Nobody's prompt belongs into a log: not that of a call that lacks an argument, nor where one is of a wrong type.
"""

from __future__ import annotations

import logging
from typing import Any

import gradio as gr
from fastapi.exceptions import RequestValidationError
from gradio.route_utils import FnIndexInferError
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .text import ENGLISH, LANGUAGES, speaking, strings

log = logging.getLogger(__name__)
UPLOAD = "/gradio_api/upload"
DIRECT = ("/gradio_api/run/", "/gradio_api/api/")  # calls beside the queue


class Blocks(gr.Blocks):
    """A page whose log tells of a call that was refused, and not what was in it."""

    async def preprocess_data(self, block_fn: Any, *asked: Any, **named: Any) -> Any:
        try:
            return await super().preprocess_data(block_fn, *asked, **named)
        except Exception as error:
            log.warning("a call was refused: %s", type(error).__name__)
            with speaking(block_fn.page if block_fn.page in LANGUAGES else ENGLISH):
                raise gr.Error(strings("page")["errors"]["arguments"], print_exception=False) from None


class Refusals:
    """Middleware: files are not taken, and what a call beside the queue refuses is no failure of ours.

    The page reads files in the browser. Gradio keeps whatever is uploaded for half an hour, so anybody could fill the
    disk.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith(UPLOAD):
            await PlainTextResponse("Files are not taken here.", 404)(scope, receive, send)
            return

        async def tell(message: Message) -> None:
            refused = message["type"] == "http.response.start" and message["status"] == 500
            await send({**message, "status": 422} if refused else message)

        direct = scope["type"] == "http" and scope["path"].startswith(DIRECT)
        await self.app(scope, receive, tell if direct else send)


async def unreadable(request: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"detail": "The request cannot be read. See /?view=api for what is expected."}, 422)


async def unknown(request: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"detail": "There is nothing of that name. See /?view=api for what there is."}, 404)


HANDLERS = {RequestValidationError: unreadable, FnIndexInferError: unknown, KeyError: unknown}
