"""Connect to a server, and find out which kind it is from its own answer."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from . import fields
from .base import Server, ServerError
from .fields import at
from .llama_cpp import LlamaCpp
from .stream import Client, Limits
from .vllm import VLLM

KINDS: dict[str, Any] = {"vllm": VLLM, "llamacpp": LlamaCpp}
PORTS = {"http": 80, "https": 443}


def connect_pair(
    address: str, plain: str | None = "", key: str = "", limits: Limits | None = None
) -> tuple[Server, Server | None]:
    """Connect to the server at `address`, and to the one without speculation at `plain`, if one is named.

    The second gets the key only if `takes_key` allows it. Raises ServerError as `connect` does. Both addresses
    are parsed before the first request is sent.
    """
    other_key = key if plain and takes_key(plain, address) else ""
    server = connect(address, key, limits)
    return server, connect(plain, other_key, limits) if plain else None


def connect(address: str, key: str = "", limits: Limits | None = None) -> Server:
    """Connect to the server at `address`. Raises ServerError if there is none, or none that is supported."""
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
    """Whether the key of the server at `address` may also be sent to `other`.

    `other` must be the same host, written in the same way, at any port. If `address` has TLS, `other` must have it too.
    """
    own, target = urlsplit(origin(address)), urlsplit(origin(other))
    return own.hostname == target.hostname and (own.scheme, target.scheme) != ("https", "http")


def origin(address: str) -> str:
    """Return `http://host:port` of an address that a person typed, with or without /v1 at its end.

    Raises ServerError if it is no address, or contains a name and password.
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
