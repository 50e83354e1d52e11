"""Class mode: every phone shows the same moment of a run as the teacher's page.

The teacher's page, which has a secret, posts the log of its run in parts, and its moment. Phones get what they lack by
server-sent events. Nothing is written to disk, and phones are anonymous.
"""

import asyncio
import contextlib
import functools
import json
import re
import secrets
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import segno
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from ..traces.file import escaped
from .browser import link_modules
from .components.drawn import player_words
from .gateway.cache import preferred, supported
from .gateway.gradio_private import fonts
from .gateway.visitors import LEADS
from .text import as_json, asset, filled, speaking, strings, TAGS

PATH = "/class"
COOKIE = "specdec_teach"  # contains the secret; runs that are requested with this cookie go first in the queue
MAX_PHONES = 200
MAX_STREAMS = 3  # of one phone: several tabs, or connections that are not known to be lost
MAX_PAUSE_S = 5.0  # between two messages of a stream
MIN_PAUSE_S = 0.05
STREAM_LIFETIME_S = 60.0  # then the server ends the stream, and the phone opens a new one
PHONE_NAME = re.compile(r"[0-9a-f]{16,64}")
STYLES = ("shared/style.css", "race/race.css", "step/step.css", "class/question.css", "class/phone.css")
POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; "
    "img-src data:; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@dataclass
class Room:
    """The state of a class. Only the event loop changes it."""

    host: str  # at which phones can reach this machine
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    run: str = ""
    parts: list[str] = field(default_factory=list)  # of the log
    cursor: dict[str, Any] | None = None  # the moment: see `point`
    question: dict[str, Any] | None = None
    answer: dict[str, Any] | None = None
    votes: dict[str, int] = field(default_factory=dict)
    streams: Counter[str] = field(default_factory=Counter)  # phone -> number of open streams
    teachers: int = 0  # number of the teacher's pages that are open
    changes: asyncio.Event = field(default_factory=asyncio.Event)  # set at the next change, and then replaced

    def is_teacher(self, secret: str) -> bool:
        return secrets.compare_digest(secret.encode(), self.secret.encode())

    def write(self, run: str, part: int, log: str) -> bool:
        """Append a part of the log; part 0 starts another run. Return False unless `part` is the next."""
        if part == 0 and run != self.run:
            self.run, self.parts, self.cursor = run, [], None
        if run != self.run or part != len(self.parts):
            return False
        self.parts.append(log)
        self.notify()
        return True

    def point(self, cursor: dict[str, Any]) -> None:
        """Set the moment: time `t` in ms, the cycle's animation, whether the run plays, and how fast."""
        self.cursor = cursor
        self.notify()

    def ask(self, question: dict[str, Any] | None) -> None:
        """Ask a question with a number of `choices`, and clear the votes; None removes the question."""
        self.question = question and question | {"id": secrets.token_hex(8)}
        self.answer, self.votes = None, {}
        self.notify()

    def reveal(self, answer: dict[str, Any]) -> None:
        self.answer = answer
        self.notify()

    def vote(self, phone: str, question: Any, choice: Any) -> bool:
        """Store a phone's newest vote. Return False if the phone has no open stream."""
        if self.question is None or self.question["id"] != question or self.answer:
            raise ValueError("this question is not open for votes")
        if type(choice) is not int or choice not in range(self.question["choices"]):
            raise ValueError("the question does not have this choice")
        if phone not in self.streams:
            return False
        self.votes[phone] = choice
        self.notify()
        return True

    def admits(self, phone: str) -> bool:
        return self.streams[phone] < MAX_STREAMS and (phone in self.streams or len(self.streams) < MAX_PHONES)

    async def follow(self, phone: str, since: str = "") -> AsyncIterator[str]:
        """Yield the messages that follow `since`, the id of this phone's last one."""
        run, _, digits = since.partition(":")
        part = int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 9 else 0
        last_state, deadline = "", time.monotonic() + STREAM_LIFETIME_S
        self.streams[phone] += 1
        self.notify()
        try:
            yield "retry: 300\n\n"
            while time.monotonic() < deadline:
                changes = self.changes
                if run != self.run or part > len(self.parts):
                    run, part = self.run, 0
                moment = {"cursor": self.cursor, "vote": self.votes.get(phone), "led": self.teachers > 0}
                moment |= self.survey(bool(self.answer))
                state, log = json.dumps(moment), json.dumps("".join(self.parts[part:]))
                if state == last_state and part == len(self.parts):
                    yield ":\n\n"  # an SSE comment, so that the connection stays open
                else:
                    data = f'{{"run":"{run}","part":{part},"log":{log},"state":{state}}}'
                    last_state, part = state, len(self.parts)
                    yield f"id: {run}:{part}\ndata: {data}\n\n"
                await pause(changes)
        finally:
            self.streams[phone] -= 1
            self.streams += Counter()  # removes the phones whose count is 0
            self.notify()

    async def watch(self) -> AsyncIterator[str]:
        self.teachers += 1
        self.notify()
        try:
            while True:
                changes = self.changes
                yield f"data: {json.dumps({'joined': len(self.streams), **self.survey(True)})}\n\n"
                await pause(changes)
        finally:
            self.teachers -= 1
            self.notify()

    def survey(self, with_counts: bool) -> dict[str, Any]:
        """Return the question, its revealed answer and, if `with_counts`, the votes for each choice."""
        votes, choices = [*self.votes.values()], self.question["choices"] if self.question else 0
        counts = [votes.count(choice) for choice in range(choices)]
        return {"question": self.question, "answer": self.answer, "counts": counts if with_counts else None}

    def notify(self) -> None:
        changes, self.changes = self.changes, asyncio.Event()
        changes.set()


async def pause(changes: asyncio.Event) -> None:
    """Wait for MIN_PAUSE_S, and then until the next change, but at most MAX_PAUSE_S more."""
    await asyncio.sleep(MIN_PAUSE_S)
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(changes.wait(), MAX_PAUSE_S)


class Classroom:
    """Middleware that answers requests for `/class` and below, and passes on all others."""

    def __init__(self, app: ASGIApp, room: Room) -> None:
        self.app, self.room = app, room
        self.routes = Starlette(
            routes=[
                Route(PATH, phone_page),
                Route(f"{PATH}/join", self.join),
                Route(f"{PATH}/teacher", open_teachers_page),
                Route(f"{PATH}/events", self.events),
                Route(f"{PATH}/teach", self.teach, methods=["POST"]),
                Route(f"{PATH}/vote", self.vote, methods=["POST"]),
            ],
            exception_handlers={ValueError: bad_request, TypeError: bad_request},
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        in_class = False
        if scope["type"] == "http":
            in_class = scope["path"] == PATH or scope["path"].startswith(f"{PATH}/")
            scope[LEADS] = self.room.is_teacher(Request(scope).cookies.get(COOKIE, ""))
        await (self.routes if in_class else self.app)(scope, receive, send)

    async def join(self, request: Request) -> Response:
        return JSONResponse(invitation(address(self.room.host, request.scope["server"][1])))

    async def events(self, request: Request) -> Response:
        if "teach" in request.query_params:
            if not self.room.is_teacher(request.query_params["teach"]):
                return PlainTextResponse("this is not the teacher's address", 403)
            return stream(self.room.watch())
        name = request.query_params.get("phone", "")
        if not PHONE_NAME.fullmatch(name):
            raise ValueError("`phone` must be 16 to 64 hexadecimal digits")
        if not self.room.admits(name):
            return PlainTextResponse("no more phones can join", 503)
        since = request.headers.get("last-event-id") or request.query_params.get("since", "")
        return stream(self.room.follow(name, since))

    async def teach(self, request: Request) -> Response:
        if not self.room.is_teacher(request.headers.get("x-teach", "")):
            return PlainTextResponse("only the teacher's page may do that", 403)
        sent = await request.json()
        if "log" in sent and not self.room.write(sent["run"], sent["part"], sent["log"]):
            return PlainTextResponse("send the run from its beginning", 409)
        for name, change in {"cursor": self.room.point, "ask": self.room.ask, "reveal": self.room.reveal}.items():
            if name in sent:
                change(sent[name])
        return Response(status_code=204)

    async def vote(self, request: Request) -> Response:
        sent = dict(await request.json())
        stored = self.room.vote(str(sent.get("phone")), sent.get("question"), sent.get("choice"))
        return Response(status_code=204 if stored else 429)


def stream(messages: AsyncIterator[str]) -> Response:
    return StreamingResponse(messages, media_type="text/event-stream", headers={"Cache-Control": "no-store"})


async def bad_request(request: Request, error: Exception) -> Response:
    return PlainTextResponse(str(error), 400)


def reachable(host: str) -> str:
    """Return `host`, or this machine's address if `host` means all. No packet is sent."""
    if host not in ("0.0.0.0", "::", ""):
        return host
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("10.255.255.255", 1))
            return str(probe.getsockname()[0])
        except OSError:  # this machine has no network
            return "127.0.0.1"


def address(host: str, port: int) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{PATH}"


@functools.cache
def invitation(address: str) -> dict[str, str]:
    drawing = segno.make(address, error="m", micro=False).svg_inline(omitsize=True, light="#fff", border=2)
    return {"address": address, "qr": drawing}


async def open_teachers_page(request: Request) -> Response:
    """Redirect to the main page, whose requests then contain the secret as a cookie."""
    answer = RedirectResponse(f"../?{request.url.query}")
    answer.set_cookie(COOKIE, request.query_params.get("teach", ""), httponly=True, samesite="strict")
    return answer


async def phone_page(request: Request) -> Response:
    language = supported(request.query_params.get("lang", "")) or preferred(request.headers.get("accept-language", ""))
    headers = {"Content-Security-Policy": POLICY, "Cache-Control": "no-cache", "Vary": "Accept-Language"}
    return Response(write_phone_page(language), 200, headers, "text/html")


@functools.cache
def write_phone_page(language: str) -> str:
    """Write the phone's page: player, cycle view, and the script that follows the class."""
    with speaking(language):
        words = strings("class")["phone"]
        data = {
            "player": {"value": "", "words": as_json(player_words() | {"empty": words["waiting"]})},
            "step": {"words": as_json(strings("step"))},
            "phone": {"words": as_json(strings("class")), "quiz": as_json(strings("guide")["quiz"])},
        }
        return filled(
            "class/phone.html",
            language=TAGS[language],
            title=f"{words['title']} · {strings('page')['brand']}",
            style=fonts(embedded=False) + "".join(map(asset, STYLES)),
            data=escaped(as_json(data)),
            modules=link_modules(),
        )
