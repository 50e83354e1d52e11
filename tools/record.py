"""`python -m tools.record`: a run of every drafter in every domain, for the page to play without a model.

The first example of each domain at the page's own settings, one seed, nothing chosen by its outcome. The default
drafter's runs stand apart, beside the folders that this fills: `python -m specdec … --save assets/traces/story.jsonl`.
The first screen's run is chosen, and `--choose DOMAIN` prints from what (`choose.py`), and how to record each.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tqdm import tqdm

from specdec.families import zoo
from specdec.lanes.race import race
from specdec.methods import DEFAULT, METHODS
from specdec.paths import ASSETS
from specdec.traces import file as trace
from specdec.types import SamplingParams

from .choose import choose
from .options import option, run

DOMAINS = ("story", "code", "facts")
K, TEMPERATURE, SEED = 3, 0.8, 7


@dataclass(frozen=True)
class Options:
    """A run of every drafter in every domain, for the page to play without a model."""

    drafters: tuple[str, ...] = option((), "which; all of the family without", positional=True)
    tokens: int = option(48, "new tokens per run")
    out: Path | None = option(None, "one folder per drafter, one file per domain; the page's own without")
    choose: str | None = option(None, "instead: measure candidates for the first screen", choices=DOMAINS)
    seeds: int = option(100, "with --choose: how many candidates")


def record(options: Options) -> int:
    if options.choose:
        return show_candidates(options.choose, options.seeds, options.tokens)
    return record_all(options.drafters, options.tokens, options.out)


def record_all(drafters: Sequence[str] = (), tokens: int = 48, out: Path | None = None) -> int:
    """Runs of these drafters, or of all, of so many new tokens; a folder a drafter, a file a domain."""
    out = out or ASSETS / "traces"
    family = zoo.load()
    wrappers = [m.name for m in METHODS.values() if m.wraps]
    known = [*(name for name in family.drafters if name not in ("none", DEFAULT)), *wrappers]
    if unknown := set(drafters) - set(known):
        raise ValueError(f"there is no drafter {', '.join(sorted(unknown))}; choose from {', '.join(known)}")
    prompts = json.loads((ASSETS / "prompts.json").read_text(encoding="utf-8"))
    params = SamplingParams(TEMPERATURE, max_tokens=tokens, seed=SEED)
    for drafter in tqdm(drafters or known, desc="recording", unit="drafter"):
        list(race(family, prompts["story"][0], drafter, K, replace(params, max_tokens=16)))  # warms up
        for domain in DOMAINS:
            events = tuple(race(family, prompts[domain][0], drafter, K, params))
            header = replace(trace.live_header(prompts[domain][0], family.describe(), domain), source="recorded")
            path = trace.recording(out, domain, drafter)
            path.parent.mkdir(parents=True, exist_ok=True)
            trace.Trace(header, events).save(path)
    return 0


def show_candidates(domain: str, seeds: int, tokens: int) -> int:
    """Prints from what the first screen's run of this domain may be chosen, and how to record each."""
    prompt = json.loads((ASSETS / "prompts.json").read_text(encoding="utf-8"))[domain][0]
    params = SamplingParams(TEMPERATURE, max_tokens=tokens)
    found, middle = choose(zoo.load(), [prompt], DEFAULT, K, params, range(seeds))
    print(f"{len(found)} clear candidates, nearest to the median of τ = {middle:.2f} first\n")
    for one in found:
        told = one.rejected
        assert told is not None and told.q is not None and told.u is not None
        print(f"seed {one.seed}  τ {one.tau:.2f}  rejected in cycle {one.cycle}: {told.piece!r}", end="  ")
        print(f"q {told.q:.2f}  p {told.p:.2f}  u {told.u:.2f}\n  {prompt}{one.text}")
        print(
            f"  python -m specdec run {shlex.quote(prompt)} -k {K} --temperature {TEMPERATURE} --seed {one.seed}",
            f"--max-tokens {tokens} --kind {domain} --save assets/traces/{domain}.jsonl\n",
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(run(record, Options, None, "tools.record"))
