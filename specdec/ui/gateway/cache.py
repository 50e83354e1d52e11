"""Cache the answers that are the same for every visitor: the page of each language, its scripts and fonts.

Without the cache, Gradio renders a page of a megabyte and compresses about seventy files for each visitor, which takes
half a second of processor time.
"""

import asyncio
import gzip
from collections import OrderedDict
from collections.abc import Callable
from functools import partial

import brotli
from starlette.datastructures import Headers
from starlette.responses import FileResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .first import PICTURE, PREVIEW, with_first_screen
from .language import by_weight, LANGUAGE_AT

FOLDERS = ("/assets/", "/static/")  # a file here gets a new name when its content or Gradio changes
MOST_ANSWERS = 250  # the pages and their files are 80; visitors can add pages by invented host names
ENCODINGS: dict[str, Callable[[bytes], bytes]] = {"br": partial(brotli.compress, quality=9), "gzip": gzip.compress}
BYPASS = {"range", "if-none-match"}  # requests with these headers bypass the cache
# Gradio writes the page's own address into the page. It takes the address from these headers, which a proxy may set.
ADDRESS = ("host", "x-forwarded-host", "x-forwarded-proto", "x-gradio-server")


class Cache:
    """Middleware that stores compressed answers, and drops the least recently used ones.

    It also writes the first screen into the page, and serves the picture for previews of links.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.answers: OrderedDict[tuple[object, ...], tuple[bytes, dict[str, str]]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method, path = scope.get("method", ""), scope.get("path", "")
        headers = Headers(scope=scope) if scope["type"] == "http" else Headers()
        is_page = path in LANGUAGE_AT and method in ("GET", "HEAD")
        is_file = path.startswith(FOLDERS) and method == "GET" and not BYPASS & {*headers}
        if path == PREVIEW and method in ("GET", "HEAD"):
            await FileResponse(PICTURE, headers={"Cache-Control": "max-age=86400"})(scope, receive, send)
        elif is_page and method == "HEAD":
            # Answer at once: when Gradio starts, it checks its page by HEAD, and waits three seconds at most.
            await Response(media_type="text/html")(scope, receive, send)
        elif is_page or is_file:
            await (await self.answer(scope, headers))(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def answer(self, scope: Scope, headers: Headers) -> Response:
        path, accepted = scope["path"], by_weight(headers.get("accept-encoding", ""))
        encoding = next((name for name in ENCODINGS if name in accepted), "")
        language = LANGUAGE_AT.get(path)
        key = (path, encoding, *((scope["scheme"], *map(headers.get, ADDRESS)) if language else ()))
        if key not in self.answers:
            status, body, fields = await self.ask(scope)
            if status != 200:
                return Response(body, status, fields)
            if language:
                body = with_first_screen(body, language)
            if encoding:
                body = await asyncio.to_thread(ENCODINGS[encoding], body)  # a page takes a tenth of a second
                fields = {**fields, "content-encoding": encoding}
            self.answers[key] = body, {**fields, "vary": "Accept-Encoding"}
            if len(self.answers) > MOST_ANSWERS:
                self.answers.popitem(last=False)
        self.answers.move_to_end(key)
        body, fields = self.answers[key]
        return Response(body, headers=fields)

    async def ask(self, scope: Scope) -> tuple[int, bytes, dict[str, str]]:
        """Ask the app for an uncompressed answer, and return its status, body and headers.

        The app does not hear that the visitor leaves: it would end the answer, and others would get half of it.
        """
        messages = list[Message]()
        requests: list[Message] = [{"type": "http.request", "body": b"", "more_body": False}]

        async def receive() -> Message:
            return requests.pop() if requests else await asyncio.Future()  # waits until the app has answered

        async def listen(message: Message) -> None:
            messages.append(message)

        bare = [pair for pair in scope["headers"] if pair[0] != b"accept-encoding"]
        await self.app({**scope, "headers": bare}, receive, listen)
        start, *pieces = messages
        fields = {name: value for name, value in Headers(raw=start["headers"]).items() if name != "content-length"}
        return start["status"], b"".join(piece.get("body", b"") for piece in pieces), fields
