"""Describe a cycle: both models' distributions at each drafted token. The lane's clock is stopped meanwhile."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from torch import Tensor

from .events import Candidate, Distribution, Position
from .rules import BlockVerification
from .sampling import entropy, overlap, residual, Sampler
from .types import is_chain, Proposal, Status, Trial, Verdict

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
        if len(proposal) and is_chain(proposal.parents):
            sample = noise.categorical(rows[-1], ("own", len(proposal)))
            fields["bonus"] = distribution(rows[-1], piece, likeliest(rows[-1]), sample)
    return fields


def positions(
    proposal: Proposal, rows: Tensor, verdict: Verdict, piece: Piece, noise: Sampler | None
) -> tuple[Position, ...]:
    """Return one entry for each drafted token. Without `noise`, only node, token, piece, status, p, q, u, h are set."""
    trials = zip(list_trials(proposal, rows, verdict), statuses(proposal, verdict), strict=True)
    described = tuple(Position(t.node, t.token, piece(t.token), status, t.p, t.q, t.u, h=t.h) for t, status in trials)
    if noise is None:
        return described
    full = list[Position]()
    for position, weights in zip(described, weights_of(proposal, rows, verdict), strict=True):
        draw = partial(noise.categorical, key=("own", proposal.tree.depth(position.node) - 1))
        full.append(describe_position(with_siblings(position, proposal, rows), weights, verdict.token, piece, draw))
    return tuple(full)


def list_trials(proposal: Proposal, rows: Tensor, verdict: Verdict) -> list[Trial]:
    """Return each drafted token's trial, with its coin; for a token that was not judged, one without a coin."""
    trials = {trial.node: trial for trial in verdict.trials}
    for node, token in enumerate(proposal.tokens):
        if node not in trials:
            p = row_under_test(proposal, rows, node, nodes_with_coin(verdict))
            trials[node] = Trial(node, token, float(p[token]), proposal.q_of(node), None, False)
    return [trials[node] for node in range(len(proposal))]


class Weights(NamedTuple):
    """What is weighed at one drafted token. The tensors are distributions [V]."""

    p: Tensor  # in the token's trial: see `row_under_test`
    q: Tensor
    residual: Tensor | None  # None if nothing is drawn from it: without coins, and in a block that is never accepted
    block: float | None  # see `Position.block`


def weights_of(proposal: Proposal, rows: Tensor, verdict: Verdict) -> Iterator[Weights]:
    """Yield the weights of each drafted token. The residual is norm(max(0, w p - q)), where only a block has w < 1."""
    by_coins, by_block = nodes_with_coin(verdict), any(trial.h is not None for trial in verdict.trials)
    block, chances = BlockVerification().weigh(proposal, rows) if is_chain(proposal.parents) else ([], [])
    for node, (token, q) in enumerate(zip(proposal.tokens, proposal.distributions(rows), strict=True)):
        p, w = row_under_test(proposal, rows, node, by_coins), block[node] if by_block else float(bool(by_coins))
        chance = chances[node] if chances and not by_block else None
        yield Weights(p, q, residual(w * p, q, token) if w else None, chance)


def nodes_with_coin(verdict: Verdict) -> set[int]:
    return {trial.node for trial in verdict.trials if trial.u is not None}


def describe_position(position: Position, weights: Weights, own: int, piece: Piece, draw: Draw) -> Position:
    """Add the distributions, and `block`; after a rejection, also with the target's `own` token."""
    p, q, rest, block = weights
    replacement = {own} if position.status == "rejected" else set()
    shown = {*likeliest(p), *likeliest(q), position.token} | replacement
    target, draft = distribution(p, piece, shown, draw(p)), distribution(q, piece, shown)
    position = replace(position, overlap=round(overlap(p, q), 7), target=target, draft=draft, block=block)
    if rest is None:
        return position
    return replace(position, residual=distribution(rest, piece, {*likeliest(rest)} | replacement, draw(rest)))


def row_under_test(proposal: Proposal, rows: Tensor, node: int, judged: set[int]) -> Tensor:
    """Return p [V] in the trial of `node`: the target's row, or the residual after its earlier siblings in `judged`.

    Each rejected sibling turns p into norm(max(0, p - q)), with the sibling's own q: multi-step speculative sampling of
    SpecInfer (arXiv 2305.09781, section 4.3).
    """
    p = rows[proposal.parents[node] + 1]
    for sibling in proposal.tree.children(proposal.parents[node]):
        if sibling >= node:
            break
        if sibling in judged:
            p = residual(p, proposal.q(sibling), proposal.tokens[sibling])
    return p


def with_siblings(position: Position, proposal: Proposal, rows: Tensor) -> Position:
    """Set `row` and `behind`: p before any sibling's test, and p behind the tests of all earlier siblings."""
    parent = proposal.parents[position.node]
    earlier = {sibling for sibling in proposal.tree.children(parent) if sibling < position.node}
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
