"""The doors of `python -m tools.fuzz`: every route and function behind one."""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import logging
import os
import random
import re
import traceback
from collections.abc import Iterator, Sequence
from typing import Any
from unittest import mock
from urllib.parse import quote

import httpx

from tests.trust.garbage import TEXTS, written
from tools.fuzz import Door, literals, near, Wrong

# ---- every route, and every function behind one ----

MCP = ("initialize", "tools/list", "tools/call", "ping", "resources/list", "prompts/get", "logging/setLevel")
TOOLS = {"theory": {"k": 4}, "compare": {"prompt": "Once", "k": 2}, "explain": {"trace": "story", "cycle": 1}}
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
CLASS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("teach", {"run": "a" * 16, "part": 0, "log": "x"}),
    ("teach", {"run": "a" * 16, "part": 1, "log": "y", "cursor": {"t": 1, "settle": 0, "slow": 1, "playing": True}}),
    ("teach", {"ask": {"kind": "keep", "choices": 2, "piece": " the", "number": 1}}),
    ("teach", {"reveal": {"right": 0, "p": 0.5, "q": 0.5}}),
    ("vote", {"phone": "b" * 16, "question": "@question", "choice": 1}),
)
JSON = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
BROKEN = re.compile(r"Traceback \(most recent call last\)|^a (?:call broke|request failed): ", re.M)  # as logged
LAST = ("event: complete", "event: error", '"process_completed"', '"close_stream"')


class Api:
    """An input is a pair: a kind, and what the method of that name takes.

    @secret stands for the class's own, @question for what is asked there.
    """

    def __init__(self, client: httpx.Client, room: Any, log: io.StringIO) -> None:
        self.client, self.room, self.log = client, room, log

    def send(self, sent: Any) -> str:
        kind, told = sent
        try:
            answer = getattr(self, kind)(**told)
        except (TypeError, AttributeError, ValueError, httpx.InvalidURL, httpx.LocalProtocolError):
            if "specdec/" in traceback.format_exc():
                raise
            return ""  # this client cannot
        except (httpx.TimeoutException, httpx.ConnectError):
            raise Wrong("unanswered", f"{kind} {str(told)[:500]}") from None
        except (httpx.NetworkError, httpx.RemoteProtocolError):
            answer = "closed"
        text = self.log.getvalue()
        self.log.seek(0)
        self.log.truncate()
        for chunk in BROKEN.split(text)[1:]:
            ours = "specdec/" in chunk.rpartition("starlette/routing.py")[2]  # the middleware stands before that
            raise Wrong("uncaught" if ours else "aside", chunk)
        return f"{kind} {answer}"

    def ask(self, name: str, args: dict[str, Any]) -> str:
        """A function of the API, in this thread."""
        from specdec.ui import api

        question = getattr(api, name)
        known = inspect.signature(question).parameters
        given = api.answering(question)(**{name: args.get(name) for name in known})
        answer = given if isinstance(given, dict) else list(given)[-1]
        json.dumps(answer, allow_nan=False).encode()
        return f"{name} {answer.get('error', 'answered')}"

    def call(self, name: str, data: Any) -> str:
        told = self.http("POST", f"gradio_api/call/{name}", sent={"data": data})
        if (number := re.search(r'"event_id":\s*"(\w+)"', told)) is None:
            return told
        return f"{name} {self.http('GET', f'gradio_api/call/{name}/{number[1]}', patient=True)}"

    def event(self, fn: Any, data: Any, session: str, query: dict[str, str], more: Any) -> str:
        """As the page does it."""
        sent = {"fn_index": fn, "data": data, "session_hash": session, "trigger_id": None, "event_data": more}
        told = self.http("POST", "gradio_api/queue/join", sent=sent, query=query)
        if "event_id" not in told:
            return told
        told = self.http("GET", "gradio_api/queue/data", query={"session_hash": session}, patient=True)
        return f"{fn} {' '.join(re.findall('(?:msg|success|error)...........', told)[-4:])}"

    def served(self, block: Any, name: Any, data: Any) -> str:
        """A function that a component of the page has on the server."""
        sent = {"component_id": block, "fn_name": name, "data": data, "session_hash": "x"}
        return self.http("POST", "gradio_api/component_server", sent=sent)

    def http(
        self, method: Any, path: Any, sent: Any = "", query: Any = None, headers: Any = None, patient: bool = False
    ) -> str:
        """Status and beginning of the answer; a stream is left at once, or read to its end by who is `patient`."""
        content = written(sent).decode()
        if isinstance(sent, str):
            content = sent
        if question := self.room.question:
            content = content.replace("@question", question["id"])
        headers, query = (
            {name: str(one).replace("@secret", self.room.secret) for name, one in told.items()}
            for told in (JSON | (headers or {}), query or {})
        )
        path = f"/{quote(str(path).lstrip('/'), safe='/%:=', errors='replace')[:8_000]}"
        with self.client.stream(
            str(method), path, content=content.encode("utf-8", "replace"), params=query, headers=headers
        ) as answer:
            is_stream = answer.headers.get("content-type", "").startswith("text/event-stream")
            told = ""
            for line in answer.iter_lines() if patient or method == "POST" or not is_stream else ():
                told = f"{told}{line}\n"[-20_000:]
                if is_stream and any(end in line for end in LAST):
                    break
        if answer.status_code >= 500 and "no more can join" not in told and "ueue is full" not in told:
            raise Wrong("5xx", f"{answer.status_code} {method} {path[:60]} {told[:200]}")
        return f"{answer.reason_phrase} {told if patient or 'event_id' in told else ''}"


@contextlib.contextmanager
def api() -> Iterator[Door]:
    from specdec.servers import child
    from specdec.servers.base import ServerError
    from specdec.ui import classroom, session
    from specdec.ui.build import build
    from specdec.ui.theme import launch_settings
    from tests.trust.bad_input import Family, toy_engine

    def unreachable(*_: Any) -> Iterator[Any]:
        raise ServerError("not here")

    os.environ["SPECDEC_EXPOSURE"] = "class"  # a stranger there: nothing of this dials out
    session._warming.set()  # no models
    log = io.StringIO()
    room = classroom.Room("127.0.0.1")
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(session, "_engine", lambda *_: (Family(), toy_engine)))
        stack.enter_context(mock.patch.object(session, "_loaded", lambda *_: True))
        stack.enter_context(mock.patch.object(session, "_certificate", lambda *_: iter([{"closed": {}}])))
        stack.enter_context(mock.patch.object(child, "examining", unreachable))
        logging.getLogger().addHandler(logging.StreamHandler(log))
        demo = build(teaching=True)
        stack.enter_context(contextlib.redirect_stderr(log))
        _, url, _ = demo.launch(prevent_thread_lock=True, quiet=True, **launch_settings(room))
        client = stack.enter_context(httpx.Client(base_url=url, timeout=60.0))
        words = [*TEXTS, *literals("specdec/ui", "specdec/traces", "specdec/servers")]
        yield Door(Api(client, room, log).send, [*seeds(demo)], words, change)


def change(sent: Any, rng: random.Random, words: list[str]) -> Any:
    """Something of what the kind's method takes."""
    kind, told = sent
    name = rng.choice([*told])
    return kind, told | {name: near(told[name], rng, words)}


def seeds(demo: Any) -> Iterator[Any]:
    """What is expected at each place."""
    import toyrun

    from tests.trust.bad_input import WANTED

    traces = [run().dumps() for run in (toyrun.trace, toyrun.tree_trace, toyrun.peer_trace, toyrun.server_trace)]
    for question, args in WANTED.items():
        for trace in traces if "trace" in args else [""]:
            given = args | ({"trace": trace} if trace else {})
            yield "ask", {"name": question.__name__, "args": given}
        yield "call", {"name": question.__name__, "data": [*given.values()]}
    for number, event in demo.fns.items():
        if event.fn:
            data = json.loads(json.dumps([getattr(one, "value", None) for one in event.inputs], default=str))
            query = {"tab": "step", "k": "4"}
            more = {
                "head": "\n".join(traces[0].split("\n", 2)[:2]),
                "pair": "toy",
                "draws": 100,
                "seed": 0,
                "address": "http://x",
            }
            yield "event", {"fn": number, "data": data, "session": "x", "query": query, "more": more}
    for block in demo.blocks.values():
        for name in getattr(block, "server_fns", None) or ():
            data = traces[:2] if "compare" in name.__name__ else traces[1]
            yield "served", {"block": block._id, "name": name.__name__, "data": data}
    for method, path in {*routes(demo.app.routes)}:
        if method != "HEAD" and "upload" not in path:
            yield "http", {"method": method, "path": re.sub(r"\{.*?\}", "x", path), "query": {}, "headers": {}}
    for number, method in enumerate(MCP):
        name, args = [*TOOLS.items()][number % len(TOOLS)]
        params: Any = HELLO if method == "initialize" else {"name": name, "arguments": args}
        sent: Any = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        yield "http", {"method": "POST", "path": "gradio_api/mcp/", "query": {}, "headers": {}, "sent": sent}
    for path, sent in CLASS:
        headers = {"x-teach": "@secret"}
        yield "http", {"method": "POST", "path": f"class/{path}", "query": {}, "headers": headers, "sent": sent}
    for query in ({"phone": "b" * 16, "since": "a.0"}, {"teach": "@secret"}):
        yield "http", {"method": "GET", "path": "class/events", "query": query, "headers": {"last-event-id": "1"}}


def routes(known: Sequence[Any], before: str = "") -> Iterator[tuple[str, str]]:
    for route in known:
        path = before + getattr(route, "path", "")
        included = getattr(route, "original_router", None)  # FastAPI's way to hold another's routes
        inner = included.routes if included else getattr(route, "routes", None)
        if inner:
            yield from routes(inner, path)
        else:
            yield from ((method, path) for method in getattr(route, "methods", None) or ("GET", "POST"))
