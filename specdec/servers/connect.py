"""Which server it is, it says itself: the owner of its models."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from . import allowed, fields
from .base import Server, ServerError
from .fields import at
from .llama_cpp import LlamaCpp
from .sglang import SGLang
from .stream import Client, Limits, origin
from .vllm import VLLM

KINDS: dict[str, Any] = {"vllm": VLLM, "sglang": SGLang, "llamacpp": LlamaCpp}


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
    allowed.permit(address, plain)
    both = bool(plain) and takes_key(plain or "", address)
    server = connect(address, key, limits)
    return server, connect(plain, key if both else "", limits) if plain else None


def connect(address: str, key: str = "", limits: Limits | None = None) -> Server:
    """The server at `address`, asked for what it is. ServerError where there is none, or this host may not ask it."""
    place = origin(address)
    client = Client(place, key, limits, allowed.checked(place))
    models = fields.listed(at(client.ask("/v1/models"), "data"), "models")
    if not models or not fields.word(at(models, 0, "id")):
        raise ServerError("The server names no model.")
    kind = KINDS.get(fields.word(at(models, 0, "owned_by")))
    if kind is None:
        raise ServerError("This is none of the servers that can be watched: vLLM, SGLang, llama.cpp's llama-server.")
    server: Server = kind(client, models[0])
    return server
