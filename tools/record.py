"""`python -m tools.record`: record a run of every drafter in every domain, for the page to play without a model.

The first example of each domain at the page's own settings, one seed, nothing chosen by its outcome. The default
drafter's runs stand beside the folders that this fills: `python -m specdec … --save assets/traces/story.jsonl`.
The first screen's run, and the one that shows the coin, are chosen among SmolLM2's answers: `--choose` prints from what
(`choose.py`), and how to record each.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, replace
from pathlib import Path

from tqdm import tqdm

from specdec.families import zoo
from specdec.families.star import NAME as STAR
from specdec.lanes.race import race, SPECULATIVE
from specdec.methods import DEFAULT, EMBEDDED, METHODS
from specdec.paths import ASSETS
from specdec.traces import file as trace
from specdec.types import SamplingParams

from .choose import candidate, clear_coins, whole_answers
from .options import option, run

DOMAINS = ("story", "code", "facts")
RULES = {"answering": whole_answers, "qa": clear_coins}
CANDIDATES = Path(__file__).with_name("candidates.json")  # questions by kind
K = 3
TEMPERATURE = 0.8
SEED = 7


@dataclass(frozen=True)
class Options:
    """Record a run of every drafter in every domain, for the page to play without a model."""

    drafters: tuple[str, ...] = option((), "which; all of the family without", positional=True)
    tokens: int = option(48, "new tokens per run")
    out: Path = option(ASSETS / "traces", "one folder per drafter, one file per domain")
    family: str = option(EMBEDDED, "whose runs; smollm2: its answers", choices=(EMBEDDED, STAR))
    temperature: float = option(TEMPERATURE, "of the runs; 0 is greedy")
    choose: str | None = option(
        None, "instead: print candidates for the first screen, or of kind qa for the coin", choices=tuple(RULES)
    )
    seeds: int = option(100, "with --choose: sampled runs of each question")
    k: int = option(K, "with --choose: drafts a cycle")


def record(options: Options) -> int:
    return show(options) if options.choose else record_all(options)


def questions() -> dict[str, list[str]]:
    """Load the page's questions, by kind."""
    kinds = json.loads((ASSETS / "questions.json").read_text(encoding="utf-8"))
    return {kind: texts["page"] for kind, texts in kinds.items()}


def record_all(options: Options) -> int:
    """Save a run of each drafter in each domain. ValueError for a drafter that the family lacks."""
    family = zoo.load(options.family)
    every = [name for name in family.drafters if name not in ("none", DEFAULT)]
    every += [method.name for method in METHODS.values() if method.wraps]
    if unknown := set(options.drafters) - set(every):
        raise ValueError(f"there is no drafter {', '.join(sorted(unknown))}; choose from {', '.join(every)}")
    prompts = questions()
    if options.family == EMBEDDED:
        texts = json.loads((ASSETS / "prompts.json").read_text(encoding="utf-8"))
        prompts = {domain: texts[domain] for domain in DOMAINS}
    params = SamplingParams(options.temperature, max_tokens=options.tokens, seed=SEED)
    for drafter in tqdm(options.drafters or every, desc="recording", unit="drafter"):
        first = next(iter(prompts.values()))[0]
        list(race(family, first, drafter, K, replace(params, max_tokens=16)))  # warms up
        for domain, (prompt, *_) in prompts.items():
            events = tuple(race(family, prompt, drafter, K, params))
            header = replace(trace.live_header(prompt, family.describe(), domain), source="recorded")
            path = trace.recording(options.out, domain, drafter)
            path.parent.mkdir(parents=True, exist_ok=True)
            trace.Trace(header, events).save(path)
    return 0


def show(options: Options) -> int:
    """Print SmolLM2's runs that the rule allows, and how to record each. Whole answers may be greedy, too."""
    family, kinds = zoo.load(STAR), json.loads(CANDIDATES.read_text(encoding="utf-8"))
    settings = [SamplingParams(TEMPERATURE, max_tokens=options.tokens, seed=seed) for seed in range(options.seeds)]
    if options.choose == "answering":
        settings.insert(0, SamplingParams(max_tokens=options.tokens))
    kind_of = {prompt: kind for kind, prompts in kinds.items() for prompt in prompts}
    candidates = []
    for prompt in kind_of if options.choose == "answering" else kinds[options.choose]:
        for params in settings:
            events = race(family, prompt, family.default_drafter, options.k, params, details=False)
            one = candidate(prompt, params, [event for event in events if event.lane == SPECULATIVE])
            candidates += [one] if one else []
    for one in RULES[str(options.choose)](candidates):
        x, params, kind = one.rejected, one.params, kind_of[one.prompt]
        print(f"τ {one.tau:.2f}  cycle {one.cycle}: {x.piece!r}, instead {one.instead!r}  q {x.q}  p {x.p}  u {x.u}")
        print(f"  {one.prompt}\n  {one.text}")
        print(
            f"  python -m specdec run {shlex.quote(one.prompt)} --target {STAR} -k {options.k}",
            f"--temperature {params.temperature} --seed {params.seed} --max-tokens {options.tokens}",
            f"--kind {kind} --save assets/traces/{kind}.jsonl\n",
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(run(record, Options, None, "tools.record"))
