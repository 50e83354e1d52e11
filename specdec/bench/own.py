"""Measure drafters on prompts of one's own: a row for each prompt and drafter, the slowest first."""

import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pandas import DataFrame
from tqdm import tqdm

from ..engine import Engine, RunFailed
from ..figures.stats import rounded_median, summary
from ..types import SamplingParams
from .measure import Case, measure_pairs, predict
from .suites import probed_costs, write

FIRST_SEED = 1  # of the measured runs, after the warm-up of `measure_pairs`
SHOWN = 40  # characters of a prompt in the table


@dataclass(frozen=True)
class Plan:
    """What is measured: every prompt with every drafter, in pairs with plain decoding."""

    prompts: list[Any]
    drafters: list[str]  # by default the target's trained ones
    k: int = 0  # 0: of each drafter, the depth that `Engine.prepare` expects to be fastest
    temperature: float = 0.0
    tokens: int = 96
    repeats: int = 5


def measure_prompts(engine: Engine, plan: Plan) -> DataFrame:
    """Measure what is planned: speed-ups are medians over the repeats.

    `predicted` comes from the acceptance on the other prompts and the costs of a probe.
    """
    prompts, repeats, models = plan.prompts, plan.repeats, engine.models
    trained = [name for name, loaded in models.drafters.items() if loaded.part]
    names = plan.drafters or trained or [models.default_drafter]
    depths = {name: plan.k or engine.prepare(name, 0, plan.temperature).k for name in names}
    cases = [Case(name, "own", plan.temperature, depths[name], False) for name in names]
    costs = {name: probed_costs(models, name, prompts[0]) for name in names}
    with tqdm(total=len(cases) * (len(prompts) * repeats + 1), desc="measuring", unit="pair", mininterval=2) as bar:
        pairs = measure_pairs(engine, tuple(prompts), cases, plan.tokens, repeats, bar.update)
    rows = []
    for case, measured in pairs.items():
        for index, prompt in enumerate(prompts):
            runs = [comparison for place, comparison in measured if place == index]
            others = [comparison.speculative for place, comparison in measured if place != index]
            probed = costs[case.drafter]
            predicted = predict(others, probed and probed.at(plan.temperature))
            figures = summary(runs)
            rows.append(
                {
                    "prompt": index,
                    "text": prompt[-1]["content"] if isinstance(prompt[-1], dict) else str(prompt),
                    "drafter": case.drafter,
                    "k": case.k,
                    **{name: figures[name] for name in ("alpha", "alpha_by_position", "tau")},
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


def report_prompts(engine: Engine, plan: Plan, file: Path | None = None, save: Path | None = None) -> None:
    """Measure, print and write; write a run of the slowest row, with a measured seed, to `save`, for the page."""
    frame = measure_prompts(engine, plan)
    print(table(frame))
    write({"rows": json.loads(frame.to_json(orient="records")), "models": engine.models.describe()}, file)
    if save:
        worst, params = frame.iloc[0], SamplingParams(plan.temperature, max_tokens=plan.tokens, seed=FIRST_SEED)
        prompt = plan.prompts[int(worst["prompt"])]
        try:
            engine.race(prompt, str(worst["drafter"]), int(worst["k"]), params=params).save(save)
        except RunFailed as failed:
            print(f"The run of the slowest row is not kept: {failed}", file=sys.stderr)
