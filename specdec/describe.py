"""Describe a cycle: both models' distributions at each drafted token. The lane's clock is stopped meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from torch import Tensor

from .events import Candidate, Distribution, Position
from .sampling import block_chance, entropy, overlap, residual, Sampler
from .types import Proposal, Status, Verdict

TOP = 8  # how many of a distribution's likeliest tokens are listed


def statuses(proposal: Proposal, verdict: Verdict) -> list[Status]:
    """Return the status of each drafted token: "discarded" if it was not judged, or if its parent was not accepted."""
    judged: dict[int, Status] = {t.node: "accepted" if t.accepted else "rejected" for t in verdict.trials}
    reached, parents = {-1, *verdict.path}, enumerate(proposal.parents)
    return [judged.get(node, "discarded") if parent in reached else "discarded" for node, parent in parents]


def verification(
    proposal: Proposal, rows: Tensor, verdict: Verdict, piece: Callable[[int], str], noise: Sampler | None
) -> dict[str, Any]:
    """Return fields of `Verified`: `positions`; with `noise`, also `distribution`, `p` and, for a chain, `bonus`."""
    fields: dict[str, Any] = {"positions": positions(proposal, rows, verdict, piece, noise)}
    if noise is not None:
        last = verdict.path[-1] if verdict.path else -1
        source = rows[last + 1] if verdict.distribution is None else verdict.distribution
        fields["distribution"] = distribution(source, piece, {*likeliest(source), verdict.token})
        fields["p"] = float(rows[last + 1][verdict.token])
        if len(proposal) and proposal.is_chain:
            bonus = distribution(rows[-1], piece, {*likeliest(rows[-1])})
            fields["bonus"] = with_sample(bonus, rows[-1], piece, noise, len(proposal))
    return fields


def positions(
    proposal: Proposal, rows: Tensor, verdict: Verdict, piece: Callable[[int], str], noise: Sampler | None
) -> tuple[Position, ...]:
    """Return one entry for each drafted token. Without `noise`, only node, token, piece, status, p, q, u, h are set."""
    trials = {trial.node: trial for trial in verdict.trials}
    with_coin = {trial.node for trial in verdict.trials if trial.u is not None}  # without coins, there is no residual
    described, block_weight, distributions = [], 1.0, proposal.distributions(rows)
    chances = block_chances(proposal, rows) if noise is not None else iter(())
    for node, status in enumerate(statuses(proposal, verdict)):
        token, trial = proposal.tokens[node], trials.get(node)
        fields: dict[str, Any] = {"node": node, "token": token, "piece": piece(token), "status": status}
        if trial is not None:
            fields |= {"p": trial.p, "q": trial.q, "u": trial.u, "h": trial.h}
        if noise is not None or trial is None:
            p, q = row_under_test(proposal, rows, node, with_coin), distributions[node]
            fields = {"p": float(p[token]), "q": float(q[token]), "u": None} | fields
            if noise is not None:
                level, shown = proposal.depth(node) - 1, {*likeliest(p), *likeliest(q), token}
                replacement = {verdict.token} if status == "rejected" else set()
                fields |= before_and_after_siblings(proposal, rows, node, fields["p"])
                fields |= {"overlap": round(overlap(p, q), 7), "block": next(chances, None)}
                fields["target"] = with_sample(distribution(p, piece, shown | replacement), p, piece, noise, level)
                fields["draft"] = distribution(q, piece, shown | replacement)
                if with_coin and block_weight > 0.0:  # a block of weight 0 is never accepted, so it has no residual
                    difference = residual(block_weight * p, q, token)
                    shown = {*likeliest(difference)} | replacement
                    described_residual = distribution(difference, piece, shown)
                    fields["residual"] = with_sample(described_residual, difference, piece, noise, level)
        if trial is not None and trial.h is not None:
            block_weight, fields["block"] = min(1.0, block_weight * trial.p / trial.q), None
        described.append(Position(**fields))
    return tuple(described)


def block_chances(proposal: Proposal, rows: Tensor) -> Iterator[float]:
    """Yield `Position.block` of each token of a chain: the chance that the block up to it passes block verification."""
    if not proposal.is_chain:
        return
    weight, last, distributions = 1.0, len(proposal) - 1, proposal.distributions(rows)
    for node, token in enumerate(proposal.tokens):
        weight = min(1.0, weight * float(rows[node][token]) / float(distributions[node][token]))
        yield weight if node == last else block_chance(weight, rows[node + 1], distributions[node + 1])


def row_under_test(proposal: Proposal, rows: Tensor, node: int, judged: set[int]) -> Tensor:
    """Return p [V] in the test of `node`: the target's row, or the residual after its earlier siblings in `judged`."""
    p = rows[proposal.parents[node] + 1]
    for sibling in proposal.children(proposal.parents[node]):
        if sibling >= node:
            break
        if sibling in judged:
            q = None if proposal.probs is None else proposal.probs[sibling]
            p = residual(p, q, proposal.tokens[sibling])
    return p


def before_and_after_siblings(proposal: Proposal, rows: Tensor, node: int, p: float) -> dict[str, float]:
    """Return a token's `row` and `behind` (see `Position`). Omits values equal to `p`."""
    parent, token = proposal.parents[node], proposal.tokens[node]
    earlier = {sibling for sibling in proposal.children(parent) if sibling < node}
    if not earlier or proposal.probs is None:
        return {}
    targets = {"row": rows[parent + 1], "behind": row_under_test(proposal, rows, node, earlier)}
    return {name: float(probs[token]) for name, probs in targets.items() if float(probs[token]) != p}


def likeliest(probs: Tensor) -> list[int]:
    """Return the `TOP` likeliest tokens, without those of probability 0."""
    values, tokens = probs.topk(min(TOP, len(probs)))
    return tokens[values > 0.0].tolist()


def distribution(probs: Tensor, piece: Callable[[int], str], tokens: Iterable[int]) -> Distribution:
    """Return the probabilities of `tokens`, the likeliest first, the sum of all others, and the entropy."""
    shown = list(tokens)
    pairs = sorted(zip((-probs[shown]).tolist(), shown, strict=True))
    top = tuple(Candidate(token, piece(token), round(-value, 7)) for value, token in pairs if value < 0.0)
    return Distribution(top, round(max(0.0, 1.0 - sum(c.prob for c in top)), 7), round(max(0.0, entropy(probs)), 5))


def with_sample(
    distribution: Distribution, probs: Tensor, piece: Callable[[int], str], noise: Sampler, level: int
) -> Distribution:
    """Add a sample: the token that `noise` draws from `probs` at the position after `level` drafted tokens."""
    token = noise.categorical(probs, ("own", level - 1))
    return replace(distribution, sample=Candidate(token, piece(token), round(float(probs[token]), 7)))
