"""Temperature, top-k and top-p a second time, in plain floats and apart from `sampling.py`.

What the proofs call exact is computed with this one, so a mistake in the shipped warp shows.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence

from ..types import SamplingParams


def warped(logits: Sequence[float], params: SamplingParams) -> list[float]:
    """The distribution that a token is drawn from, by its id.

    Tokens join from the likeliest down, of equals the lower id first: one at temperature 0, else at most `top_k`, and
    none once those before it have `top_p` of what top-k left.
    """
    most = 1 if params.temperature == 0.0 else params.top_k or len(logits)
    joined = heapq.nsmallest(most, range(len(logits)), key=lambda token: -logits[token])  # stable, as `sorted` is
    highest, temperature = logits[joined[0]], params.temperature or 1.0
    weights = [math.exp((logits[token] - highest) / temperature) for token in joined]
    whole, reached, chosen = math.fsum(weights), 0.0, dict[int, float]()
    for token, weight in zip(joined, weights, strict=True):
        if params.top_p < 1.0 and reached >= params.top_p * whole:
            break
        chosen[token] = weight
        reached += weight
    return [chosen.get(token, 0.0) / reached for token in range(len(logits))]
