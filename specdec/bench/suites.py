"""`specdec bench --suite embedded`: a table of measured figures and, last, one line of JSON.

*embedded* has the drafters that need nothing but a second model, *methods* every way of drafting, *hub* a pair from the
Hub or from folders (`--target`, `--draft`) in the same way. *precision* asks whether to quantise or to draft, beside
llama.cpp (`precision.py`). With `--json` these keep each row as it is
measured, and a second start goes on; `--minutes` bounds them. *server* watches a
server of others (`--server`, `--plain`).
"""

from __future__ import annotations

import contextlib
import inspect
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from math import prod
from pathlib import Path
from statistics import median
from typing import Any

import pandas
from tqdm import tqdm

from .. import __version__
from ..families.zoo import dtype_of, Family, load, load_pair
from ..figures import machine
from ..figures.stats import middle
from ..gpu import lane
from ..methods import ADAPTIVE, AUTO, DEFAULT, is_wrapper, METHODS, TUNED
from . import peers, precision, servers
from .journal import Journal
from .measure import host_syncs, pairs, Row, row, Setting, telling
from .options import Options
from .prompts import EDITS, LOOPS, PROMPTS

TEMPERATURES = (0.0, 0.8)
LOOPING = 0.1  # rows whose plain text repeats more than this flatter every drafter

ADAPTIVE_MOST = 16  # who chooses the depth does so up to this
CYCLES = 24  # of a suite on a GPU that wait for a further run: torch has streams for 32
CHOOSING = 1  # rounds in which the best k is found; the reported rounds come afterwards and are others


def prompts_of(family: Family) -> Mapping[str, Sequence[str]]:
    """By domain. The target that was tuned on edits is asked for some, which the general one cannot continue."""
    return {"edits": EDITS, "loops": LOOPS, "code": PROMPTS["code"]} if family.name == TUNED else PROMPTS


def drafters_of(suite: str, family: Family) -> list[str]:
    names = [name for name in family.drafters if name != "none"]
    if suite == "embedded":
        names = [name for name in names if name in METHODS and METHODS[name].peer and not METHODS[name].variant_of]
    wrappers = [m.name for m in METHODS.values() if m.wraps] if suite == "methods" else [ADAPTIVE]
    return [*names, *(wrappers if DEFAULT in names else [])]


def depths_of(drafter: str, options: Options) -> list[int]:
    return [ADAPTIVE_MOST] if is_wrapper(drafter) else list(options.k)


def measure(family: Family, options: Options, journal: Journal | None = None) -> list[Row]:
    """Every drafter at its best k, by domain and temperature; best by the median measured speed-up."""
    journal = journal or Journal(None, {})
    drafters = drafters_of(options.suite, family)
    rows = []
    rounds = sum(len(depths_of(name, options)) * (CHOOSING + 1) + options.repeats + 1 for name in drafters)
    prompts = prompts_of(family)
    total = sum(map(len, prompts.values())) * len(TEMPERATURES) * rounds
    with tqdm(total=total, desc="measuring", unit="pair", mininterval=2) as bar:
        for domain in prompts:
            for temperature in TEMPERATURES:
                found = side_by_side(family, drafters, domain, temperature, options, bar.update)
                rows += journal.measured(f"{domain}, T = {temperature}", found)
    return rows


def side_by_side(
    family: Family, drafters: Sequence[str], domain: str, temperature: float, options: Options,
    tick: Callable[[], object],
) -> Iterator[Row]:  # fmt: skip
    prompts = tuple(prompts_of(family)[domain])
    settings = [Setting(name, domain, temperature, k) for name in drafters for k in depths_of(name, options)]
    found = pairs(family, prompts, settings, options.tokens, CHOOSING, tick)
    tried = {setting: row(setting, measured, 0) for setting, measured in found.items()}
    scores = {setting: speedup_of(entry) for setting, entry in tried.items()}
    best = [max((s for s in settings if s.drafter == name), key=scores.__getitem__) for name in drafters]
    # Seeds of its own: those that chose K would flatter what they chose.
    measured = pairs(family, prompts, best, options.tokens, options.repeats, tick, CHOOSING + 1)
    for setting in best:
        entry = row(setting, measured[setting], parameters_of(setting.drafter, family))
        by_k = {str(s.k): tried[s]["tau"] for s in settings if s.drafter == setting.drafter}
        syncs = host_syncs(family, setting, prompts[0], options.tokens)
        yield entry | {"tau_by_k": by_k, "host_syncs_per_cycle": syncs}


def parameters_of(drafter: str, family: Family) -> int:
    return sum(family.drafters[name].parameters for name in family.to_probe(drafter) or [drafter])


def speedup_of(entry: Row) -> float:
    value = entry["measured_speedup"]
    return value if isinstance(value, float) else 0.0


def best_settings(rows: Sequence[Row]) -> dict[str, Setting]:
    """The fastest greedy setting of each domain."""
    greedy = [entry for entry in rows if entry["temperature"] == 0.0]
    domains = dict.fromkeys(str(entry["domain"]) for entry in greedy)
    best = {domain: max((e for e in greedy if e["domain"] == domain), key=speedup_of) for domain in domains}
    return {domain: Setting(str(e["drafter"]), domain, 0.0, int(str(e["k"]))) for domain, e in best.items()}


COLUMNS = {
    "drafter": "drafter", "domain": "domain", "temperature": "T", "k": "K", "alpha": "α", "tau": "τ",
    "draft_cost": "c", "verify_cost": "v", "plain_tokens_per_second": "plain tok/s", "tokens_per_second": "tok/s",
    "measured_speedup": "measured", "worst_prompt_speedup": "worst", "predicted_speedup": "predicted",
    "accounted_speedup": "accounted", "identical_to_plain": "identical", "repetition": "repetition",
}  # fmt: skip


def table(rows: Sequence[Row]) -> str:
    frame = pandas.DataFrame(list(rows))[list(COLUMNS)].rename(columns=COLUMNS)
    frame["identical"] = [{True: "yes", False: "NO", None: "–"}[value] for value in frame["identical"]]
    whole = {name: "{:.0f}".format for name in ("plain tok/s", "tok/s")}
    return frame.to_string(index=False, float_format="{:.2f}".format, formatters=whole)


def regret(rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """How far `auto` stays behind the best other method, as a share of that one's speed.

    Over all prompts, by the geometric mean of the places; then at each place, where another method may be the best.
    """
    speeds: dict[str, dict[str, float]] = {}  # by place and method
    for entry in rows:
        place = f"{entry['domain']}, T = {entry['temperature']}"
        speeds.setdefault(place, {})[str(entry["drafter"])] = speedup_of(entry)
    speeds = {place: by_method for place, by_method in speeds.items() if AUTO in by_method}
    everywhere = set.intersection(*map(set, speeds.values())) if speeds else ()
    means = {name: prod(place[name] for place in speeds.values()) ** (1 / len(speeds)) for name in everywhere}
    found: dict[str, dict[str, Any]] = {}
    for place, by_method in {"all": means, **speeds}.items():
        others = {name: speed for name, speed in by_method.items() if name != AUTO and speed}
        if others:
            best = max(others, key=others.__getitem__)
            found[place] = {"best": best, "regret": round(1.0 - by_method[AUTO] / others[best], 3)}
    return found


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


def methods(family: Family, options: Options, journal: Journal) -> dict[str, Any]:
    """What the family's ways of drafting give, beside transformers on the same files; its rows, if time runs out."""
    rows = measure(family, options, journal)
    if rows:
        print(table(rows))
    if journal.left_out:
        return {"rows": rows, "models": family.describe()}
    headlines = {"greedy": headline(rows, 0.0), "sampled": headline(rows, 0.8)}
    for name, figures in headlines.items():
        print(f"\n{name}: measured speed-up {figures['speedup']}, the median of {figures['domains']}", end="")
        print(f"; looping, left out: {', '.join(figures['looping'])}" if figures["looping"] else "")
    behind = regret(rows)
    for place, told in behind.items():
        print(f"{place}: {AUTO} stays {told['regret']:.1%} behind the best single method, {told['best']}")
    rivals, best = None, best_settings(rows)
    if family.draft is not None and options.peers and family.precision != "int8":  # transformers has no such target
        rivals = peers.measure(family, prompts_of(family), best, options.tokens, min(options.repeats, 5))
        print("tokens/s, greedy, side by side:", ", ".join(f"{name} {rate}" for name, rate in rivals.items()))
    shares = [telling(family, s, prompts_of(family)[domain][0], options.tokens) for domain, s in best.items()]
    report = {"rows": rows, "peers": rivals, "headline": headlines, "models": family.describe()}
    report |= {"regret": behind} if behind else {}
    return report | {"event_overhead_share": middle(shares)}


def commit() -> str | None:
    root = Path(__file__).resolve().parents[2]
    with contextlib.suppress(OSError):  # a machine without git
        told = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=root, capture_output=True, text=True)
        return told.stdout.strip() or None
    return None


def provenance(models: dict[str, Any]) -> dict[str, Any]:
    return {
        "commit": commit(),
        "version": __version__,
        "measured": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "models": models,
    }


def of_family(options: Options, journal: Journal) -> dict[str, Any]:
    """What `methods` finds of the family or pair that is asked for."""
    start = time.perf_counter()
    dtype = dtype_of(options.dtype)
    if options.target:
        family = load_pair(options.target, *options.draft, dtype=dtype, device=options.device)
    else:
        family = load(options.family, dtype, options.device)
    setup = time.perf_counter() - start
    if family.target.device != "cpu":
        lane.KEPT = CYCLES  # else most runs would capture anew
    return methods(family, options, journal) | {"setup_seconds": round(setup, 2)}


SUITES: dict[str, Any] = {
    "embedded": of_family, "methods": of_family, "hub": of_family, "precision": precision.report,
    "server": servers.report,
}  # fmt: skip


def report(options: Options) -> int:
    """Measure, print and perhaps write; ValueError for models that cannot be loaded or have no such machine."""
    return measured(SUITES[options.suite], options)


def measured(suite: Callable[..., dict[str, Any]], options: Any) -> int:
    """A suite's report; one that takes a journal keeps each row as it is measured."""
    if "journal" not in inspect.signature(suite).parameters:
        return write(suite(options), options)
    journal = Journal(rows_of(options.json), setting_of(options), options.minutes)
    return finish(suite(options, journal), options, journal)


def rows_of(report: Path | None) -> Path | None:
    """Where the rows of a long suite are kept until its report is whole."""
    return report and report.with_suffix(".rows.jsonl")


def setting_of(options: Any) -> dict[str, Any]:
    """What rows that are to stand in one report must have in common."""
    told = {name: value for name, value in vars(options).items() if name not in ("json", "minutes")}
    return json.loads(json.dumps(told | {"machine": machine.describe(), "commit": commit()}))  # type: ignore[no-any-return]


def finish(report: dict[str, Any], options: Any, journal: Journal) -> int:
    """The report, as far as it goes; the rows' own file is kept where it does not go to the end."""
    if journal.left_out:
        print(f"left out: {'; '.join(journal.left_out)}. The same command, with --json, goes on.", file=sys.stderr)
    code = write(report | {"left_out": journal.left_out}, options)
    journal.close()
    return code


def write(report: dict[str, Any], options: Any) -> int:
    """The last line of the output, and the file, if one is wanted. `models` moves into the provenance."""
    report = {"suite": options.suite, "machine": machine.describe()} | report
    report["provenance"] = provenance(report.pop("models"))
    final = json.dumps(report, ensure_ascii=False)
    if options.json:
        options.json.write_text(final + "\n", encoding="utf-8")
    print(final)
    return 0
