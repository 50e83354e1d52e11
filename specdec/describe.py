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
    reached = {-1, *verdict.path}
    return [judged.get(node, "discarded") if up in reached else "discarded" for node, up in enumerate(proposal.parents)]


def verification(
    proposal: Proposal, rows: Tensor, verdict: Verdict, piece: Callable[[int], str], full: bool
) -> dict[str, Any]:
    """What `Verified` tells beside its times; the laws only if `full`."""
    told: dict[str, Any] = {"positions": positions(proposal, rows, verdict, piece, full)}
    if full:
        last = verdict.path[-1] if verdict.path else -1
        told["law"] = law(rows[last + 1] if verdict.law is None else verdict.law, piece)
        told["p"] = float(rows[last + 1][verdict.token])
    return told


def positions(
    proposal: Proposal, rows: Tensor, verdict: Verdict, piece: Callable[[int], str], full: bool
) -> tuple[Position, ...]:
    """One entry a drafted token. `full` adds the laws; without it, only what the walk itself looked at."""
    trials = {trial.node: trial for trial in verdict.trials}
    tossed = {trial.node for trial in verdict.trials if trial.u is not None}  # no coin, no residual
    described, weight = [], 1.0
    for node, status in enumerate(statuses(proposal, verdict)):
        token, trial = proposal.tokens[node], trials.get(node)
        told: dict[str, Any] = {"node": node, "token": token, "piece": piece(token), "status": status}
        if trial is not None:
            told |= {"p": trial.p, "q": trial.q, "u": trial.u, "h": trial.h}
        if full or trial is None:
            p, q = row_under_test(proposal, rows, node, tossed), drafted_law(proposal, node, rows)
            told = {"p": float(p[token]), "q": float(q[token]), "u": None} | told
            if full:
                told["overlap"] = round(overlap(p, q), 6)
                told |= {"target": law(p, piece), "draft": law(q, piece)}
                if tossed:
                    told["residual"] = law(residual(weight * p, q, token), piece)
        if trial is not None and trial.h is not None:
            weight = min(1.0, weight * trial.p / trial.q)
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


def law(probs: Tensor, piece: Callable[[int], str]) -> Law:
    values, tokens = probs.topk(min(TOP, len(probs)))
    top = tuple(
        Candidate(token, piece(token), round(value, 7))
        for value, token in zip(values.tolist(), tokens.tolist(), strict=True)
        if value > 0.0
    )
    return Law(top, round(max(0.0, 1.0 - sum(c.prob for c in top)), 7), round(max(0.0, entropy(probs)), 5))
