"""What comes next after a text: by a model, or by how often it came."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from ..models.base import LanguageModel
from ..sampling import probabilities
from ..types import SamplingParams
from .goodness_of_fit import Counts
from .pair import CachedRows

Row = Callable[[tuple[int, ...]], Mapping[int, float]]  # the likely tokens after a text; the others share the rest

SMALL, LEAST = 64, 1e-6  # of a vocabulary no larger every token is listed; of others those that are so likely
UNLISTED = 1e-6  # chance of all others together, at least


def model_row(model: LanguageModel[Any], prompt: tuple[int, ...], params: SamplingParams) -> Row:
    """A model's own rows after `prompt`."""
    rows = CachedRows(model, len(prompt) + params.max_tokens + 1)

    @functools.cache
    def row(text: tuple[int, ...]) -> dict[int, float]:
        distribution = probabilities(rows.logits(prompt + text)[None], params)[0]
        if len(distribution) <= SMALL:
            return dict(enumerate(distribution.tolist()))
        likely = (distribution >= LEAST).nonzero().flatten()
        return leaving_some(dict(zip(likely.tolist(), distribution[likely].tolist(), strict=True)))

    return row


def leaving_some(distribution: Mapping[int, float]) -> dict[int, float]:
    """What is not listed is rare, never impossible: rounding may have left it nothing."""
    scale = min(1.0, (1 - UNLISTED) / math.fsum(distribution.values()))
    return {token: p * scale for token, p in distribution.items()}


def counted_row(counts: Counts) -> Row:
    """How often each token came next."""
    after: dict[tuple[int, ...], Counter[int]] = {}
    for text, n in counts.items():
        for i, token in enumerate(text):
            after.setdefault(text[:i], Counter())[token] += n

    def row(text: tuple[int, ...]) -> dict[int, float]:
        seen = after.get(text, Counter())
        return {token: n / seen.total() for token, n in seen.items()}

    return row
