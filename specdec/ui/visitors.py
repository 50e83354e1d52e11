"""Who asks, how often, and who still listens. Nothing of it outlives the process or is written down."""

from __future__ import annotations

import ipaddress
import threading
import time
from collections import Counter, deque
from typing import Any, TypeVar

from starlette.datastructures import QueryParams
from starlette.types import ASGIApp, Receive, Scope, Send

from ..exposure import is_public, limits
from . import gradio_private

PATIENCE = 10.0  # seconds that a run goes on while nobody takes its answers
MINUTE = 60.0
MOST = 10_000  # tabs and addresses that are remembered
EVERYBODY = "everybody"  # the address of each visitor where none can be told from another
LEADS = "specdec.leads"  # in the scope of a request to a class: whether its teacher sent it

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
    if not gradio_private.tells_requests():
        return "", EVERYBODY
    request = gradio_private.request()
    return ("", "") if request is None else (request.session_hash or "", address_of(request))


def leads() -> bool:
    """Whether who asks goes before all others: in a class its teacher, else who sits at this machine.

    For strangers nobody does: their proxy may be on this machine.
    """
    request = gradio_private.request()
    if request is None:
        return False
    scope = gradio_private.scope_of(request)
    if LEADS in scope:
        return bool(scope[LEADS])
    return not is_public() and address_of(request) in ("127.0.0.1", "::1")


def address_of(request: Any) -> str:
    """Where a request of Starlette's or Gradio's comes from. A network of version 6 is one address, for it is often one
    machine's; and so are the programs that come through Gradio's MCP server, which asks the page itself for them.
    """
    if request.headers.get("x-gradio-user") == "mcp":
        return "mcp"
    return one_network(request.client.host if request.client else "")  # behind a proxy: see `doors.py`


def one_network(address: str) -> str:
    try:
        ip = ipaddress.IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if ip.ipv4_mapped or ip.is_loopback:
        return str(ip.ipv4_mapped or ip)
    return str(ipaddress.IPv6Network((ip, 64), strict=False))
