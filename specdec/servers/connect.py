"""Decide where requests may go, and find out which server answers there: it says so itself.

A page for this machine alone asks any server; every other only those that its owner lists in SPECDEC_SERVERS, with
commas between.
"""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import urlsplit

from ..exposure import limits
from . import fields
from .base import Server, ServerError
from .fields import at
from .llama_cpp import LlamaCpp
from .stream import Client, Limits
from .vllm import VLLM

LISTED = "SPECDEC_SERVERS"  # the environment's variable
KINDS: dict[str, Any] = {"vllm": VLLM, "llamacpp": LlamaCpp}
PORTS = {"http": 80, "https": 443}


def connect_pair(
    address: str, plain: str | None = "", key: str = "", limits: Limits | None = None
) -> tuple[Server, Server | None]:
    """Connect to the server at `address`, and to the one without speculation at `plain`, if one is named.

    The key goes to the second only where `takes_key` allows it. ServerError as `connect`, before any of them is asked.
    """
    permit(address, plain)
    server = connect(address, key, limits)
    return server, connect(plain, key if takes_key(plain, address) else "", limits) if plain else None


def connect(address: str, key: str = "", limits: Limits | None = None) -> Server:
    """Ask the server at `address` what it is. ServerError where there is none, or this host may not ask it."""
    permit(address)
    client = Client(origin(address), key, limits)
    models = fields.listed(at(client.ask("/v1/models"), "data"), "models")
    if not models or not fields.label(at(models, 0, "id")):
        raise ServerError("The server names no model.")
    kind = KINDS.get(fields.label(at(models, 0, "owned_by")))
    if kind is None:
        raise ServerError("This is none of the servers that can be watched: vLLM, llama.cpp's llama-server.")
    server: Server = kind(client, models[0])
    return server


def takes_key(other: str, address: str) -> bool:
    """Whether the key of the server at `address` may go to `other`, too: to the same host, at any port, and not in
    clear where the server itself is asked over TLS. Names are compared as they are written.
    """
    here, there = urlsplit(origin(address)), urlsplit(origin(other))
    return here.hostname == there.hostname and (here.scheme, there.scheme) != ("https", "http")


def listed_addresses() -> tuple[str, ...]:
    """Return the owner's addresses. ServerError where one of them is no address."""
    return tuple(dict.fromkeys(origin(one) for one in os.environ.get(LISTED, "").split(",") if one.strip()))


def allowed_addresses() -> tuple[str, ...] | None:
    """Return the addresses that may be asked; None for any."""
    return None if limits().any_server else listed_addresses()


def permit(*addresses: str | None) -> None:
    """ServerError where one of these is no address or may not be asked; "" and None are no server. Nothing is sent."""
    places, allowed = {origin(address) for address in addresses if address}, allowed_addresses()
    if allowed is not None and not places <= set(allowed):
        raise ServerError(
            "This page asks only the servers that its owner lists, as in SPECDEC_SERVERS=http://127.0.0.1:8000."
        )


def origin(address: str) -> str:
    """Return `http://host:port` of what a person typed, with or without /v1 after it.

    ServerError where it is no address, or holds a name and password.
    """
    try:
        parts = urlsplit(address.strip())
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in PORTS or not parts.hostname or not parts.netloc.isprintable():
        raise ServerError("A server's address begins with http:// or https://, as in http://127.0.0.1:8000.")
    if "@" in parts.netloc:
        raise ServerError("The address must not hold a name or password. A key has its own place.")
    if parts.path.strip("/") not in ("", "v1") or parts.query or parts.fragment:
        raise ServerError("Give the server's address alone, without a path: as in http://127.0.0.1:8000.")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}" + (f":{port}" if port not in (None, PORTS[parts.scheme]) else "")
