"""What `probe` measures is what a cycle costs, chain or tree: simulated."""

import random
import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from torch import Tensor

from specdec.drafters.base import Drafter, NoDrafter
from specdec.lanes.probe import interpolate, probe
from specdec.messages import Refused
from specdec.models.device import Resources
from specdec.proof.toys import TokenList
from specdec.sampling import Sampler
from specdec.types import Costs, Proposal, SamplingParams

V = 64


@pytest.fixture
def clock(monkeypatch) -> SimpleNamespace:
    """Time passes where the models say so, and nowhere else."""
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(time, "perf_counter", lambda: clock.now)
    return clock


class Target:
    """Its next token is the last one plus 1; a pass takes 10 ms, and 1 ms more for every row after the first."""

    vocabulary, context, chains_only = V, 100_000, False
    seventh = 0.0  # seconds more, from the seventh row on

    def __init__(self, clock: SimpleNamespace) -> None:
        self.clock = clock

    def new_cache(self, capacity: int) -> TokenList:
        return TokenList([])

    def forward(self, tokens: Sequence[int], cache: TokenList, parents: Sequence[int] = (), rows: int = 1) -> Tensor:
        self.clock.now += 0.010 + 0.001 * (rows - 1) + self.seventh * (rows > 6)
        cache.tokens = [*cache.tokens, *tokens]
        logits = torch.full((rows, V), -10.0)
        for row, token in enumerate(tokens[-rows:]):
            logits[row, (token + 1) % V] = 10.0
        return logits


class Guesser(Drafter):
    """`width` guesses a level; the first has children and is right with chance `alpha`."""

    name = "guesser"

    def __init__(self, clock: Any, width: int, level: float, fixed: float, alpha: float, draw: float = 0.0) -> None:
        self.clock, self.width, self.level, self.fixed, self.alpha = clock, width, level, fixed, alpha
        self.draw, self.random = draw, random.Random(0)

    def propose(self, tokens: Sequence[int], k: int, params: SamplingParams, sampler: Sampler) -> Proposal:
        if k == 0:
            return Proposal()
        self.clock.now += self.fixed + (self.level + self.draw * (params.temperature > 0.0)) * k
        drafted, parents, node, last = list[int](), list[int](), -1, tokens[-1]
        for _ in range(k):
            first, right = len(drafted), self.random.random() < self.alpha
            last = (last + (1 if right else 2)) % V
            drafted += [last, *((last + 3 + i) % V for i in range(self.width - 1))]
            parents += [node] * self.width
            node = first
        return Proposal(tuple(drafted), tuple(parents))


class Family:
    in_memory = True

    def __init__(self, clock: SimpleNamespace, **how: Any) -> None:
        self.clock, self.how, self.costs, self.resources = clock, how, dict[str, Costs](), Resources()

    @property
    def target(self) -> Target:
        return Target(self.clock)

    def encode(self, text: str) -> list[int]:
        return list(range(len(text) % V))

    def new_drafter(self, name: str, capacity: int) -> tuple[Target, Any]:
        return Target(self.clock), NoDrafter() if name == "none" else Guesser(self.clock, **self.how)


CHAIN = {"width": 1, "level": 0.002, "fixed": 0.0}
TREE = {"width": 4, "level": 0.003, "fixed": 0.001}
HEADS = {"width": 5, "level": 0.0, "fixed": 0.004}


@pytest.mark.parametrize("how", [CHAIN, TREE, HEADS], ids=["chain", "tree", "heads"])
def test_the_costs_of_a_depth_are_those_of_a_cycle_of_that_depth(clock, how: dict[str, Any]) -> None:
    costs = probe(Family(clock, **how, alpha=0.5), "guesser")
    for depth in range(10):
        draft = how["fixed"] + how["level"] * depth if depth else 0.0
        seconds = draft + 0.010 + 0.001 * how["width"] * depth
        assert costs.cycle(depth) == pytest.approx(seconds / 0.010, rel=0.02)


def test_a_row_that_is_dearer_than_the_others_is_found(clock, monkeypatch) -> None:
    """A processor takes so many rows at once, and one more is another turn. Between two depths nothing is guessed."""
    monkeypatch.setattr(Target, "seventh", 0.004)
    costs = probe(Family(clock, **CHAIN, alpha=0.5), "guesser")
    steps = [costs.verify(depth + 1) - costs.verify(depth) for depth in range(8)]
    assert steps == pytest.approx([0.1] * 5 + [0.5] + [0.1] * 2, abs=0.01)


def test_drawing_costs_what_it_costs_and_greedy_drafts_draw_nothing(clock) -> None:
    costs = probe(Family(clock, **CHAIN, alpha=0.5, draw=0.001), "guesser")
    assert costs.at(0.0) is costs
    assert costs.draw == pytest.approx(0.1, abs=0.01)
    assert costs.at(0.8).cycle(4) - costs.cycle(4) == pytest.approx(0.4, abs=0.04)
    assert costs.at(0.8).at(0.8) == costs.at(0.8)


def test_no_pass_costs_less_than_that_of_a_shallower_draft_and_rare_depths_do_not_count(clock, monkeypatch) -> None:
    assert interpolate({1: 1.2, 4: 1.1}) == [1.0, *[1.2] * 8]
    cycles = [(2, 0.004, 0.012)] * 3 + [(5, 9.0, 9.0)]
    monkeypatch.setattr("specdec.lanes.probe.cycles_of", lambda events: cycles)
    assert probe(Family(clock, **CHAIN, alpha=0.5), "guesser").cycle(2) == pytest.approx(1.6)


def test_a_target_of_a_short_context_is_measured_after_a_shorter_text(clock, monkeypatch) -> None:
    monkeypatch.setattr(Target, "context", 32)
    assert probe(Family(clock, **CHAIN, alpha=0.5), "guesser").cycle(2) > 1.0


def test_what_never_drafts_is_refused(clock, monkeypatch) -> None:
    family = Family(clock, **CHAIN, alpha=0.5)
    monkeypatch.setattr(Guesser, "propose", NoDrafter.propose)
    with pytest.raises(ValueError, match="drafted nothing"):
        probe(family, "guesser")


@pytest.mark.parametrize("broken", [(Guesser, "propose"), (Target, "forward")], ids=["drafter", "target"])
def test_what_fails_is_refused_with_its_reason(clock, monkeypatch, broken: tuple[type, str]) -> None:
    monkeypatch.setattr(*broken, Mock(side_effect=OSError("the cable is out")))
    with pytest.raises(Refused, match=r"the drafter guesser cannot be measured, .*the cable is out"):
        probe(Family(clock, **CHAIN, alpha=0.5), "guesser")
