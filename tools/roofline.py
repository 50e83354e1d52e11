"""The roofline that Theory draws (assets/page/theory/formulas.js), written apart from it: the two are compared.

Williams et al. 2009, CACM 52: a pass takes as long as reading or computing, whichever is longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specdec.figures.theory import speedup

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
