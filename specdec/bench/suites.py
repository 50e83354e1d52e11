"""Run `specdec bench`: print a table of measured figures and, as the last line, JSON.

The suite *embedded* measures drafters that transformers also has, and `adaptive`. The suite *methods* measures all
drafters of the family; the suite *pair*, those of your own pair (`--target`, `--draft`). A target with a chat template
gets questions as prompts; other targets get texts to continue.
"""

import contextlib
import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import product
from pathlib import Path
from typing import Any

import pandas
from tqdm import tqdm

from .. import __version__
from ..engine import Engine
from ..figures import machine
from ..lanes import probe
from ..methods import ADAPTIVE, DRAFT_MODEL, inner_drafter, METHODS
from ..paths import write_text
from ..types import Costs
from .digest import digests
from .measure import Case, measure_pairs, prediction, Row, row
from .own import report_prompts
from .prompts import PROMPTS, QUESTIONS

SUITES = ("embedded", "methods", "pair")
TEMPERATURES = (0.0, 0.8)
BENCH_ADAPTIVE_K = 16  # the largest depth for drafters that choose the depth themselves
CACHED_CYCLES = 24  # `gpu.cycle.DeviceCycle` objects to keep for later runs; each uses one of torch's 32 streams
CHOOSING_ROUNDS = 1  # trial rounds, which choose the best k
Prompts = Mapping[str, Sequence[str]]  # by domain


@dataclass(frozen=True)
class Options:
    suite: str = "embedded"
    family: str = "embedded"
    target: str | None = None
    draft: tuple[str, ...] = ()
    device: str = "cpu"
    tokens: int = 96
    repeats: int = 5
    k: tuple[int, ...] = (2, 4, 6)
    json: Path | None = None
    dtype: str | None = None
    drafter: tuple[str, ...] = ()  # empty: all drafters of the suite
    prompts: Path | None = None  # a file of prompts, in place of the suite's
    temperature: float = 0.0  # of runs on those prompts
    save: Path | None = None  # a file for the slowest run on them

    def __post_init__(self) -> None:
        """Raise ValueError for an unknown suite, or if `target` and `draft` do not fit the suite."""
        if self.suite not in SUITES:
            raise ValueError(f"there is no suite {self.suite!r}; choose from {', '.join(SUITES)}")
        pair = self.suite == "pair"
        if pair != bool(self.target) or (not pair and self.draft):
            raise ValueError("--target and --draft belong to --suite pair, which needs a target")


def drafters_of(suite: str, engine: Engine) -> list[str]:
    names = [name for name in engine.models.drafters if name != "none"]
    if suite == "embedded":
        names = [name for name in names if name in METHODS and METHODS[name].peer and not METHODS[name].variant_of]
    return [*names, *([ADAPTIVE] if DRAFT_MODEL in names else [])]


def measure(engine: Engine, options: Options, prompts: Prompts) -> Iterator[Row]:
    """Yield a row for each domain, temperature and drafter, of several k with the one that was fastest in trials."""
    drafters, family = drafters_of(options.suite, engine), engine.models
    if unknown := [name for name in options.drafter if (inner_drafter(name) or name) not in drafters]:
        raise ValueError(f"there is no drafter {unknown[0]!r} in this suite; choose from {', '.join(drafters)}")
    depths = {name: [BENCH_ADAPTIVE_K] if inner_drafter(name) else options.k for name in options.drafter or drafters}
    trials = {name: len(ks) if len(ks) > 1 else 0 for name, ks in depths.items()}
    rounds = sum(count * (CHOOSING_ROUNDS + 1) + options.repeats + 1 for count in trials.values())
    total = sum(map(len, prompts.values())) * len(TEMPERATURES) * rounds
    with tqdm(total=total, desc="measuring", unit="pair", mininterval=2) as bar:
        for (domain, texts), temperature in product(prompts.items(), TEMPERATURES):
            cases = [Case(name, domain, temperature, k) for name, ks in depths.items() for k in ks]
            compared = [case for case in cases if trials[case.drafter]]
            runs = measure_pairs(engine, tuple(texts), compared, options.tokens, CHOOSING_ROUNDS, bar.update)
            tried = {case: row(case, measured, 0) for case, measured in runs.items()}
            speedups = {case: speedup_of(tried[case]) if case in tried else 0.0 for case in cases}
            best = {case.drafter: case for case in sorted(cases, key=lambda case: speedups[case])}
            chosen = [best[name] for name in depths]
            # New seeds: with the seeds of the trials, the chosen k would look better than it is.
            seed = CHOOSING_ROUNDS + 1
            costs = {case: probed_costs(engine, case.drafter, texts[0]) for case in chosen}  # at the speed of this hour
            pairs = measure_pairs(engine, tuple(texts), chosen, options.tokens, options.repeats, bar.update, seed)
            for case in chosen:
                parameters = family.drafters[family.wrapped(case.drafter) or case.drafter].parameters
                result = row(case, pairs[case], parameters) | prediction(case, pairs[case], costs[case])
                taus = {str(other.k): entry["tau"] for other, entry in tried.items() if other.drafter == case.drafter}
                yield result | {"tau_by_k": taus or {str(case.k): result["tau"]}}


def probed_costs(engine: Engine, drafter: str, text: str) -> Costs | None:
    """Measure the costs of a drafter after `text`, or after a text that repeats itself if it drafts nothing there."""
    for probed in (text, probe.TEXT):
        with contextlib.suppress(ValueError):
            return probe.measure(engine.models, engine.models.wrapped(drafter) or drafter, text=probed)
    return None


def speedup_of(entry: Row) -> float:
    value = entry["measured_speedup"]
    return value if isinstance(value, float) else 0.0


COLUMNS = {
    "drafter": "drafter", "domain": "domain", "temperature": "T", "k": "K", "alpha": "α", "tau": "τ",
    "draft_cost": "c", "verify_cost": "v", "plain_tokens_per_second": "plain tok/s", "tokens_per_second": "tok/s",
    "measured_speedup": "measured", "worst_prompt_speedup": "worst",
    "accounted_speedup": "accounted", "predicted_speedup": "predicted", "unseen_speedup": "unseen",
    "identical_to_plain": "identical", "repetition": "repetition",
}  # fmt: skip


def table(rows: Sequence[Row]) -> str:
    frame = pandas.DataFrame(list(rows))[list(COLUMNS)].rename(columns=COLUMNS)
    frame["identical"] = [{True: "yes", False: "NO", None: "–"}[value] for value in frame["identical"]]
    return frame.to_string(index=False, float_format="{:.2f}".format)


def make_engine(options: Options) -> Engine:
    """Make the engine of these options. Raises ValueError if its models do not load."""
    target, draft = options.target or options.family, list(options.draft) or None
    engine = Engine(target, draft, dtype=options.dtype, device=options.device)
    engine.models.resources.max_idle = CACHED_CYCLES  # with fewer, most runs would capture their graphs again
    return engine


def report(options: Options) -> int:
    """Measure, print, and write a file if one is named. Raises ValueError if the models do not load."""
    engine = make_engine(options)
    if options.prompts:
        drafters = list(options.drafter) or [name for name, part in engine.models.drafters.items() if part.part]
        k = options.k[0] if len(options.k) == 1 else 0
        sizes = options.temperature, options.tokens, options.repeats
        return report_prompts(engine, options.prompts, drafters, k, *sizes, options.save)
    rows = list(measure(engine, options, PROMPTS if engine.models.chat is None else QUESTIONS))
    print(table(rows))
    return write({"rows": rows, "models": engine.models.describe()}, options)


def commit() -> str | None:
    root = Path(__file__).resolve().parents[2]
    with contextlib.suppress(OSError):  # a machine without git
        done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=root, capture_output=True, text=True)
        return done.stdout.strip() or None
    return None


def write(result: dict[str, Any], options: Any) -> int:
    """Add provenance to `result`, print it as the last line of the output, and write a file if one is named."""
    result = {"suite": options.suite, "machine": machine.describe()} | result
    models = result.pop("models")
    result["provenance"] = {
        "commit": commit(),
        "version": __version__,
        "measured": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "models": models,
        "digests": digests(models.get("family", "")),
    }
    final = json.dumps(result, ensure_ascii=False)
    if options.json:
        write_text(options.json, final + "\n")
    print(final)
    return 0
