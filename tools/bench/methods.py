"""The families of the package, measured for README and docs: by place, beside transformers on the same files.

*embedded* has the drafters that need nothing but a second model, *methods* every way of drafting. Rows are those of
`specdec bench`.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from specdec.bench import suites
from specdec.bench.measure import Row, Setting
from specdec.bench.prompts import PROMPTS
from specdec.bench.suites import speedup_of

from . import peers
from .journal import Journal
from .options import Options

LOOPING = 0.1  # rows whose plain text repeats more than this flatter every drafter


def report(options: Options, journal: Journal) -> dict[str, Any]:
    """What the family's ways of drafting give; its rows alone, if time runs out."""
    asked = suites.Options(
        options.suite, options.family, device=options.device, tokens=options.tokens, repeats=options.repeats,
        k=options.k, dtype=options.dtype,
    )  # fmt: skip
    family, seconds = suites.loaded(asked)
    rows = list[Row]()
    for place, _, found in suites.measure(family, asked, PROMPTS):
        rows += journal.measured(place, found)
    if rows:
        print(suites.table(rows))
    if journal.left_out:
        return {"rows": rows, "models": family.describe()}
    headlines = {"greedy": headline(rows, 0.0), "sampled": headline(rows, 0.8)}
    for name, figures in headlines.items():
        print(f"\n{name}: measured speed-up {figures['speedup']}, the median of {figures['domains']}", end="")
        print(f"; looping, left out: {', '.join(figures['looping'])}" if figures["looping"] else "")
    rivals = None
    if family.draft is not None and options.peers and family.precision != "int8":  # transformers has no such target
        rivals = peers.measure(family, PROMPTS, best_settings(rows), options.tokens, min(options.repeats, 5))
        print("tokens/s, greedy, side by side:", ", ".join(f"{name} {rate}" for name, rate in rivals.items()))
    report = {"rows": rows, "peers": rivals, "headline": headlines, "models": family.describe()}
    return report | {"setup_seconds": seconds}


def best_settings(rows: Sequence[Row]) -> dict[str, Setting]:
    """The fastest greedy setting of each domain."""
    greedy = [entry for entry in rows if entry["temperature"] == 0.0]
    domains = dict.fromkeys(str(entry["domain"]) for entry in greedy)
    best = {domain: max((e for e in greedy if e["domain"] == domain), key=speedup_of) for domain in domains}
    return {domain: Setting(str(e["drafter"]), domain, 0.0, int(str(e["k"]))) for domain, e in best.items()}


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
