"""What a request may bring: counted before Gradio reads it, and before anything of it is parsed.

JSON of a few megabytes can become gigabytes of objects. So what stands outside of its strings is counted as the bytes
come: a trace is one long string, and hardly anything else. Large bodies are also counted together, for as long as
anything holds them: a call waits in Gradio's queue with all that it brought.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from typing import ClassVar

from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope

from ..exposure import limits

# Only these take a trace. `queue/join` is where Gradio's own clients send every call, `component_server` the page.
TRACES = re.compile(r"/gradio_api/(call/(v2/)?(summarise|audit|explain)|queue/join|component_server)/?$")
# One long part each: of a class's run, and of a model's question, which may hold a short trace.
PARTS = re.compile(r"/class/teach$|/gradio_api/mcp(/|$)")
PART = 4_000_000  # bytes
MOST_MARKS, MOST_DEPTH = 20_000, 50  # brackets, commas and quotes of JSON, outside of its strings
SLOWEST = 120.0  # seconds that a body may take to come
TOGETHER, ALONE = 3, 2  # largest bodies at once, of all and of one address; Gradio's queue holds on to the last one
STRUCTURE = b"[]{},"
LONG_NUMBER = re.compile(rb"[0-9]{1000}")  # Python reads none of more than 4,300 digits
OTHERS = bytes(set(range(256)) - set(STRUCTURE))


class Refused(Exception):
    """A status, and one sentence that says what to do."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class Left(Exception):
    """Whoever asked has hung up."""


class Structure:
    """How many brackets, commas and strings JSON has, and how deep they stand, from its bytes in any pieces."""

    def __init__(self) -> None:
        self.marks = self.depth = 0
        self._inside = False  # of a string
        self._rest = b""  # of an escape that a piece cut

    def feed(self, piece: bytes) -> None:
        """Refused where it is too much, or in an encoding whose strings could not be told from the rest."""
        if b"\0" in piece:
            raise Refused(400, "Send JSON as UTF-8.")
        piece = (self._rest + piece).replace(b"\\\\", b"")
        self._rest = b"\\" if piece.endswith(b"\\") else b""
        parts = piece[: len(piece) - len(self._rest)].replace(b'\\"', b"").split(b'"')
        outside = b"".join(parts[self._inside :: 2])
        if LONG_NUMBER.search(outside):
            raise Refused(400, "The request holds a number of too many digits.")
        outside = outside.translate(None, OTHERS)
        self._inside ^= len(parts) % 2 == 0
        self.marks += len(outside) + len(parts) - 1
        if self.marks > MOST_MARKS:
            raise Refused(413, f"The request holds more than {MOST_MARKS // 4:,} values. Send a trace as one text.")
        for mark in outside:
            self.depth += (mark in b"[{") - (mark in b"]}")
            if self.depth > MOST_DEPTH:
                raise Refused(413, f"The request is nested more than {MOST_DEPTH} deep.")


class Weight:
    """Bytes of an address that count until nothing holds this object any more: it travels in the request's scope."""

    of: ClassVar[Counter[str]] = Counter()

    def __init__(self, address: str) -> None:
        self.address, self.bytes = address, 0

    def add(self, count: int) -> None:
        self.bytes += count
        self.of[self.address] += count

    def is_too_much(self) -> bool:
        """For all together; or for one address, which may not keep the others from sending theirs."""
        return self.of.total() > TOGETHER * limits().body or self.of[self.address] > ALONE * limits().body

    def __del__(self) -> None:
        self.of[self.address] -= self.bytes
        if self.of[self.address] <= 0:
            del self.of[self.address]


def most(path: str) -> int:
    """Bytes of a body for that path."""
    if TRACES.search(path):
        return limits().body
    return PART if PARTS.search(path) else limits().words


def brings(scope: Scope) -> bool:
    headers = Headers(scope=scope)
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


async def read(scope: Scope, receive: Receive) -> bytes:
    """The whole body. Refused where it is too much, Left where it does not come."""
    allowed, small = most(scope["path"]), limits().words
    said = Headers(scope=scope).get("content-length", "")
    if said.isascii() and said.isdigit() and (len(said) > 12 or int(said) > allowed):
        raise too_large(allowed)
    pieces, count, structure, weight = list[bytes](), 0, Structure(), Weight((scope.get("client") or ("",))[0])
    ends = time.monotonic() + SLOWEST
    while True:
        try:
            message = await asyncio.wait_for(receive(), ends - time.monotonic())
        except asyncio.TimeoutError:
            raise Refused(408, "The request took too long to come. Send it again, or a shorter one.") from None
        if message["type"] == "http.disconnect":
            raise Left
        piece = message.get("body", b"")
        count += len(piece)
        if count > allowed:
            raise too_large(allowed)
        structure.feed(piece)
        pieces.append(piece)
        if count > small:
            weight.add(count - weight.bytes)
            if weight.is_too_much():
                raise Refused(429, "Other large traces are being read. Send yours again in a few seconds.")
        if not message.get("more_body"):
            scope["specdec.weight"] = weight
            return b"".join(pieces)


def too_large(allowed: int) -> Refused:
    return Refused(413, f"The request is too large: send at most {allowed:,} bytes here.")


def again(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the body in one piece, and then what else comes: that the visitor left."""
    sent = False

    async def give() -> Message:
        nonlocal sent, body
        if sent:
            return await receive()
        sent, whole = True, body
        body = b""
        return {"type": "http.request", "body": whole, "more_body": False}

    return give
