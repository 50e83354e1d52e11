"""The families of the package, measured for README and docs: by place, beside transformers on the same files.

*embedded* has the drafters that need nothing but a second model, *methods* every way of drafting. Rows are those of
`specdec bench`.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from specdec.bench import suites
from specdec.bench.measure import Case, Row
from specdec.bench.prompts import PROMPTS
from specdec.bench.suites import speedup_of

from . import peers
from .options import Options

LOOPING = 0.1  # rows whose plain text repeats more than this flatter every drafter


def report(options: Options) -> dict[str, Any]:
    shared = {name: getattr(options, name) for name in ("suite", "family", "device", "tokens", "repeats", "k", "dtype")}
    chosen = suites.Options(**shared)
    family = suites.load_models(chosen)
    rows = list(suites.measure(family, chosen, PROMPTS))
    print(suites.table(rows))
    result = {"rows": rows, "models": family.describe(), "peers": None}
    result["headline"] = {"greedy": headline(rows, 0.0), "sampled": headline(rows, 0.8)}
    if family.draft is not None and options.peers and family.precision != "int8":  # transformers has no such target
        result["peers"] = peers.measure(family, PROMPTS, best_cases(rows), options.tokens, min(options.repeats, 5))
    print(result["headline"], result["peers"], sep="\n")
    return result


def best_cases(rows: Sequence[Row]) -> dict[str, Case]:
    """The fastest greedy case of each domain."""
    best: dict[str, Row] = {}
    for entry in sorted((one for one in rows if one["temperature"] == 0.0), key=speedup_of):
        best[str(entry["domain"])] = entry
    return {domain: Case(str(e["drafter"]), domain, 0.0, int(str(e["k"]))) for domain, e in best.items()}


def headline(rows: Sequence[Row], temperature: float) -> dict[str, Any]:
    """The median over the domains of the best drafter's measured speed-up. Looping rows are left out, and named."""
    best: dict[str, float] = {}
    for entry in rows:
        looping = not isinstance(entry["repetition"], float) or entry["repetition"] > LOOPING
        if entry["temperature"] == temperature and not looping:
            domain = str(entry["domain"])
            best[domain] = max(best.get(domain, 0.0), speedup_of(entry))
    left_out = sorted({str(entry["domain"]) for entry in rows} - set(best))
    return {"speedup": round(median(best.values()), 3) if best else None, "domains": best, "looping": left_out}
