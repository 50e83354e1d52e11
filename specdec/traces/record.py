"""`python -m specdec.record`: a run of every drafter in every domain, for the page to play without a model.

The first example of each domain at the page's own settings, one seed, nothing chosen by its outcome. The default
drafter's runs stand apart, beside the folders that this fills: `python -m specdec … --save assets/traces/story.jsonl`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tqdm import tqdm

from ..assets import ASSETS
from ..families import zoo
from ..lanes.race import race
from ..methods import ADAPTIVE, DEFAULT
from ..types import SamplingParams
from . import file as trace

DOMAINS = ("story", "code", "facts")
K, TEMPERATURE, SEED = 3, 0.8, 7


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m specdec.record", description=__doc__)
    parser.add_argument("drafters", nargs="*", help="which (default: all of the family)")
    parser.add_argument("--tokens", type=int, default=48, help="new tokens per run (default 48)")
    parser.add_argument("--out", type=Path, default=ASSETS / "traces", help="one folder a drafter, one file a domain")
    options = parser.parse_args(arguments)
    family = zoo.load()
    known = [*(name for name in family.drafters if name not in ("none", DEFAULT)), ADAPTIVE]
    if unknown := set(options.drafters) - set(known):
        parser.error(f"no drafter {', '.join(sorted(unknown))}: choose from {', '.join(known)}")
    prompts = json.loads((ASSETS / "prompts.json").read_text(encoding="utf-8"))
    params = SamplingParams(TEMPERATURE, max_tokens=options.tokens, seed=SEED)
    for drafter in tqdm(options.drafters or known, desc="recording", unit="drafter"):
        list(race(family, prompts["story"][0], drafter, K, replace(params, max_tokens=16)))  # warms up
        for domain in DOMAINS:
            events = tuple(race(family, prompts[domain][0], drafter, K, params))
            header = replace(trace.live_header(prompts[domain][0], family.describe(), domain), source="recorded")
            path = trace.recording(options.out, domain, drafter)
            path.parent.mkdir(parents=True, exist_ok=True)
            trace.Trace(header, events).save(path)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
