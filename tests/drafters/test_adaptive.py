"""Depth by survival against cost, on a simulated clock: never much behind the best fixed depth, or plain decoding."""

import functools
import random
from collections.abc import Iterator, Sequence
from statistics import mean
from typing import Any

import pytest

from specdec.drafters.adaptive import AdaptiveDrafter
from specdec.drafters.base import ChainDrafter, Drafter
from specdec.sampling import RandomSampler, Sampler
from specdec.types import Costs, Proposal, SamplingParams

CHEAP = Costs(0.08, (1.0, 1.08, 1.13, 1.18, 1.22, 1.26, 1.3, 1.34, 1.4), 0.05)
DEAR = Costs(0.4, (1.0, 1.2, 1.4, 1.6, 1.8, 2.0), 0.1)
GREEDY = SamplingParams()


class World(ChainDrafter):
    """Drafts whose tokens are kept with a chance that scatters around `alpha`; its confidence knows that chance."""

    name = "world"

    def __init__(self, alpha: float, seed: int, confidence: float = 1.0) -> None:
        self.alpha, self.power, self.random = alpha, confidence, random.Random(seed)
        self.coins: list[bool] = []
        self.drafted = 0

    def propose(self, tokens: Sequence[int], k: int, params: SamplingParams, sampler: Sampler) -> Proposal:
        draft: list[int] = []
        self.coins = []
        while len(draft) < k:
            chance = self.random.betavariate(2 * self.alpha, 2 * (1 - self.alpha))
            self.drafted += 1
            draft.append(self.drafted)
            self.coins.append(self.random.random() < chance)
            if self._should_stop is not None and self._should_stop(chance**self.power, len(draft) - 1):
                break
        return Proposal.chain(draft)


def rate(drafter: Drafter, world: World, k: int, tokens: int, costs: Costs) -> float:
    """Tokens per plain step on the clock that `costs` gives."""
    text, spent = [0], 0.0
    while len(text) <= tokens:
        proposal = drafter.propose(text, k, GREEDY, RandomSampler(0))
        kept = next((i for i, coin in enumerate(world.coins[: len(proposal)]) if not coin), len(proposal))
        text += [*proposal.tokens[:kept], -len(text)]
        spent += costs.cycle(len(proposal))
    return (len(text) - 1) / spent


@functools.cache
def best_fixed(alpha: float, costs: Costs) -> float:
    rates = [1.0]
    for k in (1, 2, 3, 4, 6, 8):
        world = World(alpha, 1)
        rates.append(rate(world, world, k, 4000, costs))
    return max(rates)


def worlds() -> Iterator[Any]:
    """Every acceptance with either cost and either confidence, but only half of the triples."""
    for i, alpha in enumerate((0.05, 0.3, 0.6, 0.8, 0.95)):
        for j, costs in enumerate((CHEAP, DEAR)):
            for k, confidence in enumerate((1.0, 0.5)):
                name = f"{alpha}-{('cheap', 'dear')[j]}-{('calibrated', 'overconfident')[k]}"
                if (i + j + k) % 2 == 0:
                    marks = [pytest.mark.long] if i % 2 else []
                    yield pytest.param(alpha, costs, confidence, marks=marks, id=name)


@pytest.mark.parametrize(("alpha", "costs", "confidence"), worlds())
def test_regret_stays_within_two_per_cent(alpha: float, costs: Costs, confidence: float) -> None:
    best = best_fixed(alpha, costs)
    for tokens, seeds, least in ((3000, 3, 0.98), (100, 30, 0.965)):
        rates = []
        for seed in range(seeds):
            world = World(alpha, 10 + seed, confidence)
            rates.append(rate(AdaptiveDrafter(world, costs), world, 8, tokens, costs))
        assert mean(rates) >= least * best


def test_it_rests_where_drafting_loses_and_tries_again() -> None:
    asked, depths, text = list[int](), list[int](), [0]

    class Asked(World):
        def propose(self, tokens: Sequence[int], k: int, params: SamplingParams, sampler: Sampler) -> Proposal:
            asked.append(k)
            return super().propose(tokens, k, params, sampler)

    drafter = AdaptiveDrafter(Asked(0.02, 3), DEAR)
    for _ in range(400):
        text.append(-len(text))
        depths.append(len(drafter.propose(text, 8, GREEDY, RandomSampler(0))))
    assert any(depths[200:]) and all(asked) and 1 < len(asked) < 50


def test_a_draft_is_learnt_from_once(monkeypatch) -> None:
    """Also if the next one fails, so that there is no draft to replace it."""
    learnt = list[int]()
    drafter, text = AdaptiveDrafter(world := World(0.9, 1), CHEAP), [0]
    monkeypatch.setattr(drafter.stop, "learn", lambda accepted, judged: learnt.append(judged))
    drafter.propose(text, 8, GREEDY, RandomSampler(0))
    monkeypatch.setattr(world, "propose", None)
    for _ in range(3):
        text.append(-len(text))
        with pytest.raises(TypeError):
            drafter.propose(text, 8, GREEDY, RandomSampler(0))
    assert len(learnt) == 1


def test_what_a_draw_costs_counts_where_tokens_are_drawn() -> None:
    costs = Costs(0.05, (1.0,) * 9, draw=5.0)
    depths = [AdaptiveDrafter(World(0.9, 1), costs).depth([0], 8, temperature) for temperature in (0.0, 0.8)]
    assert depths == [8, 1]  # 1: a trial, which shows whether that changed


def test_it_drafts_no_deeper_than_the_drafter_in_it_can() -> None:
    world = World(0.9, 1)
    world.deepest = 4
    assert AdaptiveDrafter(world, CHEAP).deepest == 4


def test_the_prompt_is_no_trial() -> None:
    drafter = AdaptiveDrafter(world := World(0.9, 1), Costs(5.0, (1.0,) * 9))
    drafter.read_prompt([0])
    assert [len(drafter.propose([0] * n, 8, GREEDY, RandomSampler(0))) for n in (2, 3)] == [1, 0] and world.drafted == 1
