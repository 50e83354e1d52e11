"""What a visitor gains who leaves drafter and K open: SmolLM2 on 48 questions, those of the page and of the tables.

The drafter and K are chosen as a live run of the page chooses them, once for each temperature. Each figure is the
median of `--repeats` pairs of neighbouring runs.
"""

from __future__ import annotations

import json
from statistics import median
from typing import Any

import torch
from tqdm import tqdm

from specdec.bench.measure import Case, measure_pairs
from specdec.bench.suites import TEMPERATURES
from specdec.families.zoo import load
from specdec.lanes.default import choose
from specdec.paths import ASSETS

from .options import Options


def report(options: Options) -> dict[str, Any]:
    family = load("smollm2", torch.bfloat16, "cpu")
    questions = json.loads((ASSETS / "questions.json").read_text(encoding="utf-8"))
    places = [(kind, of, text) for kind, lists in questions.items() for of, texts in lists.items() for text in texts]
    rows = []
    for temperature in TEMPERATURES:
        choice = choose(family, temperature=temperature)
        for kind, of, question in tqdm(places, desc=f"{choice.drafter}, K = {choice.k}, T = {temperature}"):
            case = Case(choice.drafter, kind, temperature, choice.k)
            pairs = measure_pairs(family, (question,), [case], options.tokens, options.repeats)[case]
            measured = [comparison for _, comparison in pairs]
            rows.append(
                {
                    "kind": kind,
                    "list": of,
                    "question": question,
                    "temperature": temperature,
                    "drafter": choice.drafter,
                    "k": choice.k,
                    "measured_speedup": median(one.measured_speedup or 0.0 for one in measured),
                    "identical_to_plain": all(one.speculative.ids == one.plain.ids for one in measured),
                }
            )
        speedups = sorted(row["measured_speedup"] for row in rows if row["temperature"] == temperature)
        print(f"T = {temperature}: median {median(speedups):.2f}, worst {speedups[0]:.2f}")
    return {"rows": rows, "models": family.describe()}
