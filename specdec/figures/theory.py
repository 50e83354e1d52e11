"""Closed forms: what acceptance, costs and a machine's peak figures predict. No model, no run; `math` only.

Letters follow Leviathan et al. 2022 (arXiv 2211.17192): α acceptance rate, k = γ drafted tokens per cycle, c the
cost of one draft token, v of one verification pass, o the overhead of a cycle; costs are in plain steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass


def expected_tokens(alpha: float, k: int) -> float:
    """Tokens per cycle when every draft is kept with chance α: (1 - α^(k+1)) / (1 - α), equation 1."""
    if not 0.0 <= alpha <= 1.0:
        raise ValueError(f"alpha must lie between 0 and 1, not {alpha}")
    return float(k + 1) if alpha == 1.0 else (1.0 - alpha ** (k + 1)) / (1.0 - alpha)


def expected_accepted(alpha: float, k: int, kept: int = 0) -> float:
    """E_j by recursion: the drafts still to be kept after j = `kept` of k were. E_k = 0, E_j = α (1 + E_{j+1}).

    E_0 = α (1 - α^k) / (1 - α), one less than `expected_tokens`: the target's own token is missing.
    """
    further = 0.0
    for _ in range(k - kept):
        further = alpha * (1.0 + further)
    return further


def accepted_distribution(alpha: float, k: int) -> list[float]:
    """The chance that 0, 1, … k drafts of a cycle are kept: α^n (1 - α), and α^k for all of them."""
    return [alpha**n * (1.0 - alpha) for n in range(k)] + [alpha**k]


def throughput(probability: float, n: int, draft_seconds: float, verify_seconds: float) -> float:
    """Tokens per second, (E_0 + 1) / (N T_s + T_v): N drafts of T_s seconds each, one check of T_v seconds."""
    return (expected_accepted(probability, n) + 1.0) / (n * draft_seconds + verify_seconds)


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
    alphas: Sequence[float],
    k: float,
    c: float,
    v: float,
    o: float,
    share: float = 1.0,
    step: float = 1.0,
    drafted: float | None = None,
) -> float:
    """The speed-up that acceptance by position and costs add up to.

    `share` of the cycles have a draft; the others cost `step`, one pass without a draft, and give one token. A draft is
    k levels deep and holds `drafted` tokens: k of them in a chain (the default), more in a tree.
    """
    tokens = share * tokens_by_position(alphas, k) + 1.0 - share
    return tokens / (share * ((k if drafted is None else drafted) * c + v) + (1.0 - share) * step + o)


def growing(v: float, at: int) -> Callable[[int], float]:
    """The cost of a check against its drafts: a straight line from 1 for none through v for `at` of them."""
    return lambda k: 1.0 + (v - 1.0) * k / at


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


def wilson(accepted: int, judged: int, z: float = 1.96) -> tuple[float, float]:
    """The interval of a rate, 95 % at z = 1.96 (Wilson 1927, JASA 22): it never leaves 0 to 1."""
    if not judged:
        return 0.0, 1.0
    rate, square = accepted / judged, z * z / judged
    middle = (rate + square / 2.0) / (1.0 + square)
    reach = z / (1.0 + square) * math.sqrt(rate * (1.0 - rate) / judged + square / (4.0 * judged))
    return max(0.0, middle - reach), min(1.0, middle + reach)


# The roofline (Williams et al. 2009, CACM 52): a pass takes as long as reading or computing, whichever is longer.

CACHE_BYTES = 2  # of a number in the cache, whatever the weights are stored in


@dataclass(frozen=True)
class Machine:
    """Peak figures."""

    flops: float  # per second, 16 bit, dense
    bandwidth: float  # bytes per second
    memory: float  # bytes


@dataclass(frozen=True)
class Model:
    """A decoder's shape. Without experts every parameter is active for every token."""

    parameters: float
    active: float
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    experts: int = 1
    chosen: int = 1  # experts per token
    embedding: float = 0.0  # parameters of an input table that is not the output matrix, too: looked up, not read


def weights_read(model: Model, rows: float) -> float:
    """Parameters that a pass over `rows` rows reads: all but the input table, of which a few rows are read.

    Of the experts it uses the share 1 - (1 - chosen / experts)^rows, if each row chooses evenly and on its own.
    """
    read = model.parameters - model.embedding
    if model.experts == model.chosen:
        return read
    share = model.chosen / model.experts
    in_experts = (model.parameters - model.active) / (1.0 - share)
    return read - in_experts * (1.0 - share) ** rows


def cache_bytes(model: Model, tokens: float) -> float:
    """Keys and values of that many tokens."""
    return 2.0 * model.layers * model.kv_heads * model.head_dim * CACHE_BYTES * tokens


def reading_seconds(machine: Machine, model: Model, bits: int, batch: float, rows: float, context: float) -> float:
    """Every weight that is needed once, and every text's cache once, however many `rows` each text adds."""
    weights = weights_read(model, batch * rows) * bits / 8.0
    return (weights + cache_bytes(model, batch * context)) / machine.bandwidth


def computing_seconds(machine: Machine, model: Model, batch: float, rows: float, context: float) -> float:
    """Two operations per active parameter and row, and four per layer, head dimension and row seen by attention.

    Looking a row up in the input table takes none.
    """
    attention = 4.0 * model.layers * model.heads * model.head_dim * context
    return batch * rows * (2.0 * (model.active - model.embedding) + attention) / machine.flops


def pass_seconds(machine: Machine, model: Model, bits: int, batch: float, rows: float, context: float) -> float:
    """One pass over `batch` texts of `context` tokens, with `rows` new tokens each."""
    computing = computing_seconds(machine, model, batch, rows, context)
    return max(reading_seconds(machine, model, bits, batch, rows, context), computing)


def free_rows(machine: Machine, model: Model, bits: int, batch: float, context: float) -> float:
    """Rows per text until computing takes longer than reading; below 1: even a plain step is bound by computing.

    Dense and without context: flops × bytes per parameter / (2 × bandwidth) / batch.
    """
    low, high = 0.0, 2.0**24
    for _ in range(80):
        middle = (low + high) / 2.0
        reading = reading_seconds(machine, model, bits, batch, middle, context)
        computing = computing_seconds(machine, model, batch, middle, context)
        low, high = (middle, high) if computing <= reading else (low, middle)
    return low


def batch_costs(
    machine: Machine, target: Model, draft: Model, bits: int, k: int, batch: float, context: float,
    draft_context: float | None = None,
) -> tuple[float, float, float]:  # fmt: skip
    """Seconds of a plain step at a batch size; then c and v in plain steps.

    A draft that reads the last `draft_context` tokens only, as in MagicDec (arXiv 2408.11049), has smaller caches.
    """
    plain = pass_seconds(machine, target, bits, batch, 1, context)
    read = context if draft_context is None else min(context, draft_context)
    c = pass_seconds(machine, draft, bits, batch, 1, read) / plain
    return plain, c, pass_seconds(machine, target, bits, batch, k + 1, context) / plain


def batch_speedup(
    machine: Machine, target: Model, draft: Model, bits: int, alpha: float, k: int, batch: float, context: float,
    draft_context: float | None = None,
) -> float:  # fmt: skip
    """The speed-up at a batch size, with c and v from the roofline of both models."""
    _, c, v = batch_costs(machine, target, draft, bits, k, batch, context, draft_context)
    return speedup(alpha, k, c, v)


def batch_rates(
    machine: Machine, target: Model, draft: Model, bits: int, alpha: float, k: int, batch: float, context: float
) -> tuple[float, float]:
    """Tokens per second of each text at a batch size: plain, and with speculation. All texts: `batch` times that."""
    plain, c, v = batch_costs(machine, target, draft, bits, k, batch, context)
    return 1.0 / plain, speedup(alpha, k, c, v) / plain


def crossings(speedups: Sequence[float]) -> list[int]:
    """Where a curve of speed-ups crosses 1: each index from which it is on the other side.

    Against the batch size it may do so twice: with experts or a long context it first loses and wins later.
    """
    return [i for i in range(1, len(speedups)) if (speedups[i] < 1.0) != (speedups[i - 1] < 1.0)]


def memory_bytes(target: Model, draft: Model, bits: int, batch: float, context: float) -> tuple[float, ...]:
    """Weights of the target and of the draft, then both caches."""
    weights = [model.parameters * bits / 8.0 for model in (target, draft)]
    return (*weights, *(cache_bytes(model, batch * context) for model in (target, draft)))
