"""Measure drafters on prompts of one's own: a row for each prompt and drafter, the slowest first."""

import json
import math
from pathlib import Path
from typing import Any

from pandas import DataFrame
from tqdm import tqdm

from ..engine import Engine
from ..figures.stats import rounded_median, summary
from ..paths import read_prompts
from ..types import SamplingParams
from .measure import Case, measure_pairs, predict
from .suites import probed_costs, write

FIRST_SEED = 1  # of the measured runs, after the warm-up of `measure_pairs`
SHOWN = 40  # characters of a prompt in the table


def measure_prompts(
    engine: Engine, prompts: list[Any], drafters: list[str], k: int, temperature: float, tokens: int, repeats: int
) -> DataFrame:
    """Measure every prompt with every drafter, in pairs with plain decoding.

    With `k` 0, the depth of a drafter is that which `Engine.prepare` expects to be fastest. Speed-ups are medians over
    `repeats`; `predicted` comes from the acceptance on the other prompts and the costs of a probe.
    """
    cases = [Case(name, "own", temperature, k or engine.prepare(name, 0, temperature).k, False) for name in drafters]
    costs = {name: probed_costs(engine.models, name, prompts[0]) for name in drafters}
    with tqdm(total=len(cases) * (len(prompts) * repeats + 1), desc="measuring", unit="pair", mininterval=2) as bar:
        pairs = measure_pairs(engine, tuple(prompts), cases, tokens, repeats, bar.update)
    rows = []
    for case, measured in pairs.items():
        for index, prompt in enumerate(prompts):
            runs = [comparison for place, comparison in measured if place == index]
            others = [comparison.speculative for place, comparison in measured if place != index]
            probed = costs[case.drafter]
            predicted = predict(others, probed and probed.at(temperature))
            figures = summary(runs)
            rows.append(
                {
                    "prompt": index,
                    "text": prompt if isinstance(prompt, str) else prompt[-1]["content"],
                    "drafter": case.drafter,
                    "k": case.k,
                    "alpha": figures["alpha"],
                    "alpha_by_position": figures["alpha_by_position"],
                    "tau": figures["tau"],
                    "speedup": rounded_median(run.measured_speedup for run in runs),
                    "predicted": predicted and round(predicted[0] / predicted[1], 2),
                }
            )
    return DataFrame(sorted(rows, key=lambda row: row["speedup"] or math.inf))


def table(frame: DataFrame) -> str:
    rates = [[f"{rate:.2f}" for rate in places if rate is not None] for places in frame["alpha_by_position"]]
    texts = [" ".join(text.split())[:SHOWN] for text in frame["text"]]
    shown = frame.assign(text=texts, alpha_by_position=list(map(" ".join, rates)))
    names = {"alpha": "α", "alpha_by_position": "α by place", "tau": "τ", "k": "K", "speedup": "speed-up"}
    return shown.rename(columns=names).to_string(index=False, float_format="{:.2f}".format)


def report_prompts(
    engine: Engine, path: Path, drafters: list[str], k: int, temperature: float, tokens: int, repeats: int,
    file: Path | None, save: Path | None,
) -> None:  # fmt: skip
    """Measure, print and write; write a run of the slowest row, with a measured seed, to `save`, for the page."""
    prompts, family = read_prompts(path), engine.models
    drafters = drafters or [name for name, loaded in family.drafters.items() if loaded.part] or [family.default_drafter]
    frame = measure_prompts(engine, prompts, drafters, k, temperature, tokens, repeats)
    print(table(frame))
    write({"rows": json.loads(frame.to_json(orient="records")), "models": family.describe()}, file)
    if save:
        worst = frame.iloc[0]
        params = SamplingParams(temperature, max_tokens=tokens, seed=FIRST_SEED)
        engine.race(prompts[int(worst["prompt"])], str(worst["drafter"]), int(worst["k"]), params=params).save(save)
