"""Read the prompts of the benchmark: in both files, those under "bench". The page uses the others.

The stories and the code were written for this list. The facts were generated like the questions in training, but
are not the same. Of each kind, we took the first six prompts for which the target's plain greedy text does
not loop, because loops are easy to draft.
"""

import json

from ..paths import ASSETS


def read_prompts(file: str) -> dict[str, tuple[str, ...]]:
    kinds = json.loads((ASSETS / file).read_text(encoding="utf-8"))
    return {kind: tuple(halves["bench"]) for kind, halves in kinds.items() if "bench" in halves}


PROMPTS = read_prompts("prompts.json")  # texts to continue
QUESTIONS = read_prompts("questions.json")  # for chat models, by the categories of SPEED-Bench
