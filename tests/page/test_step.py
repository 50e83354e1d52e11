"""The events contain what the cycle view needs, and its what-if decides as the rules do."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from specdec import describe
from specdec.drafters.draft_model import DraftModelDrafter
from specdec.events import Committed, Drafted, Started, to_dict, Verified
from specdec.loop import generate
from specdec.proof.toys import TableModel
from specdec.rules import BlockVerification, RULES
from specdec.sampling import SharedNoiseSampler
from specdec.task import Task
from specdec.traces.file import dump, Trace, TraceHeader
from specdec.types import is_chain, Proposal, SamplingParams, Verdict
from specdec.verify import RejectionSampling
from tests import nodejs

TREE = (-1, -1, 0, 0, 1, 2, 2, 4)
SEED = 5
LENGTH = 9  # tokens of the text before the cycle


class Scripted(SharedNoiseSampler):
    """Returns scripted coins, and draws tokens by the noise of their place."""

    def __init__(self, coins: list[float]) -> None:
        super().__init__(SEED)
        self.coins = coins
        self.at(LENGTH)

    def accept(self, p: float, q: float, key: tuple[str, int]) -> tuple[bool, float]:
        u = self.coins[key[1]]
        return u * q < p, u


def distributions(n: int, size: int, temperature: float) -> Tensor:
    return (torch.randn(n, size) * 1.5 / temperature).softmax(-1)


def chain(size: int, n: int, shared: bool) -> tuple[Proposal, Tensor]:
    rows = distributions(n + 1, size, 1.0)
    probs = (rows[:n].log() + 0.7 * torch.randn(n, size)).softmax(-1)
    noise = Scripted([])
    tokens = [noise.categorical(q, ("own", i)) if shared else int(q.multinomial(1)) for i, q in enumerate(probs)]
    return Proposal.chain(tokens, probs), rows


def tree(size: int, drawn: bool = False) -> tuple[Proposal, Tensor]:
    """Draft the target's likeliest tokens, or draw tokens, each from the residual after its earlier siblings."""
    rows, tokens, probs = distributions(len(TREE) + 1, size, 1.0), list[int](), list[Tensor]()
    for node, parent in enumerate(TREE):
        taken = [tokens[other] for other in range(node) if TREE[other] == parent]
        left = rows[parent + 1].index_fill(0, torch.tensor(taken, dtype=torch.long), 0.0)
        distribution = (left.log() + 0.7 * torch.randn(size)).softmax(-1)
        tokens.append(int(distribution.multinomial(1)) if drawn else int(left.argmax()))
        probs.append(distribution)
    return Proposal(tuple(tokens), TREE, torch.stack(probs) if drawn else None), rows


def shorter(proposal: Proposal, rows: Tensor, k: int) -> tuple[Proposal, Tensor]:
    n = sum(proposal.tree.depth(node) <= k for node in range(len(proposal)))
    assert all(proposal.tree.depth(node) > k for node in range(n, len(proposal)))
    probs = None if proposal.probs is None else proposal.probs[:n]
    return Proposal(proposal.tokens[:n], proposal.parents[:n], probs), rows[: n + 1]


def verdicts(proposal: Proposal, rows: Tensor, coins: list[float]) -> Iterator[tuple[str, int, Proposal, Verdict]]:
    """Judge by every rule and every K; greedy decoding is the walk over one-hot rows."""
    deepest = max(map(proposal.tree.depth, range(len(proposal))))
    for k in range(1, deepest + 1):
        part, seen = shorter(proposal, rows, k)
        for rule in (kind() for kind in RULES.values()):
            if rule.trees or is_chain(proposal.parents):
                yield rule.name, k, part, rule.verify(part, seen, Scripted(coins))
        first = torch.nn.functional.one_hot(seen.argmax(-1), seen.shape[-1]).double()
        chosen = replace(part, probs=None)
        yield "first choice", k, part, RULES["shared_noise"]().verify(chosen, first, Scripted([]))


def log(proposal: Proposal, rows: Tensor, verdict: Verdict, rule: str) -> str:
    def piece(token: int) -> str:
        return f" {token}"

    noise = Scripted([])
    told = describe.verification(proposal, rows, verdict, piece, noise)
    tokens = tuple(verdict.emitted(proposal))
    pieces = tuple(map(piece, tokens))
    events = (
        Started("speculative", "toy", 8, SamplingParams(temperature=1.0), LENGTH, rule),
        Committed("speculative", 0, (1,), (" 1",), 0, "bonus", "", 1, 0.1),
        Drafted("speculative", 1, proposal.tokens, tuple(map(piece, proposal.tokens)), proposal.parents, 0.1, 0.2),
        Verified("speculative", 1, told.positions, 0.2, 0.3, told.distribution, told.p, told.bonus),
        Committed("speculative", 1, tokens, pieces, len(verdict.path), verdict.kind, "", 1 + len(tokens), 0.3),
    )
    return TraceHeader("r", "live", "p", ("speculative",)).line() + "".join(dump(to_dict(event)) for event in events)


def case(proposal: Proposal, rows: Tensor, coins: list[float], rule: str) -> dict[str, Any]:
    wanted, real = [], None
    for name, k, part, verdict in verdicts(proposal, rows, coins):
        states = describe.statuses(part, verdict)
        by_place = is_chain(proposal.parents) or name in ("sample and match", "shared noise", "first choice")
        token = verdict.token if by_place else None  # in a tree the other rules name noise by the node
        wanted.append(
            {"rule": name, "k": k, "path": verdict.path, "kind": verdict.kind, "states": states, "token": token}
        )
        if name == rule and len(part) == len(proposal):
            real = verdict
    return {"log": log(proposal, rows, real, rule), "coins": coins, "rule": rule, "wanted": wanted}


def cases() -> Iterator[dict[str, Any]]:
    torch.manual_seed(1)
    dice = random.Random(1)
    for i in range(120):
        grown = i % 3 == 2
        proposal, rows = tree(9, drawn=i % 2 == 0) if grown else chain(12, dice.randint(1, 5), shared=i % 2 == 0)
        rules = [rule.name for rule in RULES.values() if rule.trees or not grown]
        coins = [dice.random() for _ in proposal.tokens]
        yield case(proposal, rows, coins, rules[i // 3 % len(rules)])


def test_the_pages_what_if_decides_as_the_rules_do(tmp_path) -> None:
    made = list(cases())
    kinds = {(want["rule"], want["kind"]) for one in made for want in one["wanted"]}
    assert len(kinds) == 2 * (len(RULES) + 1)  # every rule both keeps all and does not
    path = tmp_path / "cases.json"
    path.write_text(json.dumps(made), encoding="utf-8")
    target = TableModel(12, seed=1)
    drafter = DraftModelDrafter(TableModel(12, seed=2, base=target))
    task = Task(target, (1,), SamplingParams(1.0, max_tokens=40), drafter, 3, RULES["match"](), lane="speculative")
    matched = tmp_path / "matched.jsonl"
    Trace(TraceHeader("r", "live", "p", ("speculative",)), tuple(generate(task))).save(matched)
    nodejs.check("python/step.test.js", CASES=path, MATCHED=matched)


def test_what_block_verification_would_ask_for_is_told_whoever_judged() -> None:
    torch.manual_seed(2)
    proposal, rows = chain(10, 4, shared=False)
    block = BlockVerification().verify(proposal, rows, Scripted([0.5] * 4))
    walk = RejectionSampling().verify(proposal, rows, Scripted([0.5] * 4))
    positions = describe.positions(proposal, rows, walk, str, Scripted([]))
    assert [one.block for one in positions] == [trial.h for trial in block.trials]
    assert all(one.block is None for one in describe.positions(proposal, rows, block, str, Scripted([])))
    assert all(one.block is None for one in describe.positions(proposal, rows, walk, str, None))
    grown, behind = tree(9)
    judged = RejectionSampling().verify(grown, behind, Scripted([0.5] * len(TREE)))
    assert all(one.block is None for one in describe.positions(grown, behind, judged, str, Scripted([])))
    point_masses = describe.positions(replace(grown, probs=None), behind, judged, str, Scripted([]))
    assert all(one.row is one.behind is None for one in point_masses)
