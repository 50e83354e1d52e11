"""A real HTTP server on a free port of this machine, which answers as it is told: recordings, or mischief."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PAYLOADS = Path(__file__).parent / "payloads"
NO_TEMPLATE = (  # what vLLM answers, as read in its source
    "As of transformers v4.44, default chat template is no longer allowed, so you must provide a chat template if the "
    "tokenizer does not define one."
)
CLOSE = None  # among the blocks of an answer: the socket is closed there


@dataclass
class Reply:
    """`blocks` are sent one by one, as chunks unless a length is among the headers; a number waits for seconds."""

    blocks: Iterable[bytes | float | None] = ()
    status: int = 200
    type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, data: Any, status: int = 200) -> Reply:
        return cls([json.dumps(data).encode()], status)

    @classmethod
    def stream(cls, events: Iterable[Any]) -> Reply:
        """Server-sent events; what is not a JSON value (bytes, numbers, CLOSE) goes as it is."""
        return cls([x if isinstance(x, bytes | float | None) else sse(x) for x in events], type="text/event-stream")


def sse(event: Any) -> bytes:
    return b"data: " + (event.encode() if isinstance(event, str) else json.dumps(event).encode()) + b"\n\n"


@dataclass
class Asked:
    method: str
    path: str
    body: Any
    headers: dict[str, str]


class Stub:
    def __init__(self, answer: Callable[[Asked], Reply], tls: ssl.SSLContext | None = None) -> None:
        self.asked = asked = list[Asked]()
        self.hung_up = hung_up = threading.Event()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                length = int(self.headers.get("content-length", 0))
                body = json.loads(self.rfile.read(length)) if length else None
                asked.append(
                    Asked(self.command, self.path, body, {name.lower(): value for name, value in self.headers.items()})
                )
                reply = answer(asked[-1])
                self.close_connection = True
                sized = "content-length" in reply.headers
                headers = {"content-type": reply.type, "connection": "close"}
                headers |= {} if sized else {"transfer-encoding": "chunked"}
                with contextlib.suppress(OSError):
                    self.send_response(reply.status)
                    for name, value in (headers | reply.headers).items():
                        self.send_header(name, value)
                    self.end_headers()
                    for block in reply.blocks if self.command != "HEAD" else ():
                        if block is CLOSE:
                            self.connection.shutdown(socket.SHUT_RDWR)
                            return
                        if isinstance(block, float):
                            time.sleep(block)
                        else:
                            self.wfile.write(block if sized else b"%x\r\n%s\r\n" % (len(block), block))
                    self.wfile.write(b"" if sized else b"0\r\n\r\n")
                    return
                hung_up.set()

            do_POST = do_HEAD = do_GET

            def log_message(self, *_: Any) -> None:
                return

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: Any) -> None:
                return

        self._server = Quiet(("127.0.0.1", 0), Handler)
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.address = f"http{'s' if tls else ''}://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Stub:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def recording(name: str) -> dict[str, Any]:
    return json.loads((PAYLOADS / f"{name}.json").read_text(encoding="utf-8"))


def replay(name: str) -> Stub:
    """The server of that recording: it knows the requests that were made of it, and no other.

    Of the same request made twice, it gives the answer that came next.
    """
    calls = recording(name)["calls"]
    place = -1

    def answer(asked: Asked) -> Reply:
        nonlocal place
        if asked.path == "/tokenize" and "messages" in asked.body:
            return Reply.of({"error": {"message": NO_TEMPLATE, "type": "BadRequestError", "code": 400}}, 400)
        for number in (*range(place + 1, len(calls)), *range(place + 1)):
            call = calls[number]
            if (call["method"], call["path"], call["body"]) == (asked.method, asked.path, asked.body):
                place = number
                return Reply([block.encode() for block in call["blocks"]], call["status"], call["type"])
        return Reply.of({"error": f"nothing was recorded for {asked.path}"}, 404)

    return Stub(answer)


def lines(blocks: Iterable[bytes]) -> Iterator[str]:
    """Whole events, however the network cut them."""
    text = b"".join(blocks).decode()
    yield from (part + "\n\n" for part in text.split("\n\n") if part) if text.startswith("data:") else [text]
