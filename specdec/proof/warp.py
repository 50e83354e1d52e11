"""Apply temperature, top-k and top-p in plain Python, independently of `sampling.py`.

The proofs compute the exact distribution with this file, so that they also notice mistakes in `sampling.py`.
"""

import heapq
import math
from collections.abc import Sequence

from ..types import SamplingParams


def warped(logits: Sequence[float], params: SamplingParams) -> list[float]:
    """Return the probability of each token id.

    Tokens are taken from the likeliest down; of equally likely tokens, the lower id comes first. At temperature 0 only
    one is taken, otherwise up to `top_k`. Of these, top-p keeps the fewest that sum to `top_p` of their total.
    """
    most = 1 if params.temperature == 0.0 else params.top_k or len(logits)
    likeliest = heapq.nsmallest(most, range(len(logits)), key=lambda token: -logits[token])
    highest, temperature = logits[likeliest[0]], params.temperature or 1.0
    weights = [math.exp((logits[token] - highest) / temperature) for token in likeliest]
    total, reached, chosen = math.fsum(weights), 0.0, dict[int, float]()
    for token, weight in zip(likeliest, weights, strict=True):
        if params.top_p < 1.0 and reached >= params.top_p * total:
            break
        chosen[token] = weight
        reached += weight
    return [chosen.get(token, 0.0) / reached for token in range(len(logits))]
