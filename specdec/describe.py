"""A cycle in numbers for people: what each model thought at every drafted position. Runs off the lane's clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .events import Candidate, Law, Position
from .sampling import entropy, overlap, residual
from .types import Proposal, Status, Verdict

TOP = 8


def statuses(proposal: Proposal, verdict: Verdict) -> list[Status]:
    """Discarded is what was drafted but never judged: behind a rejection, or beside an accepted sibling."""
    judged: dict[int, Status] = {t.node: "accepted" if t.accepted else "rejected" for t in verdict.trials}
    return [judged.get(node, "discarded") for node in range(len(proposal))]


def verification(
    proposal: Proposal, rows: Tensor, verdict: Verdict, piece: Callable[[int], str], full: bool
) -> dict[str, Any]:
    """What `Verified` tells beside its times; the laws only if `full`."""
    told: dict[str, Any] = {"positions": positions(proposal, rows, verdict, piece, full)}
    if full:
        last = verdict.path[-1] if verdict.path else -1
        told["law"] = law(own_law(proposal, rows, verdict), piece)
        told["p"] = float(rows[last + 1][verdict.token])
    return told


def positions(
    proposal: Proposal, rows: Tensor, verdict: Verdict, piece: Callable[[int], str], full: bool
) -> tuple[Position, ...]:
    """One entry a drafted token. `full` adds the laws; without it, only what the walk itself looked at."""
    trials = {trial.node: trial for trial in verdict.trials}
    described = []
    for node, status in enumerate(statuses(proposal, verdict)):
        token, trial = proposal.tokens[node], trials.get(node)
        told: dict[str, Any] = {"node": node, "token": token, "piece": piece(token), "status": status}
        if trial is not None:
            told |= {"p": trial.p, "q": trial.q, "u": trial.u}
        if full or trial is None:
            p, q = row_under_test(proposal, rows, node, set(trials)), drafted_law(proposal, node, rows)
            told = {"p": float(p[token]), "q": float(q[token]), "u": None} | told
            if full:
                told["overlap"] = round(overlap(p, q), 6)
                told |= {"target": law(p, piece), "draft": law(q, piece), "residual": law(residual(p, q, token), piece)}
        described.append(Position(**told))
    return tuple(described)


def row_under_test(proposal: Proposal, rows: Tensor, node: int, judged: set[int]) -> Tensor:
    """The target's law as it stood when `node` was tried: less its elder siblings that were judged before."""
    p = rows[proposal.parents[node] + 1]
    for sibling in proposal.children(proposal.parents[node]):
        if sibling >= node:
            break
        if sibling in judged:
            q = None if proposal.probs is None else proposal.probs[sibling]
            p = residual(p, q, proposal.tokens[sibling])
    return p


def drafted_law(proposal: Proposal, node: int, rows: Tensor) -> Tensor:
    if proposal.probs is not None:
        return proposal.probs[node]
    point = torch.zeros_like(rows[0])
    point[proposal.tokens[node]] = 1.0
    return point


def own_law(proposal: Proposal, rows: Tensor, verdict: Verdict) -> Tensor:
    """What the target's own token was drawn from: its row, less the children rejected there."""
    node = verdict.path[-1] if verdict.path else -1
    p = rows[node + 1]
    for trial in verdict.trials:
        if not trial.accepted and proposal.parents[trial.node] == node:
            p = residual(p, None if proposal.probs is None else proposal.probs[trial.node], trial.token)
    return p


def law(probs: Tensor, piece: Callable[[int], str]) -> Law:
    values, tokens = probs.topk(min(TOP, len(probs)))
    top = tuple(
        Candidate(token, piece(token), round(value, 7))
        for value, token in zip(values.tolist(), tokens.tolist(), strict=True)
        if value > 0.0
    )
    return Law(top, round(max(0.0, 1.0 - sum(c.prob for c in top)), 7), round(max(0.0, entropy(probs)), 5))
