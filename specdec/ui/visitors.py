"""Who asks, how often, and who still listens. Nothing of it outlives the process or is written down."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from typing import TypeVar

from gradio.context import LocalContext
from starlette.datastructures import QueryParams
from starlette.types import ASGIApp, Receive, Scope, Send

from ..exposure import limits

PATIENCE = 10.0  # seconds that a run goes on while nobody takes its answers
MINUTE = 60.0
MOST = 10_000  # tabs and addresses that are remembered

Told = TypeVar("Told")


class Visitors:
    """The streams that are open, by tab, and the runs of the last minute, by tab and by address."""

    def __init__(self) -> None:
        self.open: Counter[str] = Counter()
        self._heard: dict[str, float] = {}  # when a tab's last stream was closed
        self._runs: dict[str, deque[float]] = {}
        self._lock = threading.Lock()

    def listening(self, tab: str, since: float) -> bool:
        """Whether somebody takes a tab's answers, or did a moment ago; `since` is when its run began."""
        return bool(self.open[tab]) or time.monotonic() - max(since, self._heard.get(tab, since)) < PATIENCE

    def begin(self, tab: str) -> None:
        with self._lock:
            self.open[tab] += 1

    def end(self, tab: str) -> None:
        with self._lock:
            self.open[tab] -= 1
            if self.open[tab] <= 0:
                del self.open[tab]
            remember(self._heard, tab, time.monotonic())

    def wait(self, tab: str, address: str) -> float:
        """Seconds until another run may begin; 0 begins one."""
        with self._lock:
            now = time.monotonic()
            asked = ((f"tab {tab}", limits().runs_of_tab), (f"address {address}", limits().runs_of_address))
            waits = []
            for key, most in asked:
                runs = self._runs.get(key) or deque()
                while runs and now - runs[0] >= MINUTE:
                    runs.popleft()
                remember(self._runs, key, runs)
                waits.append(runs[0] + MINUTE - now if len(runs) >= most else 0.0)
            if not any(waits):
                for key, _ in asked:
                    self._runs[key].append(now)
            return max(waits)


def remember(table: dict[str, Told], key: str, value: Told) -> None:
    """As the newest; of too many the oldest is forgotten."""
    table.pop(key, None)
    table[key] = value
    if len(table) > MOST:
        del table[next(iter(table))]


visitors = Visitors()


class Listeners:
    """Middleware that notes which streams of answers are open. Gradio itself computes on for nobody."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        tab = stream_of(scope)
        if not tab:
            await self.app(scope, receive, send)
            return
        visitors.begin(tab)
        try:
            await self.app(scope, receive, send)
        finally:
            visitors.end(tab)


def stream_of(scope: Scope) -> str:
    """Whose answers a request takes: a tab's, or those of one call; "" for any other request."""
    if scope["type"] != "http" or scope["method"] != "GET":
        return ""
    path = scope["path"]
    if path.endswith("/queue/data"):
        return QueryParams(scope["query_string"]).get("session_hash", "")
    return path.rpartition("/")[2] if "/gradio_api/call/" in path else ""  # a call without a tab is named by its event


def asking() -> tuple[str, str]:
    """The tab and the address of whoever asked for what is being computed; empty outside of a request."""
    request = LocalContext.request.get(None)
    if request is None:
        return "", ""
    return request.session_hash or "", request.client.host if request.client else ""  # behind a proxy: see `doors.py`
