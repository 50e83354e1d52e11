"""From the log-probabilities that a server tells to the distribution that it draws from."""

from __future__ import annotations

import math

from ..types import SamplingParams
from .base import Token

Told = dict[int, float]  # log-probabilities in nats, or probabilities, by token


def is_plain(params: SamplingParams) -> bool:
    """Whether the model's own distribution is the one that is drawn from."""
    return params.temperature == 1.0 and not filters(params)


def filters(params: SamplingParams) -> bool:
    return params.top_k > 0 or params.top_p < 1.0


def warped(logprobs: Told, params: SamplingParams) -> Told:
    """Probabilities after temperature, top-k and top-p, in that order; `logprobs` must hold the whole vocabulary."""
    highest = max(logprobs.values())
    if params.temperature == 0.0:
        return {max(logprobs, key=lambda token: logprobs[token]): 1.0}
    weights = {token: math.exp((value - highest) / params.temperature) for token, value in logprobs.items()}
    order = sorted(weights, key=lambda token: -weights[token])[: params.top_k or None]
    total, before, kept = sum(weights[token] for token in order), 0.0, list[int]()
    for token in order:
        if before >= params.top_p * total and kept:
            break
        kept.append(token)
        before += weights[token]
    mass = sum(weights[token] for token in kept)
    return {token: weights[token] / mass for token in kept}


def greedy(piece: str, number: int | None, logprob: float, top: tuple[tuple[str, float], ...]) -> Token:
    """A token at temperature 0: the distribution is one-hot, on what the model likes best."""
    best = max(top, key=lambda item: item[1], default=(piece, logprob))
    if logprob >= best[1]:
        return Token(piece, number, 0.0, ((piece, 0.0),))
    return Token(piece, number, -math.inf, ((best[0], 0.0),))
