"""`python -m tools.record`: record a run of every drafter in every domain, for the page to play without a model.

Each run takes the first example of its domain, with a fixed seed; none is selected by its outcome. A drafter's runs go
to the folder of its name; the draft model's go to `--out` itself.
"""

import json
from dataclasses import dataclass, replace
from pathlib import Path

from tqdm import tqdm

from specdec.engine import Engine
from specdec.families.smollm2 import NAME as SMOLLM2
from specdec.methods import ADAPTIVE, DRAFT_MODEL, EMBEDDED
from specdec.paths import ASSETS
from specdec.traces import file as trace
from specdec.types import SamplingParams

from .options import option, run

DOMAINS = ("story", "code", "facts")
TEMPERATURE = 0.8
SEED = 7


@dataclass(frozen=True)
class Options:
    """Record a run of every drafter in every domain, for the page to play without a model."""

    drafters: tuple[str, ...] = option((), "drafters to record; by default the family's, and adaptive", positional=True)
    tokens: int = option(48, "new tokens per run")
    out: Path = option(ASSETS / "traces", "a folder per drafter (none for the draft model), a file per domain")
    k: int = option(3, "greatest depth of a draft")
    language: str = option("", "record only the prompt that the pages in this language begin with; zh")
    family: str = option(EMBEDDED, "family to record; smollm2 answers questions", choices=(EMBEDDED, SMOLLM2))
    temperature: float = option(TEMPERATURE, "temperature of the runs; 0 is greedy")


def record(options: Options) -> int:
    """Save a run of each drafter in each domain. Raises ValueError for a drafter that the family lacks."""
    engine = Engine(options.family, device="cpu")
    available = [name for name in engine.models.drafters if name != "none"]
    available.append(ADAPTIVE)
    if unknown := set(options.drafters) - set(available):
        raise ValueError(f"there is no drafter {', '.join(sorted(unknown))}; choose from {', '.join(available)}")
    file = "prompts.json" if options.family == EMBEDDED else "questions.json"
    texts = json.loads((ASSETS / file).read_text(encoding="utf-8"))
    prompts = {kind: texts[kind]["page"] for kind in (DOMAINS if options.family == EMBEDDED else texts)}
    if options.language:
        words = json.loads((ASSETS / "text" / options.language / "language.json").read_text(encoding="utf-8"))
        prompts = {options.language: [words["prompt"]]}
    params = SamplingParams(options.temperature, max_tokens=options.tokens, seed=SEED)
    for drafter in tqdm(options.drafters or available, desc="recording", unit="drafter"):
        first = next(iter(prompts.values()))[0]
        engine.race(first, drafter, options.k, params=replace(params, max_tokens=16))  # warms up
        for domain, (prompt, *_) in prompts.items():
            run = engine.race(prompt, drafter, options.k, params=params)
            path = trace.recording(options.out, domain, drafter)
            path = options.out / path.name if drafter == DRAFT_MODEL else path
            path.parent.mkdir(parents=True, exist_ok=True)
            replace(run, header=replace(run.header, kind=domain, source="recorded")).save(path)
    return 0


if __name__ == "__main__":
    raise SystemExit(run(record, Options, None, "tools.record"))
