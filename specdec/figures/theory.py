"""Compute tokens per cycle and speed-ups from acceptance and costs, in closed form.

Letters follow Leviathan et al. 2022 (arXiv 2211.17192): α is the acceptance rate, k = γ the drafted tokens per cycle,
c the cost of a drafted token, v the cost of a verification pass, o the overhead of a cycle. A plain step costs 1.
"""

from collections.abc import Sequence


def tokens_by_position(alphas: Sequence[float], k: float) -> float:
    """Return tokens per cycle from acceptance by position: 1 + α₁ + α₁α₂ + …; a fractional k scales the last term."""
    total, survival = 1.0, 1.0
    for place, alpha in enumerate(alphas):
        if place >= k:
            break
        survival *= alpha
        total += survival * min(1.0, k - place)
    return total


def accounted_speedup(tau: float, drafted: float, c: float, v: float, o: float, share: float, step: float) -> float:
    """Return the speed-up at `tau` tokens a cycle. A `share` of cycles drafts `drafted` tokens; others cost `step`."""
    return tau / (share * (drafted * c + v) + (1.0 - share) * step + o)
