"""Measure a family for README and docs: its drafters, and transformers on the same files."""

from collections.abc import Sequence
from statistics import median
from typing import Any

from specdec.bench import suites
from specdec.bench.measure import Case, Row
from specdec.bench.suites import PROMPTS, speedup_of
from specdec.methods import ADAPTIVE, DRAFT_MODEL, LOOKUP

from . import peers
from .options import Options

FEW = 6  # prompts of each kind where there are many drafters, or one takes ten times as long
LOOPING = 0.1  # share of repeated 8-grams; texts with more are too easy to draft


def report(options: Options) -> dict[str, Any]:
    few = {kind: texts[:FEW] for kind, texts in PROMPTS.items()}
    headline_only = options.suite == "embedded"
    drafters = (LOOKUP, DRAFT_MODEL, ADAPTIVE) if headline_only else ()  # or all
    prompts = PROMPTS if headline_only else few
    engine = suites.make_engine(options.target, (), options.dtype, options.device)
    rows = list(suites.measure_drafters(engine, prompts, drafters, options.k, options.tokens, options.repeats))
    family = engine.models
    print(suites.table(rows))
    result = {"rows": rows, "models": family.describe(), "peers": None}
    result["headline"] = {"greedy": headline(rows, 0.0), "sampled": headline(rows, 0.8)}
    if DRAFT_MODEL in family.drafts and options.peers and family.precision != "int8":  # transformers has no int8 target
        result["peers"] = peers.measure(engine, few, best_cases(rows), options.tokens, min(options.repeats, 5))
    print(result["headline"], result["peers"], sep="\n")
    return result


def best_cases(rows: Sequence[Row]) -> dict[str, Case]:
    """Return the fastest greedy case of each domain."""
    best: dict[str, Row] = {}
    for entry in sorted((row for row in rows if row["temperature"] == 0.0), key=speedup_of):
        best[str(entry["domain"])] = entry
    return {domain: Case(str(e["drafter"]), domain, 0.0, int(str(e["k"]))) for domain, e in best.items()}


def headline(rows: Sequence[Row], temperature: float) -> dict[str, Any]:
    """Return the median over domains of the highest speed-up. Rows whose texts loop are left out."""
    best: dict[str, float] = {}
    for entry in rows:
        looping = not isinstance(entry["repetition"], float) or entry["repetition"] > LOOPING
        if entry["temperature"] == temperature and not looping:
            domain = str(entry["domain"])
            best[domain] = max(best.get(domain, 0.0), speedup_of(entry))
    left_out = sorted({str(entry["domain"]) for entry in rows} - set(best))
    return {"speedup": round(median(best.values()), 3) if best else None, "domains": best, "looping": left_out}
