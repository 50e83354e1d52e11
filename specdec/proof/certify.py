"""Is this decoding lossless? Three checks of one pair of models at one place of a text.

1. In closed form: the exact distribution of the next token, over every draft, accepted or not, against the target's
row.
2. By sampling: the joint distribution of the next one to three tokens, drawn by the shipped loop, against the target's
own.
3. Greedily: token by token beside plain decoding.

Each holds for the shipped rule, and each can be made to fail: any mistake of `mistakes.py` is planted in that same
loop; where the pair follows a grammar, any of `grammar_mistakes.py`. In a terminal: `specdec certify`.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch

from ..paths import ASSETS
from .checks import closed_form, enumerated, greedy, LOSSLESS, NEAR_TIE, sample, WINDOW
from .goodness_of_fit import distances, draws_beyond, is_red
from .grammar_mistakes import PLANTED
from .mistakes import Mistake, MISTAKES
from .pair import brief, embedded, guided_toy, ModelPair, toy

DRAWS = (100, 1_000, 5_000, 10_000, 20_000)  # where a sample is looked at
EXACT = "float32"  # in it greedy texts are equal without exception
NEWS = 0.25  # seconds between two reports of a growing sample
LONGEST = 120.0  # seconds for a recorded sample that is red: each text that the target excludes needs a new row
RECORDED, PROMPTS = ASSETS / "certificates.json", ASSETS / "prompts.json"


def mistakes_of(pair: ModelPair) -> Mapping[str, Mistake]:
    """Those that can be planted in it."""
    return PLANTED if pair.grammar else MISTAKES


def certify(pair: ModelPair, mistake: Mistake | None, draws: int, seed: int) -> Iterator[dict[str, Any]]:
    """The certificate as it grows: JSON-ready, with the sample as it stood at each of `DRAWS` up to `draws`."""
    told: dict[str, Any] = {
        "pair": pair.name,
        "precision": pair.precision,
        "mistake": mistake.key if mistake else "",
        "draws": draws,
        "k": pair.k,
        "least_k": mistake.least_k if mistake else 1,
        "temperature": pair.params.temperature,
        "top_k": pair.params.top_k,
        "text": [pair.piece(token) for token in pair.words[-WINDOW:]],
        "closed": closed_form(pair, mistake),
        "greedy": greedy(pair, mistake),
        "sampled": [],
        "done": 0,
    }
    if pair.grammar:
        told |= {"grammar": pair.expression, "harmless": bool(mistake and mistake.harmless)}
    yield told
    dice, counts, last = torch.Generator().manual_seed(seed), Counter[tuple[int, ...]](), time.monotonic()
    for before, until in pairwise((0, *(n for n in DRAWS if n <= draws))):
        for text, n in sample(pair, mistake, until - before, dice):
            counts[text] += n
            if time.monotonic() - last > NEWS:
                last = time.monotonic()
                yield {**told, "done": counts.total()}
        found = [[*map(brief, values), ruled_out] for *values, ruled_out in distances(pair.exact, counts)]
        sampled = [*told["sampled"], [until, found]]
        told = {**told, "done": until, "sampled": sampled, "beyond": draws_beyond(until, found)}
        yield told


def record(pairs: Sequence[ModelPair], seed: int = 11) -> dict[str, Any]:
    """For a page that needs no model: the shipped rule and every mistake on every pair."""
    recorded: dict[str, Any] = {}
    for pair in pairs:
        recorded[pair.name] = {}
        for key in ("", *mistakes_of(pair)):
            mistake = mistakes_of(pair).get(key)
            told, began = {}, time.monotonic()
            for state in certify(pair, mistake, max(DRAWS), seed):
                if state["sampled"] and state["done"] == state["sampled"][-1][0]:
                    told = state
                if told and time.monotonic() - began > LONGEST and any(map(is_red, told["sampled"][-1][1])):
                    break
            if pair.name in ("toy", "grammar"):
                told["exact"] = enumerated(pair, mistake)
            recorded[pair.name][key] = told
            print(line(told), flush=True)
    return recorded


def passed(told: dict[str, Any]) -> list[bool]:
    """What the three checks say of a certificate whose sample has been looked at: closed form, sample, greedy text."""
    error, same = told["closed"]["error"], told["greedy"]
    sampled = not any(map(is_red, told["sampled"][-1][1]))
    return [error is not None and error <= LOSSLESS, sampled, same["equal"] == same["of"]]


def line(told: dict[str, Any]) -> str:
    """One certificate for a terminal."""
    closed, sampled, exact = told["closed"], told["sampled"][-1][1], told.get("exact")
    same, rounded = told["greedy"], told["precision"] != EXACT
    near = rounded and same["gap"] is not None and same["gap"] <= NEAR_TIE
    *distributions, equal = passed(told)
    marks = " ".join(["✓" if check else "✗" for check in distributions] + ["≈" if near else "✓" if equal else "✗"])
    tv = " ".join(f"{one[0]:.3f}" for one in sampled)
    more = f"  exact {exact['tv'][-1]:.3g}, draws needed {exact['needed'] or '–'}" if exact else ""
    more += f"  {told['precision']}" if rounded else ""
    more += f", a near-tie at token {same['equal'] + 1}: {same['gap']} apart" if near else ""
    return f"{told['pair']:9} {told['mistake'] or 'none':18} {marks}  error {closed['error']}  {tv}{more}"


def print_all(text: str = "", write: bool = False, dtype: torch.dtype | None = None) -> int:
    """Print the certificates of the toy pair, free and under a grammar, and of the embedded models after `text`; 0.

    In another `dtype` the target is another, and its greedy texts may part at near-ties, which are told. `write`
    records them for the page, after the first story prompt where no text is given.
    """
    text = text or (json.loads(PROMPTS.read_text(encoding="utf-8"))["story"][0] if write else "")
    recorded = record([toy(), guided_toy(), *([embedded(text, dtype)] if text else [])])
    if write:
        RECORDED.write_text(json.dumps(recorded, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    return 0
