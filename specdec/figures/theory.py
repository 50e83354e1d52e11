"""Closed forms: what acceptance, costs and a machine's peak figures predict. No model, no run; `math` only.

Letters follow Leviathan et al. 2022 (arXiv 2211.17192): α acceptance rate, k = γ drafted tokens per cycle, c the
cost of one draft token, v of one verification pass, o the overhead of a cycle; costs are in plain steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence


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
    tau: float, drafted: float, c: float, v: float, o: float, share: float = 1.0, step: float = 1.0
) -> float:
    """The speed-up that tokens per cycle and costs add up to.

    `share` of the cycles have a draft, of `drafted` tokens; the others cost `step`, one pass without a draft.
    """
    return tau / (share * (drafted * c + v) + (1.0 - share) * step + o)


def best_k(alpha: float, c: float, v: float | Callable[[int], float] = 1.0, o: float = 0.0, largest: int = 32) -> int:
    """The k of the greatest speed-up; 0 where speculation does not pay."""
    cost = v if callable(v) else lambda _: v
    best = max(range(1, largest + 1), key=lambda k: speedup(alpha, k, c, cost(k), o))
    return best if speedup(alpha, best, c, cost(best), o) > 1.0 else 0


def break_even(c: float, v: float = 1.0, o: float = 0.0) -> float:
    """The α above which one draft pays, 1 + α > c + v + o: v is a check of two rows.

    If checks are free and cycles have no overhead, α > c (corollary 3.9). Above 1: for one draft no α is enough;
    longer drafts may still pay, because they share the overhead.
    """
    return max(0.0, c + v + o - 1.0)
