"""The outermost middleware: who asks, under which name, from which other page, and with how much. All else is inside.

A name that a stranger's page was served under may come to mean this machine (DNS rebinding), so a page of one's own
answers only to its own names. What proxies write into headers is believed only of proxies that the owner names
(SPECDEC_PROXIES: addresses or networks, commas between), and on a Space.
"""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import os
import re
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..exposure import limits, SPACE
from ..figures.machine import give_memory_back
from . import bodies
from .api import answer_only_tools
from .refusals import without_words

log = logging.getLogger(__name__)
HOSTS, PROXIES = "SPECDEC_HOSTS", "SPECDEC_PROXIES"
BELIEVED = (b"x-forwarded-", b"forwarded", b"x-real-ip")  # beginnings of headers that a proxy writes
LOCAL = (b"x-gradio-user",)  # of Gradio's MCP server, which asks the page from this machine
NEVER = (b"x-gradio-server",)  # of Gradio's own proxy in Node, which is not used here
NAME = re.compile(r"(?:[a-zA-Z][\w+.-]*://)?(\[[\da-fA-F:.]+\]|[\w.-]+)(?::\d*)?", re.ASCII)


class Door:
    """`own` are the names of this machine under which the page is asked for."""

    def __init__(self, app: ASGIApp, own: frozenset[str]) -> None:
        self.app, self.own = app, own

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = False

        async def tell(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        scope = introduced(scope)
        try:
            self.check_names(scope)
            if bodies.brings(scope):
                receive = bodies.again(await bodies.read(scope, receive), receive)
            await self.app(scope, receive, tell)
        except bodies.Left:
            return
        except bodies.Refused as refused:
            answer = JSONResponse({"detail": str(refused)}, refused.status, {"Connection": "close"})
            await answer(scope, receive, send)
        except Exception as error:
            log.error("a request failed: %s", without_words(error))
            if not started:
                await JSONResponse({"detail": "Something broke here, and was logged."}, 500)(scope, receive, send)

    def check_names(self, scope: Scope) -> None:
        """Refused where the page is asked for under a name, or from a page, that is not its own."""
        hosts, origins = ([v for k, v in scope["headers"] if k == name] for name in (b"host", b"origin"))
        names = [name_in(host.decode("latin-1")) for host in (*hosts, *origins)]
        if len(hosts) != 1 or len(origins) > 1 or None in names:
            raise bodies.Refused(400, "The request names no host that can be read, or no origin.")
        if not limits().only_own_names:
            return
        host, *origin = map(str, names)
        if not (self.is_own(host) or (address_in(host) and not limits().only_loopback)):
            raise bodies.Refused(421, f"This page has another name. Its owner can list this one in {HOSTS}.")
        if origin and origin[0] != host and not self.is_own(origin[0]):
            raise bodies.Refused(403, f"Another site's page may not ask here. The owner can list it in {HOSTS}.")

    def is_own(self, name: str) -> bool:
        address = address_in(name)
        return name in self.own or bool(address and address.is_loopback)


def own_names(listening: str) -> frozenset[str]:
    """This machine's, that of its option --host, and those that the owner lists."""
    here = socket.gethostname()
    listed = os.environ.get(HOSTS, "").split(",")
    said = ("localhost", here, f"{here}.local", listening, *listed)
    return frozenset(name for name in (one.strip().strip("[]").rstrip(".").lower() for one in said) if name)


def name_in(header: str) -> str | None:
    """The name in a header Host or Origin, without its port; None where it cannot be read."""
    found = NAME.fullmatch(header)
    return found[1].strip("[]").rstrip(".").lower() or None if found else None


def address_in(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        found = ipaddress.ip_address(name)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


def introduced(scope: Scope) -> Scope:
    """The request with its visitor's own address, and without what nobody trustworthy says of it."""
    client = scope.get("client")
    peer = client[0] if client else ""
    dropped: tuple[bytes, ...] = NEVER
    networks = proxies()
    if SPACE in os.environ or within(peer, networks):
        told = b",".join(value for name, value in scope["headers"] if name == b"x-forwarded-for").decode("latin-1")
        for one in reversed(told.split(",")):  # each proxy adds whom it heard at the end
            address = address_in(one.strip()) or address_in(name_in(one.strip()) or "")
            if address is None:
                break
            peer = str(address)
            if not within(peer, networks):
                break
    else:
        dropped += BELIEVED
    here = address_in(peer)
    if not (here and here.is_loopback):
        dropped += LOCAL
    headers = [one for one in scope["headers"] if not one[0].startswith(dropped)]
    return {**scope, "headers": headers, "client": (peer, client[1]) if client else None}


def proxies() -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    """ValueError where one of the owner's is no address or network."""
    return [ipaddress.ip_network(one.strip(), False) for one in os.environ.get(PROXIES, "").split(",") if one.strip()]


def within(address: str, networks: list[ipaddress.IPv4Network | ipaddress.IPv6Network]) -> bool:
    found = address_in(address)
    return found is not None and any(found in network for network in networks)


def opened(listening: str) -> Callable[[Any], Any]:
    """What an app does as it starts: put the door around all of it, also around Gradio's own middleware."""
    proxies()

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        assert app.middleware_stack is not None
        app.middleware_stack = Door(app.middleware_stack, own_names(listening))
        answer_only_tools(app)
        give_memory_back()
        yield

    return lifespan
