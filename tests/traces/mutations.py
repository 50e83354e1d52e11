"""Random edits of one field of a recorded run: is each refused, or audited to the end, and how many are found?"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

from specdec.events import Event, from_dict, to_dict
from specdec.figures.stats import Comparison
from specdec.paths import ASSETS
from specdec.traces.audit import audit, holds
from specdec.traces.compare import compare
from specdec.traces.file import Trace
from specdec.traces.shape import Shape

# What the edits of an event's fields are counted as. Left alone: what no run can contradict (its machine, its id) and
# clock times, which may shift between two others.
KINDS = {
    "p": "p", "q": "q", "u": "coins", "status": "status", "token": "ids", "tokens": "ids", "piece": "pieces",
    "pieces": "pieces", "text": "text", "parents": "structure", "node": "structure", "cycle": "structure",
    "lane": "structure", "total": "structure", "accepted": "structure", "kind": "structure", "event": "structure",
    "prob": "laws", "rest": "laws", "entropy": "laws", "overlap": "laws", "k": "settings", "temperature": "settings",
    "top_k": "settings", "top_p": "settings", "max_tokens": "settings", "seed": "settings", "stop": "settings",
    "ignore_end": "settings", "rule": "settings", "lossless": "settings", "prompt_tokens": "settings",
    "reason": "settings",
}  # fmt: skip
NAMED = ("p", "q", "status", "ids", "text", "pieces", "settings")  # what the audit promises to find most of


def places(value: Any, kind: str = "") -> Iterator[tuple[Any, Any, str]]:
    """Every leaf of an event: what holds it, under which key, and its kind."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        known = KINDS.get(key, "") if isinstance(value, dict) else kind
        if isinstance(item, dict) or (isinstance(item, list) and item):
            yield from places(item, known)
        elif known:
            yield value, key, known


def changed(value: Any, rng: random.Random) -> Any:
    """Another value, mostly of the same type."""
    if rng.random() < 0.05:
        return rng.choice([None, -1, 2**63, "", [], {}, True, 1e300])
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice([value + 1, value - 1, value + rng.randint(2, 500), 0 if value else 7])
    if isinstance(value, float):
        return rng.choice([value + 0.1, value * 0.5 + 0.01, 1.0 - value, rng.random()])
    if isinstance(value, str):
        names = {"accepted", "rejected", "discarded", "bonus", "resampled", "length", "end", "stop"}
        return (
            rng.choice(sorted(names - {value})) if value in names else rng.choice([value + "x", value[1:] + " ", "?"])
        )
    return rng.choice([[1], ["x"], 0])


def outcome(lanes: tuple[str, ...], events: list[Event], at: int, data: dict[str, Any]) -> bool:
    """Whether the edit is refused or found. Anything but a refusal must be audited, compared and counted to the end."""
    try:
        edited = [*events[:at], from_dict(data), *events[at + 1 :]]
        shape = Shape()
        for event in edited:
            shape.take(event)
    except ValueError:  # what `Trace.loads` names with its line
        return True
    str(compare(events, edited, lanes[0]))
    _ = Comparison.of(edited).accounted_speedup
    return not holds(audit(lanes, edited))


def edits(count: int, seed: int) -> tuple[Counter[str], Counter[str]]:
    """How many were found, and how many there were, by kind. Kinds come equally often, traces too."""
    rng, found, tried = random.Random(seed), Counter[str](), Counter[str]()
    paths = sorted((ASSETS / "traces").glob("**/*.jsonl"))
    rng.shuffle(paths)
    share = -(-count // len(paths))
    for path in paths:
        trace = Trace.load(path)
        events, done = list(trace.events), 0
        having: dict[str, list[int]] = {}  # events with such a field
        for at, event in enumerate(events):
            for kind in {kind for _, _, kind in places(to_dict(event))}:
                having.setdefault(kind, []).append(at)
        while done < share:
            kind = rng.choice(sorted(having))
            at = rng.choice(having[kind])
            data = to_dict(events[at])
            holder, key, _ = rng.choice([place for place in places(data) if place[2] == kind])
            before = holder[key]
            holder[key] = changed(before, rng)
            if holder[key] == before:
                continue
            done += 1
            tried[kind] += 1
            found[kind] += outcome(trace.header.lanes, events, at, data)
    return found, tried
