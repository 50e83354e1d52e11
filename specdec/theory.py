"""Closed forms: what acceptance and costs predict. `math` only.

Letters follow Leviathan et al. 2022 (arXiv 2211.17192): α acceptance rate, k = γ drafted tokens per cycle, c the
cost of one draft token, v of one verification pass, o the overhead of a cycle; costs are in plain steps.
"""

from __future__ import annotations

from collections.abc import Sequence


def expected_tokens(alpha: float, k: int) -> float:
    """Tokens per cycle when every draft is kept with chance α: (1 - α^(k+1)) / (1 - α), equation 1."""
    if not 0.0 <= alpha <= 1.0:
        raise ValueError(f"alpha must lie between 0 and 1, not {alpha}")
    return float(k + 1) if alpha == 1.0 else (1.0 - alpha ** (k + 1)) / (1.0 - alpha)


def tokens_by_position(alphas: Sequence[float], k: float) -> float:
    """Tokens per cycle from acceptance by position: 1 + α₁ + α₁α₂ + …; a fractional k weighs the last term."""
    total, survival = 1.0, 1.0
    for place, alpha in enumerate(alphas):
        if place >= k:
            break
        survival *= alpha
        total += survival * min(1.0, k - place)
    return total


def speedup(alpha: float, k: int, c: float, v: float = 1.0, o: float = 0.0) -> float:
    """Theorem 3.8, with the costs of verification and overhead that the theorem takes as 1 and 0."""
    return expected_tokens(alpha, k) / (k * c + v + o)


def accounted_speedup(
    alphas: Sequence[float], k: float, c: float, v: float, o: float, share: float = 1.0, step: float = 1.0
) -> float:
    """The speed-up that acceptance by position and costs add up to.

    `share` of the cycles have a draft; the others cost `step`, one pass without a draft, and give one token.
    """
    tokens = share * tokens_by_position(alphas, k) + 1.0 - share
    return tokens / (share * (k * c + v) + (1.0 - share) * step + o)


def best_k(alpha: float, c: float, v: float = 1.0, o: float = 0.0, largest: int = 32) -> int:
    """The k of the greatest speed-up; 0 where speculation does not pay."""
    best = max(range(1, largest + 1), key=lambda k: speedup(alpha, k, c, v, o))
    return best if speedup(alpha, best, c, v, o) > 1.0 else 0
