"""`python -m tools.record`: a run of every drafter in every domain, for the page to play without a model.

The first example of each domain at the page's own settings, one seed, nothing chosen by its outcome. The default
drafter's runs stand apart, beside the folders that this fills: `python -m specdec … --save assets/traces/story.jsonl`.
The first screen's run is chosen, and `--choose DOMAIN` prints from what (`choose.py`), and how to record each;
`--choose answering --family smollm2` does so among the star's answers, and `--choose qa` among those that are sampled
and show the coin (`assets/traces/tips.jsonl`).
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tqdm import tqdm

from specdec.families import zoo
from specdec.families.star import NAME as STAR
from specdec.lanes.race import race
from specdec.methods import DEFAULT, EMBEDDED, METHODS
from specdec.paths import ASSETS
from specdec.traces import file as trace
from specdec.types import SamplingParams

from .choose import answers, choose
from .options import option, run

DOMAINS = ("story", "code", "facts")
ANSWERING, SAMPLED = "answering", "qa"  # candidates among the star's answers
CANDIDATES = Path(__file__).with_name("candidates.json")  # what it is asked, by kind
K, TEMPERATURE, SEED = 3, 0.8, 7


@dataclass(frozen=True)
class Options:
    """A run of every drafter in every domain, for the page to play without a model."""

    drafters: tuple[str, ...] = option((), "which; all of the family without", positional=True)
    tokens: int = option(48, "new tokens per run")
    out: Path | None = option(None, "one folder per drafter, one file per domain; the page's own without")
    family: str = option(EMBEDDED, "whose runs; smollm2: its answers", choices=(EMBEDDED, STAR))
    temperature: float = option(TEMPERATURE, "of the runs; 0 is greedy")
    choose: str | None = option(
        None,
        "instead: measure candidates for the first screen; answering, qa: of smollm2",
        choices=(*DOMAINS, ANSWERING, SAMPLED),
    )
    seeds: int = option(100, "with --choose: how many candidates; with answering, those that are sampled")
    k: int = option(K, "with --choose answering: drafts a cycle")


def record(options: Options) -> int:
    if (options.choose in (ANSWERING, SAMPLED)) != (options.choose is not None and options.family == STAR):
        raise ValueError("--choose answering and qa belong to --family smollm2, and the others to the embedded family")
    if options.choose == ANSWERING:
        return show_answers(options.seeds, options.tokens, options.k)
    if options.choose:
        return show_candidates(options.choose, options.family, options.seeds, options.tokens, options.k)
    return record_all(options.drafters, options.tokens, options.out, options.family, options.temperature)


def questions() -> dict[str, list[str]]:
    """Those of the page, by kind."""
    found = json.loads((ASSETS / "questions.json").read_text(encoding="utf-8"))
    return {kind: asked["page"] for kind, asked in found.items()}


def record_all(
    drafters: Sequence[str] = (), tokens: int = 48, out: Path | None = None, name: str = EMBEDDED,
    temperature: float = TEMPERATURE,
) -> int:  # fmt: skip
    """Runs of these drafters, or of all, of so many new tokens; a folder a drafter, a file a domain."""
    out = out or ASSETS / "traces"
    family = zoo.load(name)
    wrappers = [m.name for m in METHODS.values() if m.wraps]
    known = [*(name for name in family.drafters if name not in ("none", DEFAULT)), *wrappers]
    if unknown := set(drafters) - set(known):
        raise ValueError(f"there is no drafter {', '.join(sorted(unknown))}; choose from {', '.join(known)}")
    prompts = json.loads((ASSETS / "prompts.json").read_text(encoding="utf-8")) if name == EMBEDDED else questions()
    domains = DOMAINS if name == EMBEDDED else tuple(prompts)
    params = SamplingParams(temperature, max_tokens=tokens, seed=SEED)
    for drafter in tqdm(drafters or known, desc="recording", unit="drafter"):
        list(race(family, prompts[domains[0]][0], drafter, K, replace(params, max_tokens=16)))  # warms up
        for domain in domains:
            events = tuple(race(family, prompts[domain][0], drafter, K, params))
            header = replace(trace.live_header(prompts[domain][0], family.describe(), domain), source="recorded")
            path = trace.recording(out, domain, drafter)
            path.parent.mkdir(parents=True, exist_ok=True)
            trace.Trace(header, events).save(path)
    return 0


def show_candidates(domain: str, name: str, seeds: int, tokens: int, k: int) -> int:
    """Prints from what a run that shows the coin may be chosen, and how to record each: after the first prompt of the
    embedded family's domain, or after each of the star's candidates of that kind."""
    texts = CANDIDATES if name == STAR else ASSETS / "prompts.json"
    prompts = json.loads(texts.read_text(encoding="utf-8"))[domain]
    params, family = SamplingParams(TEMPERATURE, max_tokens=tokens), zoo.load(name)
    asked = prompts if name == STAR else prompts[:1]
    found, middle = choose(family, asked, family.usual, k, params, range(seeds))
    print(f"{len(found)} clear candidates, nearest to the median of τ = {middle:.2f} first\n")
    for one in found:
        told = one.rejected
        assert told is not None and told.q is not None and told.u is not None
        print(f"seed {one.seed}  τ {one.tau:.2f}  rejected in cycle {one.cycle}: {told.piece!r}", end="  ")
        print(f"q {told.q:.2f}  p {told.p:.2f}  u {told.u:.2f}\n  {one.prompt} {one.text}")
        print(
            f"  python -m specdec run {shlex.quote(one.prompt)} --target {name} -k {k} --temperature {TEMPERATURE}",
            f"--seed {one.seed} --max-tokens {tokens} --kind {domain} --save assets/traces/{domain}.jsonl\n",
        )
    return 0


def show_answers(seeds: int, tokens: int, k: int) -> int:
    """Prints from what of the star's answers a first screen may be chosen, and how to record each."""
    asked = json.loads(CANDIDATES.read_text(encoding="utf-8"))
    family, kinds = zoo.load(STAR), {prompt: kind for kind, prompts in asked.items() for prompt in prompts}
    sampled = (SamplingParams(TEMPERATURE, max_tokens=tokens, seed=seed) for seed in range(seeds))
    found = answers(family, kinds, family.usual, k, [SamplingParams(max_tokens=tokens), *sampled])
    print(f"{len(found)} answers that end, repeat nothing and show a word for a word, highest τ first\n")
    for one in found:
        print(f"T {one.temperature}  seed {one.seed}  τ {one.tau:.2f}  {one.rejected!r}, instead {one.instead!r}")
        print(f"  {one.prompt}\n  {one.text}")
        print(
            f"  python -m specdec run {shlex.quote(one.prompt)} --target {STAR} -k {k}",
            f"--temperature {one.temperature} --seed {one.seed} --max-tokens {tokens} --kind {kinds[one.prompt]}",
            f"--save assets/traces/{kinds[one.prompt]}.jsonl\n",
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(run(record, Options, None, "tools.record"))
