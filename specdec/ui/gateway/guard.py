"""Admit requests by their host name, path, size and speed."""

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
from .visitors import address_of

HOSTS = "SPECDEC_HOSTS"
PROXIES = "SPECDEC_PROXIES"
PROXIES_OF_A_SPACE = "10.0.0.0/8,100.64.0.0/10,127.0.0.0/8,172.16.0.0/12,192.168.0.0/16"
# Gradio would store uploads for half an hour, so anybody could fill the disk. The page does not use its proxy.
# A development server's page waits for changes, for ever. A longer path than any of ours is no name of a file.
CLOSED = re.compile(r"(/gradio_api)?/(upload|proxy=|dev/)|.{1000}", re.DOTALL)
AT_ONCE = 2  # how many bodies of the largest size one address may send at the same time
GRACE_S = 5.0  # the first seconds of a body, in which it can be slow
LEAST_BYTES_PER_S = 50_000  # minimum speed of a body after GRACE_S
MOST_STRINGS = 10_000  # strings in JSON
MOST_BETWEEN_STRINGS = 50_000  # bytes of JSON outside of strings: numbers, brackets and commas


class Guard:
    """Middleware that reads a request's body first, and refuses one that exceeds a limit."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.receiving: Counter[str] = Counter()  # address -> bytes of its incomplete bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer: ASGIApp = self.app
        if scope["type"] == "http":
            try:
                receive = await self.admit(scope, receive)
            except HTTPException as refusal:
                answer = JSONResponse({"detail": refusal.detail}, refusal.status_code, {"Connection": "close"})
        await answer(scope, receive, send)

    async def admit(self, scope: Scope, receive: Receive) -> Receive:
        """Return the `receive` from which the app reads the body. Raises HTTPException."""
        headers = Headers(scope=scope)
        if CLOSED.match(scope["path"]):
            raise HTTPException(404, "Nothing is served here. The page reads files in the browser.")
        if "transfer-encoding" not in headers and headers.get("content-length", "0") == "0":
            return receive
        bodies = [await self.read_body(receive, address_of(scope))]

        async def replay() -> Message:
            return {"type": "http.request", "body": bodies.pop()} if bodies else await receive()

        return replay

    async def read_body(self, receive: Receive, address: str) -> bytes:
        """Read the whole body. Raises HTTPException if it exceeds a limit or breaks off."""
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
            self.receiving += Counter()  # removes the addresses whose count is 0
        body = b"".join(pieces)
        check_structure(body)
        return body


def check_structure(body: bytes) -> None:
    """Raise HTTPException for JSON that would become gigabytes. A trace passes: it is one string."""
    if b"\0" in body:  # UTF-16 or UTF-32, whose quotes are not single bytes
        raise HTTPException(400, "Send JSON as UTF-8.")
    body = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    if body.count(b'"') > 2 * MOST_STRINGS:
        raise HTTPException(413, f"The request holds more than {MOST_STRINGS:,} strings. Send a trace as one text.")
    if sum(map(len, body.split(b'"')[::2])) > MOST_BETWEEN_STRINGS:
        raise HTTPException(413, "The request holds too many values. Send a trace as one text.")


def allowed_hosts(listening: str) -> list[str]:
    """List the host names that are answered, against DNS rebinding; any if strangers may visit."""
    if limits().any_host:
        return ["*"]
    hostname = socket.gethostname()
    listed = os.environ.get(HOSTS, "").split(",")
    names = ("localhost", "127.0.0.1", "::1", "[::1]", hostname, f"{hostname}.local", listening, *listed)
    return [name.strip().lower() for name in names if name.strip()]


def trusted_proxies() -> str:
    """List the proxies whose X-Forwarded-For and -Proto are trusted."""
    named = os.environ.get(PROXIES, PROXIES_OF_A_SPACE if SPACE in os.environ else "")
    return ",".join(str(ipaddress.ip_network(name.strip(), False)) for name in named.split(",") if name.strip())
