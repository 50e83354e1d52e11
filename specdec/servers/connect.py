"""Where requests may go, and which server answers there: it says so itself, as the owner of its models.

A page for this machine alone asks any server; every other only those that its owner lists. SPECDEC_SERVERS holds their
addresses, commas between. There a name is looked up once, and may mean no machine of the host's own network: such a one
must be listed by its number.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from typing import Any
from urllib.parse import urlsplit

from ..exposure import limits
from . import fields
from .base import Server, ServerError
from .fields import at
from .llama_cpp import LlamaCpp
from .stream import Client, Limits, origin, PORTS
from .vllm import VLLM

LISTED = "SPECDEC_SERVERS"  # the environment's variable
KINDS: dict[str, Any] = {"vllm": VLLM, "llamacpp": LlamaCpp}


def takes_key(other: str, address: str) -> bool:
    """Whether the key of the server at `address` may go to `other`, too: the same host, at any port, and not in clear
    where the server itself is asked over TLS. Names are compared as they are written. ServerError for what is no
    address.
    """
    here, there = urlsplit(origin(address)), urlsplit(origin(other))
    return here.hostname == there.hostname and (here.scheme, there.scheme) != ("https", "http")


def connect_pair(
    address: str, plain: str | None = "", key: str = "", limits: Limits | None = None
) -> tuple[Server, Server | None]:
    """The server at `address`, and the one without speculation at `plain`, if there is one. All who have a key connect
    here: it goes along to the second only where `takes_key` says so. ServerError as `connect`, for either before one is
    asked.
    """
    permit(address, plain)
    both = bool(plain) and takes_key(plain or "", address)
    server = connect(address, key, limits)
    return server, connect(plain, key if both else "", limits) if plain else None


def connect(address: str, key: str = "", limits: Limits | None = None) -> Server:
    """The server at `address`, asked for what it is. ServerError where there is none, or this host may not ask it."""
    place = origin(address)
    client = Client(place, key, limits, pinned_ip(place))
    models = fields.listed(at(client.ask("/v1/models"), "data"), "models")
    if not models or not fields.label(at(models, 0, "id")):
        raise ServerError("The server names no model.")
    kind = KINDS.get(fields.label(at(models, 0, "owned_by")))
    if kind is None:
        raise ServerError("This is none of the servers that can be watched: vLLM, llama.cpp's llama-server.")
    server: Server = kind(client, models[0])
    return server


def listed_addresses() -> tuple[str, ...]:
    """The owner's addresses. ServerError where one of them is no address."""
    said = os.environ.get(LISTED, "")
    return tuple(dict.fromkeys(origin(address) for address in said.split(",") if address.strip()))


def allowed_addresses() -> tuple[str, ...] | None:
    """Those that may be asked; None for any."""
    return None if limits().any_server else listed_addresses()


def permit(*asked: str | None) -> None:
    """ServerError where one of these is no address, or may not be asked; "" and None are no server. Nothing is sent."""
    places, known = [origin(address) for address in asked if address], allowed_addresses()
    if known is not None and not set(places) <= set(known):
        raise ServerError(
            "This page asks only the servers that its owner lists, as in SPECDEC_SERVERS=http://127.0.0.1:8000."
        )


def pinned_ip(place: str) -> str | None:
    """The one IP address that requests to `place` (an origin) go to; None where any will do. Else ServerError."""
    permit(place)
    if allowed_addresses() is None:
        return None
    parts = urlsplit(place)
    host, port = parts.hostname or "", parts.port or PORTS[parts.scheme]
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        found = [ipaddress.ip_address(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    except (OSError, UnicodeError, ValueError):
        raise ServerError("The server's name is not known.") from None
    found = [getattr(ip, "ipv4_mapped", None) or ip for ip in found]
    if not found or not all(ip.is_global and not ip.is_multicast for ip in found):
        raise ServerError(
            "The server's name leads into this host's own network. Its owner can list it by its number instead."
        )
    return str(found[0])
