"""Random edits of one field of a recorded run: is each refused, or audited to the end, and how many are found?

`python -m tests.traces.mutations [EDITS] [SEED]` prints the share by kind of field.
"""

from __future__ import annotations

import random
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
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
LIMIT = 60  # seconds for one edit; a hundredth is usual


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


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """TimeoutError in whatever does not end; where there are no alarms, nothing."""

    def ring(*_: object) -> None:
        raise TimeoutError

    if not hasattr(signal, "SIGALRM"):
        yield
        return
    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def outcome(lanes: tuple[str, ...], events: list[Event], at: int, data: dict[str, Any]) -> bool:
    """Whether the edit is refused or found. Anything but a refusal must be audited, compared and counted to the end."""
    with within(LIMIT):
        try:
            edited = [*events[:at], from_dict(data), *events[at + 1 :]]
            shape = Shape()
            for event in edited:
                shape.take(event)
        except ValueError:  # what `Trace.loads` names with its line
            return True
        found = not holds(audit(lanes, edited))
        str(compare(events, edited, lanes[0]))
        _ = Comparison.of(edited).accounted_speedup
        return found


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


def told(found: Counter[str], tried: Counter[str]) -> str:
    named = [sum(counts[kind] for kind in NAMED) for counts in (found, tried)]
    lines = [f"the audit finds {named[0]} of {named[1]} edits of {', '.join(NAMED)} ({named[0] / named[1]:.0%})"]
    lines.append(f"of all {sum(tried.values())} edits {sum(found.values()) / sum(tried.values()):.0%}: ")
    lines[-1] += ", ".join(f"{kind} {found[kind] / n:.0%}" for kind, n in sorted(tried.items()))
    return "\n".join(lines)


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:3]]
    print(told(*edits(*{0: (1500, 1), 1: (*numbers, 1), 2: tuple(numbers)}[len(numbers)])))
