"""What strangers send by HTTP: the largest bodies that are taken, those that must not be, and names that are not ours.

The app has a process of its own. Its memory is that process' own peak, set back before each body; meanwhile another
visitor asks, and must be answered.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import toyrun

from .figures import at_least, at_most, Figure, none, skipped
from .load import app

PATIENCE = 300.0  # seconds; a busy machine takes its time
LARGEST = 15_900_000  # characters of a trace
LINE = 990_000  # of a line in it
MORE = 300.0  # MB above the idle app
ATTEMPTS = 64  # of a limit of 60 a minute


def count(long: bool) -> list[Figure]:
    if not Path("/proc/self/clear_refs").exists():
        return [skipped("largest bodies taken", "9", "there is no /proc here")]
    with app(SPECDEC_PUBLIC="") as (url, process):
        figures = [*taken(url, process.pid, 3 if long else 1), *hostile(url), *names(url)]
        figures.append(none("deaths", int(process.poll() is not None)))
    with app("--public") as (url, _):
        figures.append(none("runs beyond an address' limit, by a made-up X-Forwarded-For", forged(url)))
    return figures


# ---- the largest ----


def traces() -> Iterator[tuple[str, str]]:
    """Texts of the largest size, each made to take much memory as it is read."""
    header, *events = toyrun.trace().dumps().splitlines()
    filled = events[1][:-1] + ',"x":[' + ",".join(["{}"] * (LINE // 3)) + "]}"
    lines = LARGEST // len(filled)
    yield "a run and one long text", "\n".join([header, *events, "x" * (LARGEST - 100_000)])
    yield "lines of objects", "\n".join([header, events[0], *[filled] * lines])
    yield "lines of fractions", "\n".join([header, events[0], *['{"x":[' + "1.5," * (LINE // 4) + "1]}"] * lines])
    yield "one wide character", "\n".join([header, "\U0001f600" + "x" * (LARGEST // 4 * 4 - 1_000)])
    yield "many events", "\n".join([header, *events * 400])
    yield "one line of objects", header + '\n{"x":[' + "{}," * (LARGEST // 3 - 200) + "{}]}"


def taken(url: str, pid: int, times: int) -> Iterator[Figure]:
    """By each way in. An answer is a refusal in a sentence, for none of these is a run."""
    unanswered = slow = sent = 0
    with httpx.Client(base_url=url, timeout=PATIENCE) as client:
        component = next(
            one["id"]
            for one in client.get("config").json()["components"]
            if "open_trace" in json.dumps(one["props"].get("server_fns", []))
        )
        for _ in range(3):  # what is loaded once is loaded
            call(client, "theory", {})
            call(client, "audit", {"trace": "x"})
        client.get("")
        base, peak = memory(pid, "VmRSS"), 0.0
        for _, text in list(traces()) * times:
            for way in ("audit", "explain", "page"):
                Path(f"/proc/{pid}/clear_refs").write_text("5")  # the peak begins anew
                sent += 1
                with another(url) as answered:
                    if way == "page":
                        asked = {"session_hash": "a", "component_id": component, "fn_name": "open_trace", "data": text}
                        told = client.post("gradio_api/component_server", json=asked).text
                    else:
                        told = call(client, way, {"trace": text})
                unanswered += "no run that can be read" not in told and "was not taken" not in told
                slow += not answered
                peak = max(peak, memory(pid, "VmHWM"))
        after = memory(pid, "VmRSS")
    yield at_least("largest bodies taken", sent, 18)
    yield none("of them not answered", unanswered)
    yield none("others not answered meanwhile", slow)
    yield at_most("peak memory above the idle app", peak - base, MORE, " MB")
    yield at_most("memory that stays afterwards", after - base, MORE / 2, " MB")


def memory(pid: int, name: str) -> float:
    """In MB."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def call(client: httpx.Client, name: str, arguments: dict[str, Any]) -> str:
    told = client.post(f"gradio_api/call/v2/{name}", json=arguments)
    return (
        client.get(f"gradio_api/call/{name}/{told.json()['event_id']}").text if told.status_code == 200 else told.text
    )


@contextlib.contextmanager
def another(url: str) -> Iterator[list[int]]:
    """Another visitor asks while this goes on; the statuses of the answers."""
    answered: list[int] = []

    def ask() -> None:
        with contextlib.suppress(httpx.HTTPError):
            answered.append(httpx.get(f"{url}gradio_api/app_id", timeout=PATIENCE).status_code)

    asking = threading.Thread(target=ask)
    asking.start()
    yield answered
    asking.join()


# ---- those that must not be ----

PATHS = ("call/audit", "call/v2/explain", "call/theory", "queue/join", "component_server", "run/predict", "mcp/")


def bad_bodies() -> Iterator[bytes | Iterator[bytes]]:
    many = 600_000
    for inner in (b"{}", b"[]", b"0", b'""', b'{"a":0}', b"null"):
        yield b'{"data": [' + (inner + b",") * many + inner + b"]}"
    for deep in (b"[", b'{"a":', b'[{"a":'):
        yield deep * 100_000
        yield deep * 60 + b"1" + b"]" * 60
    yield json.dumps({"data": [[]] * 50_000, "x": "\u2200"}, ensure_ascii=False).encode("utf-16")
    yield json.dumps({"data": [[]] * 50_000}).encode("utf-32")
    yield b"\0" * 100_000
    yield b'"' * 5_000_000
    yield b"\\" * 21_000_000
    yield b" " * 21_000_000
    yield (b" " * 65_536 for _ in range(1_000))  # chunked, without an end in sight
    yield (b"{},"[n % 3 : n % 3 + 1] for n in range(30_000))  # in pieces of one byte


def hostile(url: str) -> Iterator[Figure]:
    sent = failed = through = hangs = 0
    with httpx.Client(base_url=url, timeout=PATIENCE) as client:
        for path in PATHS:
            for body in bad_bodies():
                sent += 1
                try:
                    status = client.post(f"gradio_api/{path}", content=body).status_code
                except httpx.TimeoutException:
                    hangs += 1
                    continue
                except httpx.HTTPError:  # hung up on, before all was sent
                    continue
                failed += status >= 500
                through += status < 400
        for head in HALF:
            sent += 1
            first = wire(url, head)
            failed += first.startswith(b"HTTP/1.1 5")
            through += first.startswith(b"HTTP/1.1 2")
        hangs += "2.7731" not in call(client, "theory", {"alpha": 0.7, "k": 4, "c": 0.1})
    yield at_least("hostile bodies", sent, 130)
    yield none("hostile bodies answered with a 5xx", failed)
    yield none("hostile bodies taken", through)
    yield none("hangs", hangs)


POST = b"POST /gradio_api/call/audit HTTP/1.1\r\nHost: localhost\r\n"
HALF = (
    POST + b"Content-Length: 100\r\n\r\n{",
    POST + b"Content-Length: 1\r\n\r\n{}}}}}",
    POST + b"Content-Length: -1\r\n\r\n{}",
    POST + b"Content-Length: 99999999999999999999\r\n\r\n{}",
    POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    POST + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
    POST + b"Transfer-Encoding: chunked\r\n\r\nfffffff\r\n{",
    POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{",
    POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
)


def wire(url: str, sent: bytes) -> bytes:
    """What is answered to these bytes, after which nothing comes."""
    host, port = url.removeprefix("http://").strip("/").split(":")
    with socket.create_connection((host, int(port)), PATIENCE) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        try:
            return connection.recv(100)
        except OSError:
            return b""


# ---- names ----

EVIL = (
    "evil.example", "EVIL.example:80", "127.0.0.1.evil.example", "localhost.evil.example", "evil.localhost.example",
    "xn--lcalhost-0jb", "192.0.2.7", "192.0.2.7:7860", "[2001:db8::7]:7860", "0.0.0.0", "2130706434", "", "[", "a:b",
    "127.0.0.1@evil.example", "localhost#.evil.example.", "/", "evil.example\\@localhost",
)  # fmt: skip


def names(url: str) -> Iterator[Figure]:
    tried = through = 0
    with httpx.Client(base_url=url, timeout=PATIENCE) as client:
        for evil in EVIL:
            for path in ("", "zh", "config", "gradio_api/info", "gradio_api/app_id", "gradio_api/mcp/"):
                tried += 1
                through += client.get(path, headers={"Host": evil}).status_code < 400
        for evil in ("null", *(f"{scheme}://{name}" for scheme in ("http", "https") for name in EVIL)):
            call_of = {"Origin": evil, "Access-Control-Request-Method": "POST"}
            for method in ("POST", "OPTIONS"):
                tried += 1
                answer = client.request(method, "gradio_api/call/theory", json={"data": []}, headers=call_of)
                through += answer.status_code < 400 or "access-control-allow-origin" in answer.headers
        for header in ("X-Forwarded-Host", "X-Gradio-Server", "X-Forwarded-Server", "Forwarded"):
            for told in ("evil.example", "http://evil.example", "host=evil.example"):
                tried += 1
                through += "evil.example" in client.get("config", headers={header: told}).text
    yield at_least("names of others tried", tried, 180)
    yield none("of them let through", through)


def forged(url: str) -> int:
    """Another address in each request; how many runs were begun beyond what one address has."""
    begun = 0
    with httpx.Client(base_url=url, timeout=PATIENCE) as client:
        for number in range(ATTEMPTS):
            client.headers["X-Forwarded-For"] = f"203.0.113.{number}"
            begun += "Too many" not in call(client, "compare", {"prompt": "Once", "max_tokens": 1})
    return max(0, begun - 60)
