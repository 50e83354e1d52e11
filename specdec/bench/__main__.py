"""`python -m specdec.bench --suite embedded`: a table of measured figures and, last, one line of JSON."""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from statistics import median
from typing import Any

from tqdm import tqdm

from .. import __version__, machine
from ..zoo import Family, load
from . import peers
from .measure import pairs, Row, row, Setting
from .prompts import PROMPTS

LOOPING = 0.1  # rows whose plain text repeats more than this flatter every drafter


def embedded(family: Family, options: argparse.Namespace) -> list[Row]:
    """Every drafter at its best k, by domain and temperature; best by the median measured speed-up."""
    drafters = [name for name in family.drafters if name != "none"]
    extra = {"draft_model": family.draft.parameters if family.draft else 0}
    rows = []
    temperatures = (0.0, 0.8)
    settings_each = len(drafters) * len(options.k)
    total = len(PROMPTS) * len(temperatures) * settings_each * (options.repeats + 1) * len(PROMPTS["story"])
    with tqdm(total=total, desc="measuring", unit="pair", mininterval=2) as bar:
        for domain, prompts in PROMPTS.items():
            for temperature in temperatures:
                settings = [Setting(name, domain, temperature, k) for name in drafters for k in options.k]
                measured = pairs(family, prompts, settings, options.tokens, options.repeats, bar.update)
                for name in drafters:
                    tried = [row(s, p, extra.get(name, 0)) for s, p in measured.items() if s.drafter == name]
                    rows.append(max(tried, key=speedup_of))
    return rows


def speedup_of(entry: Row) -> float:
    value = entry["measured_speedup"]
    return value if isinstance(value, float) else 0.0


def best_settings(rows: Sequence[Row]) -> dict[str, Setting]:
    """The fastest greedy setting of each domain."""
    greedy = [entry for entry in rows if entry["temperature"] == 0.0]
    best = {domain: max((e for e in greedy if e["domain"] == domain), key=speedup_of) for domain in PROMPTS}
    return {domain: Setting(str(e["drafter"]), domain, 0.0, int(str(e["k"]))) for domain, e in best.items()}


COLUMNS = {
    "drafter": "drafter", "domain": "domain", "temperature": "T", "k": "K", "alpha": "α", "tau": "τ",
    "draft_cost": "c", "verify_cost": "v", "plain_tokens_per_second": "plain tok/s", "tokens_per_second": "tok/s",
    "measured_speedup": "measured", "worst_prompt_speedup": "worst", "predicted_speedup": "predicted",
    "accounted_speedup": "accounted", "identical_to_plain": "identical", "repetition": "repetition",
}  # fmt: skip


def table(rows: Sequence[Row]) -> str:
    cells = [list(COLUMNS.values())] + [[shown(entry[key]) for key in COLUMNS] for entry in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in cells)


def shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 100 else f"{value:.2f}"
    return "–" if value is None else str(value)


def headline(rows: Sequence[Row], temperature: float, drafter: str | None = None) -> float | None:
    """The median over the domains of the best drafter's measured speed-up, without looping rows."""
    by_domain: dict[object, float] = {}
    for entry in rows:
        fits = entry["temperature"] == temperature and (drafter is None or entry["drafter"] == drafter)
        if fits and isinstance(entry["repetition"], float) and entry["repetition"] <= LOOPING:
            by_domain[entry["domain"]] = max(by_domain.get(entry["domain"], 0.0), speedup_of(entry))
    return round(median(by_domain.values()), 3) if by_domain else None


def provenance(family: Family) -> dict[str, Any]:
    root = Path(__file__).resolve().parents[2]
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=root, capture_output=True, text=True)
    return {
        "commit": commit.stdout.strip() or None,
        "version": __version__,
        "measured": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "models": family.describe(),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m specdec.bench", description=__doc__)
    parser.add_argument("--suite", choices=("embedded",), default="embedded")
    parser.add_argument("--tokens", type=int, default=96, help="new tokens per run (default 96)")
    parser.add_argument("--repeats", type=int, default=5, help="measured rounds, after one to warm up (default 5)")
    parser.add_argument("-k", type=int, nargs="+", default=[2, 4, 6], help="draft lengths to try (default 2 4 6)")
    parser.add_argument("--no-peers", action="store_true", help="leave transformers' own generation out")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the JSON to a file")
    options = parser.parse_args(arguments)
    family = load("embedded")
    rows = embedded(family, options)
    print(table(rows))
    print(f"\nmeasured speed-up, median over the domains: greedy {headline(rows, 0.0)}, T = 0.8 {headline(rows, 0.8)}")
    rivals = None
    if not options.no_peers:
        rivals = peers.measure(family, best_settings(rows), options.tokens, min(options.repeats, 5))
        print("tokens/s, greedy, side by side:", ", ".join(f"{name} {rate}" for name, rate in rivals.items()))
    report = {
        "suite": options.suite,
        "machine": machine.describe(),
        "rows": rows,
        "peers": rivals,
        "headline": {"greedy": headline(rows, 0.0), "sampled": headline(rows, 0.8)},
        "provenance": provenance(family),
    }
    final = json.dumps(report, ensure_ascii=False)
    if options.json:
        options.json.write_text(final + "\n", encoding="utf-8")
    print(final)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
