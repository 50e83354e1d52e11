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


def same_host(address: str, other: str) -> bool:
    """Whether a key may go there, too: to no other machine than its server's. ServerError where one is no address."""
    return urlsplit(origin(address)).hostname == urlsplit(origin(other)).hostname


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
