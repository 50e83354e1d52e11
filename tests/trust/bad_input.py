"""Input that nobody should send, to every door: endpoints over HTTP, the API, links, traces, the command line.

Whatever comes is answered, or refused with a sentence. Counted beside the inputs are answers of 5xx, what escaped as an
exception, and what took more than LONG seconds of this process' own time, so that a busy machine makes no hang.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import logging
import random
import socket
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar
from unittest import mock

import httpx
import shallow
import torch
import toyrun
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from specdec import cli
from specdec.families import zoo
from specdec.figures.stats import Comparison
from specdec.lanes import race, worker
from specdec.settings import SETTINGS
from specdec.traces.audit import audit
from specdec.traces.file import Trace, TraceError
from specdec.ui import api, classroom, refusals, session
from specdec.ui.build import build
from specdec.ui.components import engine, traces
from specdec.ui.request import check, check_certificate, check_examination, from_link, InputError, tab_of_link
from specdec.ui.tabs import TABS
from specdec.ui.theme import launch_settings

from .figures import at_least, Figure, none
from .garbage import damaged, octets, spoiled, text, value, written

LONG = 5.0  # seconds of one input
# Gradio 6's `mcp/sse` answers once more when a stream has ended (`handle_sse` in gradio/mcp.py, read 2026-11-23). The
# visitor has left by then; a traceback is written into the log.
ENDED_TWICE = "after response already completed"


class Tally:
    def __init__(self) -> None:
        self.sent = Counter[str]()
        self.wrong = Counter[str]()
        self.said: list[str] = []
        self.ended_twice = 0

    def bad(self, kind: str, what: str) -> None:
        self.wrong[kind] += 1
        if len(self.said) < 12:
            self.said.append(f"{kind}: {what}"[:300])

    @contextlib.contextmanager
    def one(self, place: str, told: Any, *expected: type[Exception]) -> Iterator[None]:
        self.sent[place] += 1
        began = time.thread_time()
        try:
            yield
        except expected as error:
            if not str(error) or len(str(error)) > 1_000:
                self.bad(
                    "uncaught", f"{place}: a refusal of {len(str(error)):,} characters, {str(error)[:100]}… {told!r}"
                )
        except Exception as error:
            self.bad("uncaught", f"{place}, {type(error).__name__}: {error}, {told!r}")
        if time.thread_time() - began > LONG:
            self.bad("hangs", f"{place}, {told!r}")


def toy_engine(*_: Any, **__: Any) -> Iterator[Any]:
    yield from toyrun.events()


# ---- in this process ----

WANTED: dict[Callable[..., Any], dict[str, Any]] = {
    api.theory: {"alpha": 0.8, "k": 4, "c": 0.1, "v": 1.0, "o": 0.0},
    api.summarise: {"trace": toyrun.trace().dumps()},
    api.audit: {"trace": toyrun.trace().dumps()},
    api.explain: {"trace": toyrun.trace().dumps(), "cycle": 1, "position": 1, "prompt": "", "k": 4, "seed": 0},
    api.compare: {
        "prompt": "Once",
        "drafter": "draft_model",
        "k": 4,
        "temperature": 0.0,
        "max_tokens": 8,
        "rule": "block",
    },
    api.certify: {"pair": "toy", "mistake": "", "draws": 100, "seed": 0, "text": ""},
}


def questions(tally: Tally, count: int, rng: random.Random) -> None:
    """The API's functions. Its runs are a toy's."""
    certificate = lambda *_: (state for state in [{"closed": {}}])  # noqa: E731
    with (
        mock.patch.object(session, "_engine", lambda *_: (toyrun.Family(), toy_engine)),
        mock.patch.object(session, "_certificate", certificate),
    ):
        for _ in range(count):
            question = rng.choice(list(WANTED))
            sent = {name: value(rng) if rng.random() < 0.4 else good for name, good in WANTED[question].items()}
            with tally.one("API", (question.__name__, sent)):
                given = api.answering(question)(**sent)
                answer = given if isinstance(given, dict) else list(given)[-1]
                json.dumps(answer, allow_nan=False).encode()
                if "error" in answer and ("Traceback" in answer["error"] or len(answer["error"]) > 700):
                    tally.bad("uncaught", f"{question.__name__} said {answer['error'][:200]}")


FIELDS = (*SETTINGS, "tab", "lang", "server", "plain", "view")


def links(tally: Tally, count: int, rng: random.Random) -> None:
    checks = (check, check_certificate, check_examination)
    names = {check: [*SETTINGS], check_certificate: ["pair", "mistake", "draws", "seed", "text"]}
    names[check_examination] = ["address", "plain", "key", "embedded", "draws", "temperature", "seed"]
    for _ in range(count):
        query = {rng.choice(FIELDS): text(rng) if rng.random() < 0.6 else str(value(rng, 0)) for _ in range(4)}
        with tally.one("links", query):
            settings, said = from_link(query)
            tab_of_link(query, TABS)
            engine.from_link(query)  # type: ignore[arg-type]
            check(**{"prompt": "any", **settings})
            if not isinstance(said, str):
                tally.bad("uncaught", f"{query}")
        checked = rng.choice(checks)
        sent = {name: value(rng) for name in names[checked] if rng.random() < 0.5}  # type: ignore[index]
        if checked is check:
            sent.setdefault("prompt", "any")
        with tally.one("settings", sent, InputError):
            checked(**sent)


@functools.cache
def runs() -> list[bytes]:
    told = (toyrun.trace(), toyrun.tree_trace(), toyrun.peer_trace(), toyrun.server_trace(beside=True))
    real = Trace.loads(session.first_recorded())
    return [run.dumps().encode() for run in (*told, real)]


def edited(rng: random.Random) -> str:
    """A saved run, damaged in its bytes or in its values."""
    run = rng.choice(runs()[:4] * 6 + runs()[4:])
    if rng.random() < 0.5:
        return damaged(run, rng).decode("utf-8", rng.choice(("replace", "surrogateescape")))
    lines = [json.loads(line) for line in run.decode().splitlines()]
    for _ in range(rng.choice((1, 1, 3))):
        at = rng.randrange(len(lines))
        lines[at] = spoiled(lines[at], rng, 0.1)
    if rng.random() < 0.2:
        rng.shuffle(lines)
    return "\n".join(json.dumps(line) for line in lines)


def files(tally: Tally, count: int, rng: random.Random) -> None:
    """Saved runs: a file opens, in every way that the page and the API know, or it is no trace."""
    asked = (traces.open_trace, traces.audit_trace, traces.make_page, lambda sent: traces.compare_traces([sent, sent]))
    for number in range(count):
        sent = edited(rng)
        with tally.one("traces", sent[:200], TraceError):
            trace = Trace.loads(sent)
            audit(trace.header.lanes, trace.events)
            summary = Comparison.of(trace.events)
            _ = summary.accounted_speedup, summary.measured_speedup, trace.summary(), repr(trace)
            again = Trace.loads(trace.dumps())
            if again != trace:
                tally.bad("uncaught", f"a run that was read is written otherwise: {sent[:200]}")
            if number % 4 == 0:
                trace._repr_html_()
        with tally.one("traces on the page", sent[:200]):
            json.dumps(asked[number % 4](sent), allow_nan=False).encode()
        with tally.one("traces to the API", sent[:200]):
            given = api.answering((api.summarise, api.audit, api.explain)[number % 3])(sent)
            json.dumps(given if isinstance(given, dict) else list(given), allow_nan=False).encode()


WORDS = (
    "--drafter", "-k", "--temperature", "--max-tokens", "--top-p", "--top-k", "--rule", "--seed", "--stop", "--json",
    "--save", "--grammar", "--json-schema",
    "--target", "--draft", "--exit-layer", "--universal", "--server", "--plain", "--key-env", "--peer", "--device",
    "--dtype", "--family", "--kind", "--", "-h", "--help", "--version", "-", "trace", "prove", "certify", "export",
    "run",
    "/nowhere", "/etc/passwd", "/dev/null", "/", "", "vllm",
)  # fmt: skip
STARTED = ("app", "bench")  # these begin work that does not end by itself


def commands(tally: Tally, count: int, rng: random.Random) -> None:
    """The command line, with what makes it begin a run out of order: each command ends with a code and a sentence."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise ValueError("no models here")

    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        for name in ("load", "load_pair"):
            stack.enter_context(mock.patch.object(zoo, name, refuse))
        file = Path(folder) / "run.jsonl"
        for _ in range(count):
            words = [
                rng.choice(WORDS) if rng.random() < 0.6 else text(rng).replace("\0", "")
                for _ in range(rng.randrange(6))
            ]
            if rng.random() < 0.4:
                file.write_text(edited(rng), "utf-8", "replace")
                words = ["trace", str(file), *words[:1]]
            if {*words} & {*STARTED} or words[:1] in (["certify"], ["prove"]):
                words = [*words[:1], "--no-such-option", *words[1:]]
            out = io.TextIOWrapper(io.BytesIO(), "utf-8")
            errors = io.TextIOWrapper(io.BytesIO(), "utf-8")
            with tally.one("commands", words), contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
                code = cli.main(words)
                if code not in (0, 1, 2, cli.STOPPED):
                    tally.bad("uncaught", f"{words} left with {code}")
            errors.seek(0)
            if "Traceback" in errors.read():
                tally.bad("uncaught", f"{words} printed a traceback")


# ---- over HTTP ----


@contextlib.contextmanager
def served() -> Iterator[tuple[str, str, list[str]]]:
    """The app with a class and a small family in this process: its address, the class's secret, and what it logs."""
    said: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(self.format(record))

    handler, stream = Kept(), io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        family = zoo.load(str(shallow.write(Path(folder) / "family")), torch.float32)
        stack.enter_context(mock.patch.object(session, "_engine", lambda *_: (family, race.race)))
        stack.enter_context(mock.patch.object(session, "_loaded", lambda *_: True))
        stack.enter_context(mock.patch.object(session, "_certificate", certificate))
        room = classroom.Room("127.0.0.1")
        logging.getLogger().addHandler(handler)
        demo = build(teaching=True)
        settings = launch_settings(room)
        settings["app_kwargs"]["middleware"].append(Middleware(Innermost))  # sees an answer before all else does
        with contextlib.redirect_stderr(stream):
            _, url, _ = demo.launch(prevent_thread_lock=True, quiet=True, **settings)
            try:
                yield url, room.secret, said
            finally:
                demo.close()
                logging.getLogger().removeHandler(handler)
                said.append(stream.getvalue())


class Innermost:
    """Counts answers of 5xx as the server gave them, but for calls that our own code refused."""

    failed: ClassVar = list[str]()

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def tell(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] >= 500 and not scope.get(refusals.MARK):
                self.failed.append(f"{message['status']} {scope['method']} {scope['path']}")
            await send(message)

        await self.app(scope, receive, tell)


def certificate(request: Any) -> Iterator[dict[str, Any]]:
    return worker.certify(request.pair, request.text, request.mistake, request.draws, request.seed)


CALLS = ("run", "run_zh", "compare", "summarise", "audit", "explain", "theory", "certify", "nothing", "../..", "%00")
PATHS = (
    "", "zh", "config", "gradio_api/info", "gradio_api/queue/status", "gradio_api/queue/data", "gradio_api/queue/join",
    "gradio_api/cancel", "gradio_api/reset", "gradio_api/upload", "gradio_api/upload_progress",
    "gradio_api/heartbeat/x",
    "gradio_api/file=/etc/passwd", "gradio_api/file=../../etc/passwd", "gradio_api/proxy=http://127.0.0.1:1/",
    "gradio_api/component_server", "gradio_api/stream/x/y/0/playlist.m3u8", "gradio_api/run/predict",
    "gradio_api/call/run",
    "gradio_api/deep_link", "assets/../../../etc/passwd", "static/%2e%2e/%2e%2e/etc/passwd", "manifest.json",
    "robots.txt",
    "favicon.ico", "theme.css", "login_check", "token", "logout", "monitoring", "class", "class/join", "class/events",
    "class/teach", "class/vote", "class/nothing", "gradio_api/mcp/", "gradio_api/mcp/sse", "svelte/x.js",
    "custom_component/x",
)  # fmt: skip


def requests(tally: Tally, count: int, rng: random.Random) -> None:
    """Of each kind in turn; streams are closed after their first lines. 5xx are ours, whoever wrote the route."""
    Innermost.failed.clear()
    with served() as (url, secret, said), httpx.Client(timeout=60.0, base_url=url) as client:
        for number in range(count):
            method, path, sent = shaped(rng, secret, number)
            unsent = (httpx.InvalidURL, httpx.LocalProtocolError, UnicodeEncodeError)
            with tally.one("HTTP", (method, path, sent), *unsent), client.stream(method, path, **sent) as answer:
                said_first = head_of(answer)
                if answer.status_code >= 500 and "no more can join" not in said_first:
                    tally.bad("5xx", f"{answer.status_code} {method} {path} {sent}")
            if number % 200 == 199:
                alive(tally, client)
        octet_lines(tally, url, count // 20, rng)
        alive(tally, client)
    for failed in Innermost.failed:
        tally.bad("5xx", failed)
    text_of_log = "\n".join(said)
    for chunk in text_of_log.split("Traceback (most recent call last)")[1:]:
        frames = chunk.partition("\n\n")[0]
        if ENDED_TWICE in frames and "specdec/" not in frames.rpartition("starlette/routing.py")[2]:
            tally.ended_twice += 1
        elif "specdec/" in frames:
            tally.bad("uncaught", f"a traceback through our code in the log: {chunk[-700:]}")


def head_of(answer: httpx.Response) -> str:
    """Its first piece; a stream of events, which may be silent for long, is left at once."""
    if answer.headers.get("content-type", "").startswith("text/event-stream"):
        return ""
    for piece in answer.iter_bytes():
        return piece.decode("utf-8", "replace")
    return ""


def alive(tally: Tally, client: httpx.Client) -> None:
    """A good request is answered as ever."""
    with tally.one("HTTP", "a good request"):
        told = client.post("gradio_api/call/theory", json={"data": [0.7, 4, 0.1, 1.0, 0.0]}).json()["event_id"]
        done = client.get(f"gradio_api/call/theory/{told}").text
        if "2.7731" not in done:
            tally.bad("deaths", done[:200])


def shaped(rng: random.Random, secret: str, number: int) -> tuple[str, str, dict[str, Any]]:
    kind = number % 6
    headers = {"x-teach": secret} if rng.random() < 0.8 else {}
    if kind == 0:  # an endpoint, with arguments of its kind or none
        name = rng.choice(CALLS)
        good = next(
            (list(wanted.values()) for q, wanted in WANTED.items() if q.__name__ == name), ["Once", "draft_model"]
        )
        data: Any = [value(rng) if rng.random() < 0.4 else one for one in good]
        data = data if rng.random() < 0.9 else value(rng)
        if name in ("run", "run_zh", "compare", "certify"):  # at least one thing wrong: a run takes its time
            data = [value(rng, 0) for _ in range(rng.randrange(6))]
            data[:1] = [rng.choice([None, 7, "", "\0", [], {}, "a" * 5_000])]
        return (
            "POST",
            f"gradio_api/call/{name}",
            {"content": written({"data": data}), "headers": {"content-type": "application/json"}},
        )
    if kind == 1:  # what Gradio's own page sends
        body = {
            "data": value(rng), "fn_index": rng.choice([0, 1, 5, 20, 60, -1, 999, "1", None, 2.5, 2**40]),
            "session_hash": text(rng), "event_data": value(rng), "trigger_id": rng.choice([1, 50, None, "x"]),
            "event_id": text(rng), "component_id": rng.choice([1, 40, -1, "x", None]), "fn_name": text(rng),
            "api_name": rng.choice([*CALLS, None]),
        }  # fmt: skip
        body = {name: item for name, item in body.items() if rng.random() < 0.8}
        path = rng.choice([path for path in PATHS if path.startswith("gradio_api/")] + ["gradio_api/queue/join"] * 8)
        return "POST", path, {"content": written(body), "headers": {"content-type": "application/json"}}
    if kind == 2:  # the class
        body = {
            "run": rng.choice(["a" * 16, text(rng)]), "part": rng.choice([0, 1, -1, True, value(rng)]),
            "log": rng.choice(["x", value(rng)]), "cursor": rng.choice([{"t": 1, "settle": 0, "slow": 1}, value(rng)]),
            "ask": rng.choice([{"kind": "keep", "choices": 2}, value(rng)]),
            "reveal": rng.choice([{"right": 0}, value(rng)]),
            "phone": rng.choice(["b" * 16, value(rng)]), "question": value(rng), "choice": value(rng),
        }  # fmt: skip
        body = {name: item for name, item in body.items() if rng.random() < 0.4}
        return "POST", rng.choice(["class/teach", "class/vote"]), {"content": written(body), "headers": headers}
    if kind == 3:  # an address
        query = {
            rng.choice([*FIELDS, "session_hash", "phone", "teach", "since", "deep_link", "__theme"]): text(rng)
            for _ in range(3)
        }
        method = rng.choice(["GET", "GET", "GET", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "TRACE"])
        told = {"accept-language": text(rng).encode("utf-8", "replace").replace(b"\n", b"").replace(b"\0", b"").strip()}
        return (
            method,
            rng.choice(PATHS),
            {"params": {k: v.encode("utf-8", "replace").decode() for k, v in query.items()}, "headers": told},
        )
    if kind == 4:  # bytes
        told = {"content-type": rng.choice(["application/json", "multipart/form-data; boundary=x", "text/plain", "x"])}
        body = rng.choice(
            [octets(rng, 2_000), b"[" * 50_000, b'{"data":' * 999, b"", b"\xff\xfe", b'{"data": [1e999]}']
        )
        return (
            "POST",
            rng.choice([*PATHS, *(f"gradio_api/call/{name}" for name in CALLS)]),
            {"content": body, "headers": told},
        )
    name = text(rng).encode("utf-8", "replace").decode().replace("\0", "")  # a file
    return "POST", "gradio_api/upload", {"files": {"files": (name or "x", octets(rng))}}


def octet_lines(tally: Tally, url: str, count: int, rng: random.Random) -> None:
    """Bytes on the socket that are no HTTP, or half of it."""
    host, port = url.removeprefix("http://").strip("/").split(":")
    sound = b'POST /gradio_api/call/theory HTTP/1.1\r\nHost: x\r\nContent-Length: 12\r\n\r\n{"data": []}'
    for _ in range(count):
        with tally.one("sockets", "", OSError), socket.create_connection((host, int(port)), 30) as wire:
            wire.sendall(damaged(sound, rng) if rng.random() < 0.8 else octets(rng, 500))
            wire.shutdown(socket.SHUT_WR)
            wire.settimeout(60)
            answer = wire.recv(100)
            if answer.startswith(b"HTTP/1.1 5"):
                tally.bad("5xx", answer.decode("latin-1"))


SHORT = {questions: 600, links: 500, files: 200, commands: 150, requests: 600}
WHOLE = {questions: 4_000, links: 3_000, files: 1_600, commands: 1_500, requests: 6_000}


def count(long: bool) -> list[Figure]:
    tally = Tally()
    for send, how_many in (WHOLE if long else SHORT).items():
        send(tally, how_many, random.Random(f"{send.__name__} {long}"))
    sent = sum(tally.sent.values())
    doors = ", ".join(f"{place} {n:,}" for place, n in tally.sent.items())
    figures = [at_least("inputs", sent, 20_000 if long else 2_500)]
    figures.append(none("answers of 5xx", tally.wrong["5xx"]))
    figures += [none(kind, tally.wrong[kind]) for kind in ("uncaught", "hangs", "deaths")]
    told = Figure("streams that Gradio's MCP server ended twice, in the log", str(tally.ended_twice), "", True)
    return [
        *figures,
        told,
        Figure("by door", doors, "", True),
        *(Figure(said, "", "", False) for said in tally.said[:5]),
    ]
