"""What a server's JSON holds, read with care: the right types, sane numbers, whole characters. Else ServerError."""

from __future__ import annotations

import math
from typing import Any

from .base import ServerError

MAX_ID, MAX_DRAFT = 2**31, 256  # of a token; tokens that a cycle may draft, as a trace may hold them


def at(data: Any, *path: str | int) -> Any:
    """What lies there; None where nothing does."""
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


def named(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise unreadable(name)
    return value


def ids(value: Any, name: str = "token ids") -> tuple[int, ...]:
    return tuple(integer(item, name) for item in listed(value, name))


def integer(value: Any, name: str, most: int = MAX_ID) -> int:
    if type(value) is not int or not 0 <= value < most:
        raise unreadable(name)
    return value


def text(value: Any, name: str) -> str:
    """Half characters, which no file can store, become replacement marks."""
    if not isinstance(value, str):
        raise unreadable(name)
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def logprob(value: Any) -> float:
    if type(value) not in (int, float) or math.isnan(value) or value > 1e-3:
        raise unreadable("log-probabilities")
    return min(0.0, float(value))


def label(value: Any) -> str:
    """A short name for labels; "" where there is none."""
    return "".join(c for c in value[:120] if c.isprintable() and c not in "<>") if isinstance(value, str) else ""


def steps(drafted: Any, accepted: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The server's list of its steps: how many tokens each drafted and accepted."""
    lists = tuple(
        tuple(integer(item, "counts of steps", MAX_DRAFT + 1) for item in listed(value, "counts of steps"))
        for value in (drafted, accepted)
    )
    if len(lists[0]) != len(lists[1]) or any(kept > tried for tried, kept in zip(*lists, strict=True)):
        raise unreadable("counts of steps")
    return lists[0], lists[1]


def totals(drafted: Any, accepted: Any, histogram: Any) -> dict[str, Any]:
    """An `Ending`'s sums over its steps; None where the server tells none."""
    return {
        "drafted": None if drafted is None else integer(drafted, "counts of drafts"),
        "accepted": None if accepted is None else integer(accepted, "counts of drafts"),
        "histogram": None if histogram is None else ids(histogram, "counts of steps"),
    }


def unreadable(name: str) -> ServerError:
    return ServerError("The server's answer holds {name} that cannot be read.", name=name)
