"""Send requests to a server and read its answers as they arrive, with limits on time and size."""

import contextlib
import json
import socket
import ssl
import threading
import time
from collections.abc import Generator, Iterator
from typing import Any

import httpx

from .answers import ServerError

CONNECT_RETRIES = 2
NO_REUSE = httpx.Limits(max_keepalive_connections=0)  # a new connection for each request
MAX_EXCERPT = 120  # most characters to quote of a server's error message
CONNECT_S = 10.0  # limited by httpx, which would count the other times anew with each byte
SILENCE_S = 120.0  # until an answer is complete, or until the next event of a stream
TOTAL_S = 3_600.0  # of all requests of a client together
ANSWER_BYTES = 16_000_000  # of each answer


class Client:
    """Sends requests to one server, and to no other: proxies, netrc and redirects are off."""

    def __init__(self, origin: str, key: str = "", total_s: float = TOTAL_S) -> None:
        if not (key.isascii() and key.isprintable()):
            raise ServerError("The key holds a character that cannot be sent. Copy it again.")
        self._key, self._total_s = key, total_s
        self._expired, self._due = threading.Event(), 0.0
        self._until = time.monotonic() + total_s
        trusted = ssl.create_default_context()  # the system's certificate authorities, or those in SSL_CERT_FILE
        self._http = httpx.Client(
            base_url=origin,
            headers={"Accept-Encoding": "identity"} | ({"Authorization": f"Bearer {key}"} if key else {}),
            timeout=httpx.Timeout(None, connect=CONNECT_S),
            transport=httpx.HTTPTransport(verify=trusted, trust_env=False, retries=CONNECT_RETRIES, limits=NO_REUSE),
            trust_env=False,
        )

    def ask(self, path: str, body: dict[str, Any] | None = None) -> Any:
        """Return the JSON at `path`; a `body` is sent as POST. Raises ServerError if that fails."""
        return parsed(self.read_bytes(path, body))

    def read_bytes(self, path: str, body: dict[str, Any] | None = None) -> bytes:
        return b"".join(block for block, _ in self._answer(path, body))

    def events(self, path: str, body: dict[str, Any]) -> Iterator[tuple[Any, float]]:
        """Yield the JSON of each server-sent event up to [DONE], and the seconds since the request."""
        rest = b""
        with contextlib.closing(self._answer(path, body)) as blocks:
            for block, at in blocks:
                *lines, rest = (rest + block).split(b"\n")
                for line in filter(lambda line: line.startswith(b"data:"), lines):
                    data = line[5:].strip()
                    if data == b"[DONE]":
                        return
                    event = parsed(data)
                    if isinstance(event, dict) and "error" in event:
                        raise ServerError(f"The server stopped with an error: {self._excerpt(event)}")
                    self._due = self._until  # while the caller has the event
                    yield event, at
                    self._wait()
        raise ServerError("The server broke off in the middle of its answer.")

    def _answer(self, path: str, body: dict[str, Any] | None) -> Generator[tuple[bytes, float], None, None]:
        sent, size = time.perf_counter(), 0
        with self._response(path, body) as response:
            self._check(response)
            for block in response.iter_raw():
                size += len(block)
                if size > ANSWER_BYTES:
                    raise ServerError(f"The server sent more than {ANSWER_BYTES} bytes.")
                yield block, time.perf_counter() - sent

    @contextlib.contextmanager
    def _response(self, path: str, body: dict[str, Any] | None) -> Iterator[httpx.Response]:
        """Send one request. Errors of httpx until the end of the `with` block become ServerErrors."""
        sockets, ended = list[socket.socket](), threading.Event()

        def connected(name: str, info: dict[str, Any]) -> None:
            if name.endswith(("connect_tcp.complete", "start_tls.complete")):
                sockets.append(info["return_value"].get_extra_info("socket"))

        self._wait()
        if time.monotonic() < self._until:
            self._expired.clear()
        threading.Thread(target=self._watch, args=(sockets, ended), daemon=True).start()
        method = "GET" if body is None else "POST"
        try:
            with self._http.stream(method, path, json=body, extensions={"trace": connected}) as response:
                yield response
        except httpx.HTTPError as error:
            if not self._expired.is_set():
                reason = self._excerpt(str(error) or type(error).__name__)
                raise ServerError(
                    f"The server cannot be reached, or broke off: {reason}. Is it running, and is the address right?"
                ) from None
        finally:
            ended.set()
        if self._expired.is_set():
            seconds = self._total_s if self._due == self._until else SILENCE_S
            raise ServerError(f"The server did not finish within {seconds:g} seconds.")

    def _wait(self) -> None:
        """Give the server SILENCE_S for the next answer or event."""
        self._due = min(self._until, time.monotonic() + SILENCE_S)

    def _watch(self, sockets: list[socket.socket], ended: threading.Event) -> None:
        """Close a request's sockets, even if the server is silent, once it is due, which may move."""
        while not ended.wait(max(0.01, self._due - time.monotonic())):
            if time.monotonic() >= self._due:
                self._expired.set()
                for each in sockets:
                    with contextlib.suppress(OSError):
                        each.shutdown(socket.SHUT_RDWR)

    def _check(self, response: httpx.Response) -> None:
        """Raise ServerError with the server's message unless it succeeded. A redirect is an error."""
        if response.is_success:
            return
        message = ""
        with contextlib.suppress(ValueError, RecursionError):
            message = self._excerpt(json.loads(next(response.iter_raw(10_000), b"")))
        status, message = response.status_code, message or response.reason_phrase
        raise ServerError(f"The server refused (status {status}): {message}", status, message)

    def _excerpt(self, data: Any) -> str:
        """Return the server's error message, shortened and printable, and never with the key."""
        data = data.get("error", data) if isinstance(data, dict) else data
        text = str(data.get("message", "") if isinstance(data, dict) else data)
        if self._key and self._key in text:
            return "(it repeats the key)"
        excerpt = "".join(c if c.isprintable() and c not in "<>" else " " for c in text[: 4 * MAX_EXCERPT])
        excerpt = " ".join(excerpt.split())
        return excerpt if len(excerpt) <= MAX_EXCERPT else excerpt[:MAX_EXCERPT] + "…"


def parsed(data: bytes) -> Any:
    try:
        return json.loads(data.decode(errors="replace"))
    except (ValueError, RecursionError):
        raise ServerError("The server's answer is not valid JSON.") from None
