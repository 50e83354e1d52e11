"""Read values from a server's JSON and check their types and ranges. A wrong value raises ServerError."""

import math
from typing import Any

from .base import ServerError

MAX_ID = 2**31
MAX_DRAFT = 256  # most tokens that a cycle can draft; traces have the same limit


def at(data: Any, *path: str | int) -> Any:
    """Return the value at `path` in nested JSON objects and lists; None if there is no such value."""
    for step in path:
        if isinstance(step, str):
            data = data.get(step) if isinstance(data, dict) else None
        else:
            data = data[step] if isinstance(data, list) and len(data) > step else None
    return data


def listed(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise unreadable(name)
    return value


def integers(value: Any, name: str = "token ids") -> tuple[int, ...]:
    return tuple(integer(item, name) for item in listed(value, name))


def integer(value: Any, name: str) -> int:
    if type(value) is not int or not 0 <= value < MAX_ID:
        raise unreadable(name)
    return value


def text(value: Any, name: str) -> str:
    """Return a text, with lone surrogates replaced, because no UTF-8 file can store them."""
    if not isinstance(value, str):
        raise unreadable(name)
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def logprob(value: Any) -> float:
    if type(value) not in (int, float) or math.isnan(value) or value > 1e-3:
        raise unreadable("log-probabilities")
    return min(0.0, float(value))


def label(value: Any) -> str:
    """Return a short printable name; "" if `value` is not a string."""
    return "".join(c for c in value[:120] if c.isprintable() and c not in "<>") if isinstance(value, str) else ""


def context(value: Any) -> int | None:
    return value if type(value) is int and value > 0 else None


def unreadable(name: str) -> ServerError:
    return ServerError("The server's answer holds {name} that cannot be read.", name=name)
