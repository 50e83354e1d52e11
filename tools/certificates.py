"""`python -m tools.certificates`: what the shipped rule and each known mistake do to one place of a text.

With `--record` those that the page shows before anybody samples, after its first story prompt.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

from specdec.families.zoo import dtype_of
from specdec.proof.certify import certify, DRAWS, passed
from specdec.proof.checks import brief, LOSSLESS, NEAR_TIE
from specdec.proof.enumeration import JointDistribution, output_distribution, total_variation
from specdec.proof.goodness_of_fit import draws_needed, is_red
from specdec.proof.mistakes import Mistake, PLANTABLE
from specdec.proof.pair import embedded, ModelPair, next_tokens, toy
from specdec.ui.session import CERTIFICATES
from specdec.ui.text import prompts

from .options import option, run

LONGEST = 120.0  # seconds for a recorded sample that is red: each text that the target excludes needs a new row
EXACT = "float32"  # in it greedy texts are equal without exception


@dataclass(frozen=True)
class Options:
    """Of the toy pair, and of the embedded models after a text."""

    text: str = option("", "certify the embedded models after it, too")
    dtype: str | None = option(None, "of --text: against the target's distribution in it", choices=("bfloat16", "int8"))
    record: bool = option(False, "write what the page shows before anybody samples")

    def __post_init__(self) -> None:
        if self.dtype and (self.record or not self.text):
            raise ValueError("--dtype belongs to a --text; what the page shows is recorded in float32")


def enumerated(pair: ModelPair, mistake: Mistake | None) -> dict[str, Any]:
    """The exact total variation of the next 1, 2, … tokens over every random path, and the draws that would show it."""
    distribution, count = output_distribution(next_tokens(pair, mistake))
    found: list[float] = []
    for length, exact in enumerate(pair.exact, start=1):
        marginal: JointDistribution = {}
        for tokens, chance in distribution.items():
            marginal[tokens[:length]] = marginal.get(tokens[:length], 0.0) + chance
        found.append(total_variation(marginal, exact))
    needed = None if found[-1] <= LOSSLESS else draws_needed(distribution, pair.exact[-1])
    return {"tv": [brief(tv) for tv in found], "paths": count, "needed": needed}


def report(options: Options) -> int:
    """In another dtype the target is another, and its greedy texts may part at near-ties, which are reported."""
    text = options.text or (prompts()["story"][0] if options.record else "")
    recorded: dict[str, dict[str, Any]] = {}
    for pair in [toy(), *([embedded(text, dtype_of(options.dtype))] if text else [])]:
        for key in ("", *PLANTABLE):
            recorded.setdefault(pair.name, {})[key] = result = certificate_of(pair, key)
            print(line(result), flush=True)
    if options.record:
        written = json.dumps(recorded, ensure_ascii=False, separators=(",", ":"))
        CERTIFICATES.write_text(written + "\n", encoding="utf-8")
    return 0


def certificate_of(pair: ModelPair, key: str, seed: int = 11) -> dict[str, Any]:
    """The whole certificate of the shipped rule, or of the mistake `key`; of a toy with what is exact, too."""
    mistake, result, began = PLANTABLE.get(key), dict[str, Any](), time.monotonic()
    for state in certify(pair, mistake, max(DRAWS), seed):
        if state["sampled"] and state["done"] == state["sampled"][-1][0]:
            result = state
        if result and time.monotonic() - began > LONGEST and any(map(is_red, result["sampled"][-1][1])):
            break
    return result | ({"exact": enumerated(pair, mistake)} if pair.name == "toy" else {})


def line(result: dict[str, Any]) -> str:
    """One certificate for a terminal."""
    closed, sampled, exact = result["closed"], result["sampled"][-1][1], result.get("exact")
    same, rounded = result["greedy"], result["precision"] != EXACT
    near = rounded and same["gap"] is not None and same["gap"] <= NEAR_TIE
    *distributions, equal = passed(result)
    marks = " ".join(["✓" if check else "✗" for check in distributions] + ["≈" if near else "✓" if equal else "✗"])
    tv = " ".join(f"{one[0]:.3f}" for one in sampled)
    more = f"  exact {exact['tv'][-1]:.3g}, draws needed {exact['needed'] or '–'}" if exact else ""
    more += f"  {result['precision']}" if rounded else ""
    more += f", a near-tie at token {same['equal'] + 1}: {same['gap']} apart" if near else ""
    return f"{result['pair']:9} {result['mistake'] or 'none':18} {marks}  error {closed['error']}  {tv}{more}"


if __name__ == "__main__":
    raise SystemExit(run(report, Options, None, "tools.certificates"))
