"""Connect to a server, and recognise vLLM or llama.cpp by its answer to /v1/models."""

from typing import TypeAlias

import httpx

from . import answers
from .answers import at, ServerError
from .llama_cpp import LlamaCpp
from .stream import Client, TOTAL_S
from .vllm import VLLM

Server: TypeAlias = VLLM | LlamaCpp
KINDS: dict[str, type[Server]] = {"vllm": VLLM, "llamacpp": LlamaCpp}


def connect_pair(
    address: str, plain: str | None = "", key: str = "", total_s: float = TOTAL_S
) -> tuple[Server, Server | None]:
    """Connect to a server and perhaps to a plain one, which gets the key if `takes_key` allows it."""
    plain_key = key if plain and takes_key(plain, address) else ""
    server = connect(address, key, total_s)
    return server, connect(plain, plain_key, total_s) if plain else None


def connect(address: str, key: str = "", total_s: float = TOTAL_S) -> Server:
    """Connect to the server at `address`. Raises ServerError if none of a supported kind answers."""
    client = Client(origin(address), key, total_s)
    models = answers.listed(at(client.ask("/v1/models"), "data"), "models")
    if not models or not answers.label(at(models, 0, "id")):
        raise ServerError("The server names no model.")
    kind = KINDS.get(answers.label(at(models, 0, "owned_by")))
    if kind is None:
        raise ServerError("This server is not supported. Only vLLM and llama.cpp's llama-server can be watched.")
    return kind(client, models[0])


def takes_key(other: str, address: str) -> bool:
    """Return whether `other` may get the key of `address`: the same host, at any port, with TLS if that has it."""
    first, second = httpx.URL(origin(address)), httpx.URL(origin(other))
    return first.host == second.host and (first.scheme, second.scheme) != ("https", "http")


def origin(address: str) -> str:
    """Return `http://host:port` or https of an address as typed, perhaps with /v1. Raises ServerError otherwise."""
    try:
        url = httpx.URL(address.strip().lower())
    except httpx.InvalidURL:
        url = httpx.URL("")
    if url.userinfo:
        raise ServerError("The address must not contain a user name or password. Give a key separately.")
    is_origin = url.path.strip("/") in ("", "v1") and not url.query and not url.fragment
    if url.scheme not in ("http", "https") or not url.host or (url.port or 0) >= 2**16 or not is_origin:
        raise ServerError("A server's address has http:// or https:// and no path, as in http://127.0.0.1:8000.")
    return f"{url.scheme}://{url.netloc.decode()}"
