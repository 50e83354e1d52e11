"""Read the prompts of the benchmark: texts under "bench", of which the page uses the others, and all questions.

The stories and the code were written for this list. The facts were generated like the questions in training, but
are not the same. Of each kind, we took the first six prompts for which the target's plain greedy text does
not loop, because loops are easy to draft.
"""

import json

from ..paths import ASSETS


def read_prompts(file: str, *lists: str) -> dict[str, tuple[str, ...]]:
    kinds = json.loads((ASSETS / file).read_text(encoding="utf-8"))
    prompts = {kind: tuple(text for name in lists for text in halves.get(name, ())) for kind, halves in kinds.items()}
    return {kind: texts for kind, texts in prompts.items() if texts}


PROMPTS = read_prompts("prompts.json", "bench")  # texts to continue
QUESTIONS = read_prompts("questions.json", "page", "bench", "more")  # for chat models, by the categories of SPEED-Bench
