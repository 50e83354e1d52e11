"""One request to a server and its answer, as it arrives: bounded in time and size, whatever the server does.

A thread of its own reads, so that a line's time is when it came, however late it is looked at.
"""

from __future__ import annotations

import contextlib
import json
import queue
import socket
import ssl
import threading
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx

from ..types import TranslatableText
from .base import ServerError

BUSY = (429, 502, 503)  # a gateway's way of saying: a little later
PORTS = {"http": 80, "https": 443}
LOOK = 0.25  # seconds between two looks at `left`
MAX_SAID = 120  # characters of what a server says of an error


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds to connect, to the first word of an answer, and between two; bytes of a line and of a whole answer.

    `left`, set by whoever waits no longer, hangs up even while the server is silent.
    """

    connect: float = 10.0
    first: float = 120.0
    silence: float = 60.0
    line: int = 4_000_000
    whole: int = 64_000_000
    attempts: int = 3
    pause: float = 0.5
    left: threading.Event | None = None


class Client:
    """The way to one server. `ip` is the only address that it may have, whatever its name comes to mean."""

    def __init__(self, origin: str, key: str = "", limits: Limits | None = None, ip: str | None = None) -> None:
        self.limits, self._origin, self._key, self._ip = limits or Limits(), origin, key, ip
        self._trusted = ssl.create_default_context()  # the system's authorities, or SSL_CERT_FILE's
        if not (key.isascii() and key.isprintable()):
            raise ServerError("The key holds a character that cannot be sent. Copy it again.")

    def ask(self, path: str, body: dict[str, Any] | None = None) -> Any:
        """The JSON at `path`, posted if there is a body. ServerError for anything else."""
        return parsed(b"".join(block for block, _ in self._answer(path, body)))

    def text(self, path: str) -> str:
        return b"".join(block for block, _ in self._answer(path, None)).decode(errors="replace")

    def events(self, path: str, body: dict[str, Any]) -> Iterator[tuple[Any, float]]:
        """Each server-sent event's JSON, and when it came, in seconds since the request; ends with [DONE].

        https://html.spec.whatwg.org/multipage/server-sent-events.html. Closing the iterator hangs up.
        """
        with contextlib.closing(self._lines(path, body)) as lines:
            held: list[bytes] = []
            for line, at in lines:
                if line.startswith(b"data:"):
                    held.append(line[5:].strip())
                elif not line and held:
                    data, held = b"\n".join(held), []
                    if data == b"[DONE]":
                        return
                    yield self._sound(parsed(data)), at
        raise ServerError("The server broke off in the middle of its answer.")

    def _sound(self, data: Any) -> Any:
        if isinstance(data, dict) and "error" in data:
            raise ServerError("The server stopped with an error: {said}", said=self._excerpt(data))
        return data

    def _lines(self, path: str, body: dict[str, Any]) -> Generator[tuple[bytes, float], None, None]:
        rest = b""
        with contextlib.closing(self._answer(path, body)) as blocks:
            for block, at in blocks:
                *lines, rest = (rest + block).split(b"\n")
                if max(map(len, (*lines, rest))) > self.limits.line:
                    raise ServerError("The server sent a line of more than {limit} bytes.", limit=self.limits.line)
                for line in lines:
                    yield line.removesuffix(b"\r"), at

    def _answer(self, path: str, body: dict[str, Any] | None) -> Generator[tuple[bytes, float], None, None]:
        """The blocks of the body, tried again where nothing of it has come."""
        for attempt in range(1, self.limits.attempts + 1):
            call = _Call(self._client(), "GET" if body is None else "POST", self._origin + path, body, self.limits)
            try:
                response = call.response()
                if response.status_code in BUSY and attempt < self.limits.attempts:
                    raise httpx.ConnectError("busy")
                self._check(response, call)
                yield from call.blocks()
                return
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                if attempt == self.limits.attempts or "SSL" in str(error):
                    raise ServerError(trouble(error)) from None
                time.sleep(self.limits.pause)
            except httpx.HTTPError as error:
                raise ServerError(trouble(error)) from None
            finally:
                call.hang_up()

    def _client(self) -> httpx.Client:
        # No proxy, no netrc, no redirect: a request goes where it was sent.
        headers = {"Accept-Encoding": "identity"} | ({"Authorization": f"Bearer {self._key}"} if self._key else {})
        return httpx.Client(
            headers=headers,
            timeout=httpx.Timeout(self.limits.first, connect=self.limits.connect),
            transport=_Pinned(self._ip, verify=self._trusted, trust_env=False),
            trust_env=False,
            follow_redirects=False,
        )

    def _check(self, response: httpx.Response, call: _Call) -> None:
        status = response.status_code
        if 200 <= status < 300:
            if response.headers.get("content-encoding", "identity") != "identity":
                raise ServerError("The server sent compressed data, which was not asked for.")
            return
        if 300 <= status < 400:
            raise ServerError("The server sends requests on to another address. Give that address itself.")
        if status in (401, 403):
            raise ServerError("The server wants another key (status {status}).", status=status)
        said = b""
        for block, _ in call.blocks():
            said += block
            if len(said) > 10_000:
                break
        try:
            told = self._excerpt(json.loads(said))
        except (ValueError, RecursionError):
            told = ""
        if told:
            raise ServerError("The server refused (status {status}): {said}", status=status, said=told)
        raise ServerError("The server answered with status {status}.", status=status)

    def _excerpt(self, data: Any) -> str:
        """What the server says of its error: a few plain characters, and never the key."""
        data = data.get("error", data) if isinstance(data, dict) else data
        data = data.get("message", "") if isinstance(data, dict) else data
        text = data if isinstance(data, str) else ""
        if self._key and self._key in text:
            return "(it repeats the key)"
        plain = "".join(c if c.isprintable() and c not in "<>" else " " for c in text[: 4 * MAX_SAID])
        plain = " ".join(plain.split())
        return plain if len(plain) <= MAX_SAID else plain[:MAX_SAID] + "…"


class _Call:
    """One request in its own thread."""

    def __init__(self, http: httpx.Client, method: str, url: str, body: dict[str, Any] | None, limits: Limits) -> None:
        self._http, self._limits = http, limits
        self._request = http.build_request(method, url, json=body)
        self._came: queue.SimpleQueue[httpx.Response | tuple[bytes, float] | Exception | None] = queue.SimpleQueue()
        self._response: httpx.Response | None = None
        self._hung_up = False
        self._sent = self._heard = time.perf_counter()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        try:
            with contextlib.closing(self._http.send(self._request, stream=True)) as response:
                self._response = response
                self._came.put(response)
                size = 0
                for block in response.iter_raw():
                    if self._hung_up:
                        return
                    size += len(block)
                    if size > self._limits.whole:
                        raise ServerError("The server sent more than {limit} bytes.", limit=self._limits.whole)
                    self._came.put((block, time.perf_counter() - self._sent))
            self._came.put(None)
        except Exception as error:
            self._came.put(error)

    def _next(self, patience: float) -> Any:
        left, until = self._limits.left, self._heard + patience
        while True:
            if left is not None and left.is_set():
                raise ServerError("Nobody waits for the server's answer any more.")
            rest = max(0.0, until - time.perf_counter())
            with contextlib.suppress(queue.Empty):
                item = self._came.get(timeout=rest if left is None else min(rest, LOOK))
                break
            if time.perf_counter() >= until:
                raise ServerError("The server was silent for {seconds:g} seconds.", seconds=patience)
        if isinstance(item, Exception):
            raise item
        return item

    def response(self) -> httpx.Response:
        response = self._next(self._limits.first)
        assert isinstance(response, httpx.Response)
        return response

    def blocks(self) -> Iterator[tuple[bytes, float]]:
        patience = self._limits.first
        while (item := self._next(patience)) is not None:
            block, at = item
            yield block, at
            if not keeps_alive(block):
                patience, self._heard = self._limits.silence, self._sent + at

    def hang_up(self) -> None:
        """Whoever reads is woken, and the server sees that nobody listens."""
        self._hung_up = True
        if self._response is not None:
            wire = self._response.extensions.get("network_stream")
            with contextlib.suppress(Exception):
                wire.get_extra_info("socket").shutdown(socket.SHUT_RDWR)  # type: ignore[union-attr]
        with contextlib.suppress(Exception):
            self._http.close()


class _Pinned(httpx.HTTPTransport):
    """Connects to that address alone; the name still goes into the request and the certificate's check."""

    def __init__(self, ip: str | None, **settings: Any) -> None:
        super().__init__(**settings)
        self._ip = ip

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if self._ip is not None:
            request.extensions["sni_hostname"] = request.url.host
            request.url = request.url.copy_with(host=self._ip)
        return super().handle_request(request)


def origin(address: str) -> str:
    """`http://host:port` of what a person typed; a path that all of these servers share (/v1) may stand after it.

    ServerError where it is no address, or holds a name and password.
    """
    try:
        parts = urlsplit(address.strip())
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in ("http", "https") or not parts.hostname or not parts.netloc.isprintable():
        raise ServerError("A server's address begins with http:// or https://, as in http://127.0.0.1:8000.")
    if "@" in parts.netloc:
        raise ServerError("The address must not hold a name or password. A key has its own place.")
    if parts.path.strip("/") not in ("", "v1") or parts.query or parts.fragment:
        raise ServerError("Give the server's address alone, without a path: as in http://127.0.0.1:8000.")
    port = None if port == PORTS[parts.scheme] else port
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}" + (f":{port}" if port is not None else "")


def parsed(data: bytes) -> Any:
    try:
        return json.loads(data.decode(errors="replace"))
    except (ValueError, RecursionError):
        raise ServerError("The server's answer is not the JSON that it should be.") from None


def keeps_alive(block: bytes) -> bool:
    """Whether it is only a comment, which says no more than that the line is open."""
    return all(not line.strip() or line.startswith(b":") for line in block.split(b"\n"))


def trouble(error: Exception) -> TranslatableText:
    text = str(error)
    if "CERTIFICATE_VERIFY_FAILED" in text:
        return TranslatableText("The server's certificate is not trusted. Name its authority's file in SSL_CERT_FILE.")
    if "SSL" in text:
        return TranslatableText("The server does not speak TLS as https:// wants it. Is it http://?")
    if isinstance(error, httpx.ConnectTimeout):
        return TranslatableText("The server cannot be reached: nobody answers at this address.")
    if isinstance(error, httpx.ConnectError):
        return TranslatableText("The server cannot be reached. Is it running, and is the address right?")
    if isinstance(error, httpx.TimeoutException):
        return TranslatableText("The server was silent for too long.")
    return TranslatableText("The server broke off in the middle of its answer.")
