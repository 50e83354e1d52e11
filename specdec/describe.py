"""Describe a cycle: both models' distributions at each drafted token. The lane's clock is stopped meanwhile."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from torch import Tensor

from .events import Candidate, Distribution, Position
from .sampling import block_chance, entropy, overlap, residual, Sampler
from .types import Proposal, Status, Trial, Verdict

Piece = Callable[[int], str]
Draw = Callable[[Tensor], int]
TOP = 8  # how many of a distribution's likeliest tokens are listed


def statuses(proposal: Proposal, verdict: Verdict) -> list[Status]:
    """Return the status of each drafted token: "discarded" if it was not judged, or if its parent was not accepted."""
    judged: dict[int, Status] = {t.node: "accepted" if t.accepted else "rejected" for t in verdict.trials}
    reached, parents = {-1, *verdict.path}, enumerate(proposal.parents)
    return [judged.get(node, "discarded") if parent in reached else "discarded" for node, parent in parents]


def verification(
    proposal: Proposal, rows: Tensor, verdict: Verdict, piece: Piece, noise: Sampler | None
) -> dict[str, Any]:
    """Return fields of `Verified`: `positions`; with `noise`, also `distribution`, `p` and, for a chain, `bonus`."""
    fields: dict[str, Any] = {"positions": positions(proposal, rows, verdict, piece, noise)}
    if noise is not None:
        last = verdict.path[-1] if verdict.path else -1
        source = rows[last + 1] if verdict.distribution is None else verdict.distribution
        fields["distribution"] = distribution(source, piece, {*likeliest(source), verdict.token})
        fields["p"] = float(rows[last + 1][verdict.token])
        if len(proposal) and proposal.is_chain:
            sample = noise.categorical(rows[-1], ("own", len(proposal)))
            fields["bonus"] = distribution(rows[-1], piece, likeliest(rows[-1]), sample)
    return fields


def positions(
    proposal: Proposal, rows: Tensor, verdict: Verdict, piece: Piece, noise: Sampler | None
) -> tuple[Position, ...]:
    """Return one entry for each drafted token. Without `noise`, only node, token, piece, status, p, q, u, h are set."""
    trials = {trial.node: trial for trial in verdict.trials}
    with_coin = {trial.node for trial in verdict.trials if trial.u is not None}
    distributions, described = proposal.distributions(rows), list[Position]()
    weight = 1.0 if with_coin else 0.0
    chances = block_chances(proposal, rows) if noise is not None else iter(())
    for node, (token, status) in enumerate(zip(proposal.tokens, statuses(proposal, verdict), strict=True)):
        p, q = row_under_test(proposal, rows, node, with_coin), distributions[node]
        trial = trials.get(node) or Trial(node, token, float(p[token]), float(q[token]), None, False)
        position = Position(node, token, piece(token), status, trial.p, trial.q, trial.u, h=trial.h)
        if noise is not None:
            draw = partial(noise.categorical, key=("own", proposal.depth(node) - 1))
            position = describe_position(position, p, q, weight, verdict.token, piece, draw)
            chance = next(chances, None)
            position = replace(with_siblings(position, proposal, rows), block=chance if position.h is None else None)
        if trial.h is not None:
            weight = min(1.0, weight * trial.p / trial.q)
        described.append(position)
    return tuple(described)


def describe_position(
    position: Position, p: Tensor, q: Tensor, weight: float, own: int, piece: Piece, draw: Draw
) -> Position:
    """Add the distributions p, q and residual of weight · p [V]; after a rejection, with the target's `own` token.

    The residual is left out if `weight` is 0: without coins, and in a block that is never accepted.
    """
    replacement = {own} if position.status == "rejected" else set()
    shown = {*likeliest(p), *likeliest(q), position.token} | replacement
    target, draft = distribution(p, piece, shown, draw(p)), distribution(q, piece, shown)
    position = replace(position, overlap=round(overlap(p, q), 7), target=target, draft=draft)
    if weight == 0.0:
        return position
    difference = residual(weight * p, q, position.token)
    shown = {*likeliest(difference)} | replacement
    return replace(position, residual=distribution(difference, piece, shown, draw(difference)))


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


def with_siblings(position: Position, proposal: Proposal, rows: Tensor) -> Position:
    """Set `row` and `behind`, each unless it equals `p`."""
    parent = proposal.parents[position.node]
    earlier = {sibling for sibling in proposal.children(parent) if sibling < position.node}
    if not earlier or proposal.probs is None:
        return position
    tests = rows[parent + 1], row_under_test(proposal, rows, position.node, earlier)
    row, behind = (None if (p := float(probs[position.token])) == position.p else p for probs in tests)
    return replace(position, row=row, behind=behind)


def likeliest(probs: Tensor) -> list[int]:
    """Return the `TOP` likeliest tokens, without those of probability 0."""
    values, tokens = probs.topk(min(TOP, len(probs)))
    return tokens[values > 0.0].tolist()


def distribution(probs: Tensor, piece: Piece, tokens: Iterable[int], sample: int | None = None) -> Distribution:
    """Return the probabilities of `tokens`, the likeliest first, the sum of all others, the entropy, and a `sample`."""
    shown = list(tokens)
    pairs = sorted(zip((-probs[shown]).tolist(), shown, strict=True))
    top = tuple(Candidate(token, piece(token), round(-value, 7)) for value, token in pairs if value < 0.0)
    drawn = None if sample is None else Candidate(sample, piece(sample), round(float(probs[sample]), 7))
    rest = round(max(0.0, 1.0 - sum(c.prob for c in top)), 7)
    return Distribution(top, rest, round(max(0.0, entropy(probs)), 5), drawn)
