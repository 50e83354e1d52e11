"""Which requests are let in: under which name, where to, how large, and how fast.

JSON of a few megabytes can become gigabytes of objects. So what stands outside of its strings is measured before
anything is parsed: a trace is one long string, and hardly anything else.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import re
import socket
import time
from collections import Counter

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...exposure import limits, SPACE
from .visitors import network_of

HOSTS = "SPECDEC_HOSTS"
PROXIES = "SPECDEC_PROXIES"
PROXIES_OF_A_SPACE = "10.0.0.0/8,100.64.0.0/10,127.0.0.0/8,172.16.0.0/12,192.168.0.0/16"
# Gradio would keep uploaded files for half an hour, so anybody could fill the disk; and fetch what a stranger names.
CLOSED = re.compile(r"(/gradio_api)?/(upload|proxy=)")
AT_ONCE = 2  # largest bodies that one address may send at the same time
GRACE_S = 5.0
LEAST_BYTES_PER_S = 50_000  # of a body, after GRACE_S
MOST_STRINGS = 10_000  # of JSON
MOST_BETWEEN_STRINGS = 50_000  # bytes of JSON: its numbers, brackets and commas


class Guard:
    """Middleware that reads a request's body before the app does."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.receiving: Counter[str] = Counter()  # bytes of bodies that have not come whole yet, by address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            receive = await self.admit(scope, receive)
        except HTTPException as refusal:  # its detail says what to do
            response = JSONResponse({"detail": refusal.detail}, refusal.status_code, {"Connection": "close"})
            await response(scope, receive, send)
            return
        await self.app(scope, receive, send)

    async def admit(self, scope: Scope, receive: Receive) -> Receive:
        """Return the `receive` that the app gets its body from. HTTPException where the request is not let in."""
        headers = Headers(scope=scope)
        if CLOSED.match(scope["path"]):
            raise HTTPException(404, "Nothing is served here. The page reads files in the browser.")
        if "transfer-encoding" not in headers and headers.get("content-length", "0") == "0":
            return receive
        address = network_of((scope.get("client") or ("",))[0])
        return replaying(await self.read_body(receive, address), receive)

    async def read_body(self, receive: Receive, address: str) -> bytes:
        """Read the whole body. HTTPException where it is too large, too slow, or JSON of too many parts."""
        most, pieces, size, began = limits().body, list[bytes](), 0, time.monotonic()
        try:
            while True:
                try:
                    message = await asyncio.wait_for(receive(), GRACE_S)
                except asyncio.TimeoutError:
                    message = {"type": "nothing", "more_body": True}
                if message["type"] == "http.disconnect":
                    raise HTTPException(400, "The request broke off.")
                piece = message.get("body", b"")
                pieces.append(piece)
                size += len(piece)
                self.receiving[address] += len(piece)
                if size > most:
                    raise HTTPException(413, f"The request is too large: send at most {most:,} bytes.")
                if self.receiving[address] > AT_ONCE * most:
                    raise HTTPException(429, "Other large requests of yours are coming in. Send this one after them.")
                if size < LEAST_BYTES_PER_S * (time.monotonic() - began - GRACE_S):
                    raise HTTPException(408, "The request came too slowly. Send it again, or a shorter one.")
                if not message.get("more_body"):
                    break
        finally:
            self.receiving[address] -= size
            if not self.receiving[address]:
                del self.receiving[address]
        body = b"".join(pieces)
        check_structure(body)
        return body


def check_structure(body: bytes) -> None:
    """Raise HTTPException for JSON that would become too many objects."""
    if b"\0" in body:  # as UTF-16 and UTF-32 have it, whose quotes are not bytes of their own
        raise HTTPException(400, "Send JSON as UTF-8.")
    body = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    if body.count(b'"') > 2 * MOST_STRINGS:
        raise HTTPException(413, f"The request holds more than {MOST_STRINGS:,} strings. Send a trace as one text.")
    if sum(map(len, body.split(b'"')[::2])) > MOST_BETWEEN_STRINGS:
        raise HTTPException(413, "The request holds too many values. Send a trace as one text.")


def replaying(body: bytes, receive: Receive) -> Receive:
    """Make a `receive` that gives the body in one piece, and then whatever else comes: that the visitor left."""
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return first.pop() if first else await receive()

    return replay


def allowed_hosts(listening: str) -> list[str]:
    """List the names that the page answers to; any name, where all visitors are strangers anyway.

    A name that a stranger's page was served under may come to mean this machine (DNS rebinding). To pages that stay
    under other names, Gradio's `strict_cors` and FastAPI's strict content types give no answer.
    """
    if limits().any_host:
        return ["*"]
    here = socket.gethostname()
    listed = os.environ.get(HOSTS, "").split(",")
    names = ("localhost", "127.0.0.1", "::1", "[::1]", here, f"{here}.local", listening, *listed)
    return [name.strip().lower() for name in names if name.strip()]


def trusted_proxies() -> str:
    """List the proxies whose X-Forwarded-For and -Proto are believed: those that the owner names, or a Space's."""
    named = os.environ.get(PROXIES, PROXIES_OF_A_SPACE if SPACE in os.environ else "")
    return ",".join(str(ipaddress.ip_network(one.strip(), False)) for one in named.split(",") if one.strip())
