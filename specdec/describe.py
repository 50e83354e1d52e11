"""Describe a cycle: both models' distributions at each drafted token. The lane's clock is stopped meanwhile."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial

from torch import Tensor

from .events import Candidate, Details, Distribution, Position
from .rules import BlockVerification
from .sampling import entropy, overlap, residual, Sampler
from .types import is_chain, Proposal, Status, Trial, Verdict

Piece = Callable[[int], str]
TOP = 8  # how many of a distribution's likeliest tokens are listed


def statuses(proposal: Proposal, verdict: Verdict) -> list[Status]:
    """Return the status of each drafted token: "discarded" if it was not judged, or if its parent was not accepted."""
    judged: dict[int, Status] = {t.node: "accepted" if t.accepted else "rejected" for t in verdict.trials}
    reached, parents = {-1, *verdict.path}, enumerate(proposal.parents)
    return [judged.get(node, "discarded") if parent in reached else "discarded" for node, parent in parents]


def verification(proposal: Proposal, rows: Tensor, verdict: Verdict, piece: Piece, noise: Sampler | None) -> Details:
    """Describe a cycle. Without `noise`, only `positions` are set; `bonus` is set for a chain."""
    described = positions(proposal, rows, verdict, piece, noise)
    if noise is None:
        return Details(described)
    bonus, row = None, rows[verdict.path[-1] + 1 if verdict.path else 0]
    source = row if verdict.distribution is None else verdict.distribution
    if len(proposal) and is_chain(proposal.parents):
        sample = noise.categorical(rows[-1], ("own", len(proposal)))
        bonus = distribution(rows[-1], piece, likeliest(rows[-1]), sample)
    own = distribution(source, piece, {*likeliest(source), verdict.token})
    return Details(described, own, float(row[verdict.token]), bonus)


def positions(
    proposal: Proposal, rows: Tensor, verdict: Verdict, piece: Piece, noise: Sampler | None
) -> tuple[Position, ...]:
    """Return one entry for each drafted token. Without `noise`, only node, token, piece, status, p, q, u, h are set."""
    trials = zip(list_trials(proposal, rows, verdict), statuses(proposal, verdict), strict=True)
    described = tuple(Position(t.node, t.token, piece(t.token), status, t.p, t.q, t.u, h=t.h) for t, status in trials)
    if noise is None:
        return described
    return tuple(with_distributions(described, proposal, rows, verdict, piece, noise))


def with_distributions(
    positions: Iterable[Position], proposal: Proposal, rows: Tensor, verdict: Verdict, piece: Piece, noise: Sampler
) -> Iterator[Position]:
    """Add the distributions of each position; after a rejection, also with the target's own token."""
    tested = tested_nodes(verdict)
    _, chances = BlockVerification().weigh(proposal, rows) if is_chain(proposal.parents) else ([], [])
    for position, q in zip(positions, proposal.distributions(rows), strict=True):
        node, token = position.node, position.token
        p = row_under_test(proposal, rows, node, tested)
        draw = partial(noise.categorical, key=("own", proposal.tree.depth(node) - 1))
        replacement = {verdict.token} if position.status == "rejected" else set()
        shown, rest = {*likeliest(p), *likeliest(q), token} | replacement, None
        if verdict.weights and verdict.weights[node]:
            probs = residual(verdict.weights[node] * p, q, token)
            rest = distribution(probs, piece, {*likeliest(probs)} | replacement, draw(probs))
        yield replace(
            with_siblings(position, proposal, rows),
            overlap=round(overlap(p, q), 7),
            target=distribution(p, piece, shown, draw(p)),
            draft=distribution(q, piece, shown),
            residual=rest,
            block=chances[node] if chances and position.h is None else None,
        )


def list_trials(proposal: Proposal, rows: Tensor, verdict: Verdict) -> list[Trial]:
    """Return each drafted token's trial, with its coin; for a token that was not judged, one without a coin."""
    trials, tested = {trial.node: trial for trial in verdict.trials}, tested_nodes(verdict)
    for node, token in enumerate(proposal.tokens):
        if node not in trials:
            p = row_under_test(proposal, rows, node, tested)
            trials[node] = Trial(node, token, float(p[token]), proposal.q_of(node), None, False)
    return [trials[node] for node in range(len(proposal))]


def tested_nodes(verdict: Verdict) -> set[int]:
    """Return the nodes whose rejection would change p for their later siblings."""
    return {trial.node for trial in verdict.trials} if verdict.weights else set()


def row_under_test(proposal: Proposal, rows: Tensor, node: int, tested: set[int]) -> Tensor:
    """Return p [V] in the trial of `node`: the target's row, or the residual after its earlier siblings in `tested`.

    Each rejected sibling turns p into norm(max(0, p - q)), with the sibling's own q: multi-step speculative sampling of
    SpecInfer (arXiv 2305.09781, section 4.3).
    """
    p = rows[proposal.parents[node] + 1]
    for sibling in proposal.tree.children(proposal.parents[node]):
        if sibling >= node:
            break
        if sibling in tested:
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
