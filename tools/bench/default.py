"""Measure the speed-up of the default drafter and K: SmolLM2 on the 48 questions of the page and of the benchmark.

The drafter and K are chosen as for a live run of the page, once for each temperature. The speed-up on a question is the
median over `--repeats` runs; the baseline of a run is the faster of the plain runs before and after it.
"""

import json
from statistics import median
from typing import Any

from tqdm import tqdm

from specdec.bench.measure import Case, measure_pairs
from specdec.bench.suites import TEMPERATURES
from specdec.engine import Engine
from specdec.paths import ASSETS

from .options import Options


def report(options: Options) -> dict[str, Any]:
    engine = Engine("smollm2", dtype="bfloat16", device="cpu")
    questions = json.loads((ASSETS / "questions.json").read_text(encoding="utf-8"))
    entries = [
        (kind, name, text) for kind, lists in questions.items() for name in ("page", "bench") for text in lists[name]
    ]
    rows = []
    for temperature in TEMPERATURES:
        choice = engine.prepare(temperature=temperature)
        for kind, name, question in tqdm(entries, desc=f"{choice.drafter}, K = {choice.k}, T = {temperature}"):
            case = Case(str(choice.drafter), kind, temperature, choice.k, ignore_end=False)
            pairs = measure_pairs(engine, (question,), [case], options.tokens, options.repeats)[case]
            measured = [comparison for _, comparison in pairs]
            setting = {"kind": kind, "list": name, "question": question, "temperature": temperature}
            setting |= {"drafter": choice.drafter, "k": choice.k}
            speedup = median(pair.measured_speedup or 0.0 for pair in measured)
            identical = all(pair.speculative.ids == pair.plain.ids for pair in measured)
            rows.append(setting | {"measured_speedup": speedup, "identical_to_plain": identical})
        speedups = sorted(row["measured_speedup"] for row in rows if row["temperature"] == temperature)
        print(f"T = {temperature}: median {median(speedups):.2f}, worst {speedups[0]:.2f}")
    return {"rows": rows, "models": engine.models.describe()}
