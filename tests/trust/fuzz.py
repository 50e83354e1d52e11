"""Inputs that coverage leads to, at every route: `python -m tools.fuzz`, counted."""

from __future__ import annotations

from tools import fuzz

from .figures import at_least, Figure, none

SECONDS, INPUTS, EDGES = 1_200.0, 5_000, 2_000


def count(long: bool) -> list[Figure]:
    """Long only: the short form of the report has the same doors in `bad_input`."""
    told = {name: fuzz.fuzz(door, SECONDS / len(fuzz.DOORS), 10**9) for name, door in fuzz.DOORS.items()}
    kinds = [one["kind"] for done in told.values() for one in done["found"].values()]
    figures = [
        at_least("inputs", sum(done["inputs"] for done in told.values()), INPUTS),
        at_least("ways from line to line that they took", sum(done["edges"] for done in told.values()), EDGES),
        *(none(kind, kinds.count(kind)) for kind in fuzz.KINDS),
    ]
    aside = kinds.count(fuzz.ASIDE)
    figures.append(Figure("kinds of tracebacks that Gradio writes by itself", f"{aside}", "", True))
    rates = ", ".join(f"{name} {done['inputs']:,} at {done['per_second']} a second" for name, done in told.items())
    figures.append(Figure("by door", rates, "", True))
    peak = max(done["peak_mb"] for done in told.values())
    figures.append(Figure("most memory", f"{peak:,} MB", "", True))
    return [*figures, *(Figure(where[:300], "", "", False) for where in wrong(told))]


def wrong(told: dict[str, dict[str, dict[str, dict[str, str]]]]) -> list[str]:
    found = [(where, one) for done in told.values() for where, one in done["found"].items()]
    return [where for where, one in found if one["kind"] != fuzz.ASIDE][:5]
