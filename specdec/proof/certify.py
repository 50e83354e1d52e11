"""Check by three tests whether decoding with one pair of models is lossless at one place of a text.

1. In closed form: the exact distribution of the next token, summed over all drafts, equals the target's.
2. By sampling: the next one to three tokens, drawn by the shipped loop, follow the target's joint distribution.
3. Greedily: the text equals that of plain decoding, token by token.

The shipped rule passes. To see a test fail, plant a mistake of `mistakes.py` in the same loop.
`python -m tools.certificates` records the results of the shipped rule and of all mistakes.
"""

import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import torch

from .checks import closed_form, greedy, LOSSLESS, sample, WINDOW
from .goodness_of_fit import distances, is_red
from .mistakes import Mistake
from .pair import ModelPair, rounded

DRAWS = (100, 1_000, 5_000, 10_000, 20_000)  # sample sizes at which the distances are computed
REPORT_EVERY_S = 0.25


def certify(pair: ModelPair, mistake: Mistake | None, draws: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield the certificate as it grows, ready for JSON. The sample is tested at each size in `DRAWS` up to `draws`."""
    result: dict[str, Any] = {
        "pair": pair.name,
        "mistake": mistake.key if mistake else "",
        "draws": draws,
        "k": pair.k,
        "least_k": mistake.least_k if mistake else 1,
        "temperature": pair.params.temperature,
        "top_k": pair.params.top_k,
        "text": [pair.piece(token) for token in pair.shown_text[-WINDOW:]],
        "closed": closed_form(pair, mistake),
        "greedy": greedy(pair, mistake),
        "sampled": [],
        "done": 0,
    }
    yield result
    generator, counts, last_yield = torch.Generator().manual_seed(seed), Counter[tuple[int, ...]](), time.monotonic()
    for before, until in pairwise((0, *(n for n in DRAWS if n <= draws))):
        for text, n in sample(pair, mistake, until - before, generator):
            counts[text] += n
            if time.monotonic() - last_yield > REPORT_EVERY_S:
                last_yield = time.monotonic()
                yield {**result, "done": counts.total()}
        distance = [[*map(rounded, values), ruled_out] for *values, ruled_out in distances(pair.exact, counts)]
        result = {**result, "done": until, "sampled": [*result["sampled"], [until, distance]]}
        yield result


def passed(result: dict[str, Any]) -> list[bool]:
    """Return whether a complete certificate passes each of the three checks: closed form, sample, greedy text."""
    error, greedy_text = result["closed"]["error"], result["greedy"]
    sampled = not any(map(is_red, result["sampled"][-1][1]))
    return [error is not None and error <= LOSSLESS, sampled, greedy_text["equal"] == greedy_text["of"]]
