"""Five rules on the same draft: what each keeps, that four are lossless, and that the fifth says it is not."""

import itertools
import random
from collections import Counter
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from specdec import cli as terminal
from specdec.drafters.base import NoDrafter
from specdec.drafters.draft_model import DraftModelDrafter
from specdec.events import Committed, Failed, Verified
from specdec.host import HostExecutor
from specdec.loop import generate
from specdec.proof import enumeration, prove, toys
from specdec.proof.enumeration import output_distribution, paths, total_variation
from specdec.proof.goodness_of_fit import FALSE_ALARM, g_test
from specdec.proof.toys import cases, deep_loops, LoopCase, run_loop
from specdec.rules import BlockVerification, make_rule, RULES, SharedNoise
from specdec.sampling import probabilities, Sampler, SharedNoiseSampler
from specdec.task import Task
from specdec.types import Proposal, SamplingParams
from specdec.verify import RejectionSampling, Rule
from tests.proof.test_lossless import MAX_VARIATION, proved, shipped_error
from tests.proof.test_prove import few
from tests.tokens import ids

WARM = SamplingParams(temperature=1.0)


@pytest.mark.parametrize("key", ["match", "block"])  # test_cycles.py: shared noise judges as match does
def test_every_random_path_gives_the_targets_distribution(key: str, record_property) -> None:
    few = [case for case in cases(key) if case.k > 0 and case.vocabulary ** (case.length + 1) <= 64]
    walked = proved(random.Random(2).sample(few, 100), 64, record_property, key)
    assert len(walked) >= 60
    assert {case.drafter for case in walked} == set(toys.DRAFTERS if RULES[key].trees else toys.CHAIN_DRAFTERS)
    assert all(sum(case.k == k for case in walked) >= 8 for k in (1, 2, 3))
    assert sum(case.end for case in walked) >= 10


@pytest.mark.parametrize("drafter", toys.DRAFTERS)
def test_typical_acceptance_is_not_lossless_but_greedy_text_survives(drafter: str) -> None:
    case = LoopCase(3, 2, 2, SamplingParams(0.7), drafter, seed=1)
    distribution, _ = output_distribution(run_loop(lambda: case.task(make_rule("typical"))))
    assert total_variation(distribution, case.exact_distribution()) > 1e-3
    assert shipped_error(replace(case, params=SamplingParams()), rule="typical") <= MAX_VARIATION


def test_what_each_rule_keeps_of_a_draft_on_average() -> None:
    """Of a drawn draft Σ min(p, q) or Σ p·q, of one that was chosen outright p(x) by either rule."""
    torch.manual_seed(0)
    p, q = torch.rand(2, 5, dtype=torch.float64).pow(2).softmax(-1)
    chosen = int(q.argmax())

    def kept(rule: str, drawn: bool) -> float:
        def run(sampler: Sampler) -> tuple[int, ...]:
            token = sampler.categorical(q, ("draft", 0)) if drawn else chosen
            proposal = Proposal.chain([token], q[None] if drawn else None)
            return (len(make_rule(rule).verify(proposal, torch.stack([p, p]), sampler).path),)

        return output_distribution(run)[0][(1,)]

    assert kept("rejection", True) == pytest.approx(float(torch.minimum(p, q).sum()), abs=MAX_VARIATION)
    assert kept("match", True) == pytest.approx(float(p @ q), abs=MAX_VARIATION)
    assert kept("rejection", False) == pytest.approx(kept("match", False), abs=MAX_VARIATION) == float(p[chosen])


@pytest.mark.parametrize("key", ["rejection", pytest.param("match", marks=pytest.mark.long)])
@pytest.mark.parametrize("how", ["sampled", "without replacement", "top"])
def test_of_three_siblings_each_is_judged(key: str, how: str) -> None:
    case = LoopCase(4, 1, 2, SamplingParams(0.9), seed=2)
    run = run_loop(lambda: case.task(make_rule(key), toys.TreeDrafter(case.models()[1], 3, how)))
    assert total_variation(output_distribution(run)[0], case.exact_distribution()) <= MAX_VARIATION


class Independent(toys.TableModel):
    """The same distribution behind every text."""

    def __init__(self, distribution: list[float]) -> None:
        super().__init__(len(distribution), 0)
        self.distribution = torch.tensor(distribution, dtype=torch.float64).log()

    def logits(self, prefix: tuple[int, ...]) -> Tensor:
        return self.distribution


def expected_accepted(target: toys.TableModel, draft: toys.TableModel, k: int, rule: Rule) -> float:
    def cycle(sampler: Sampler) -> tuple[int, ...]:
        proposal = DraftModelDrafter(draft).propose([0], k, WARM, sampler)
        logits = target.forward([0, *proposal.tokens], target.new_cache(9), proposal.parents, k + 1)
        return (len(rule.verify(proposal, probabilities(logits, WARM), sampler).path),)

    return sum(count * chance for (count,), chance in paths(cycle, 50_000))


def test_the_papers_example() -> None:
    """Sun et al. 2024 (arXiv 2403.10444), their first example: 10/9 tokens one by one, 11/9 as a block."""
    target, draft = Independent([1 / 3, 2 / 3]), Independent([2 / 3, 1 / 3])
    assert expected_accepted(target, draft, 2, RejectionSampling()) == pytest.approx(10 / 9, abs=MAX_VARIATION)
    assert expected_accepted(target, draft, 2, BlockVerification()) == pytest.approx(11 / 9, abs=MAX_VARIATION)


def test_a_block_never_keeps_fewer_in_expectation_and_often_more() -> None:
    gains = []
    for seed, (vocabulary, k) in itertools.product(range(8), ((2, 2), (2, 3), (3, 2))):
        target, draft = LoopCase(vocabulary, seed=seed).models()
        by_token, by_block = (expected_accepted(target, draft, k, r()) for r in (RejectionSampling, BlockVerification))
        gains.append(by_block - by_token)
    assert min(gains) >= -MAX_VARIATION
    assert sum(gain > 0.005 for gain in gains) >= len(gains) / 3


def test_shared_noise_gives_the_plain_text_for_any_drafter_and_k() -> None:
    compared, kept, drafted = 0, 0, 0
    for seed, temperature in itertools.product(range(2), (0.0, 0.7, 1.2)):
        prompt = ((0,), (3, 1, 2))[seed % 2]
        params = SamplingParams(temperature, max_tokens=16, seed=seed)
        case = LoopCase(6, params=params, seed=4)
        target, draft = case.models()
        plain = ids(generate(Task(target, prompt, params, NoDrafter(), 0, SharedNoise())))
        for drafter, k in itertools.product(toys.DRAFTERS, (1, 3, 6)):
            maker = replace(case, drafter=drafter).make_drafter(draft)
            events = list(generate(Task(target, prompt, params, maker, k, SharedNoise())))
            assert ids(events) == plain, (seed, temperature, prompt, drafter, k)
            compared += 1
            kept += sum(e.accepted for e in events if isinstance(e, Committed))
            drafted += sum(len(e.positions) for e in events if isinstance(e, Verified))
    assert compared == 90
    assert 0.1 * drafted < kept < 0.9 * drafted


def test_the_same_distribution_gives_the_same_token() -> None:
    target = toys.TableModel(6, 4)
    params = SamplingParams(1.0, max_tokens=21, seed=3)
    events = list(generate(Task(target, (0,), params, DraftModelDrafter(target), 4, SharedNoise())))
    assert [len(e.tokens) for e in events if isinstance(e, Committed)] == [1, 5, 5, 5, 5]


def test_two_distributions_agree_as_often_as_the_theory_says() -> None:
    """Gumbel coupling: Σ_x 1 / Σ_y max(p_y/p_x, q_y/q_x), at least (1 - TV) / (1 + TV)."""
    p, q = torch.tensor([[0.5, 0.3, 0.15, 0.05], [0.2, 0.4, 0.1, 0.3]], dtype=torch.float64)
    expected = sum(1 / float(torch.maximum(p / p[x], q / q[x]).sum()) for x in range(4))
    distance = float((p - q).abs().sum()) / 2
    assert expected >= (1 - distance) / (1 + distance)
    sampler, draws, same = SharedNoiseSampler(1), 20_000, 0
    for length in range(draws):
        sampler.at(length)
        same += sampler.categorical(q, ("draft", 0)) == sampler.categorical(p, ("own", 0))
    assert abs(same / draws - expected) < 5 * (expected * (1 - expected) / draws) ** 0.5


def test_over_seeds_the_text_follows_the_targets_joint_distribution() -> None:
    case = LoopCase(3, 2, 2, seed=3)
    run = run_loop(lambda: case.task(SharedNoise()))
    test = g_test(Counter(run(SharedNoiseSampler(seed)) for seed in range(2500)), case.exact_distribution())
    assert test.degrees > 15 and test.tail >= FALSE_ALARM


def test_shared_noise_serves_no_rule_that_tosses_coins() -> None:
    for rule in (RejectionSampling(), BlockVerification()):
        task = LoopCase(3, 2, 2).task(rule)
        events = list(generate(task, HostExecutor(task, SharedNoiseSampler(0))))
        assert any(isinstance(e, Failed) and e.fatal and "tosses no coins" in e.reason for e in events)


def run(key: str, drafter: str = "model", seeds: int = 20) -> list[Verified]:
    made = []
    for seed in range(seeds):
        case = LoopCase(8, 3, 9, SamplingParams(1.0, seed=seed), drafter, seed=7)
        made += [e for e in generate(replace(case.task(make_rule(key)), details=True)) if isinstance(e, Verified)]
    return [event for event in made if event.positions]


@pytest.mark.parametrize("drafter", ["model", "without replacement"])
@pytest.mark.parametrize("key", ["match", "shared_noise", "typical"])
def test_a_rule_without_coins_tells_of_none(key: str, drafter: str) -> None:
    rejected = 0
    for event in run(key, drafter):
        for position in event.positions:
            assert position.u is None and position.h is None and position.residual is None
            if position.status == "rejected":  # the target's own row: nothing was taken off
                assert position.target is not None and event.distribution is not None
                assert set(event.distribution.top) <= set(position.target.top)
                rejected += 1
    assert rejected > 10


def test_of_a_tree_typical_acceptance_keeps_the_longest_plausible_path() -> None:
    rows = torch.full((7, 4), 0.25)
    rows[:2] = torch.tensor([[0.5, 0.4, 0.1, 0.0], [0.0, 0.0, 0.0, 1.0]])
    proposal = Proposal((0, 1, 0, 2, 3, 2), (-1, -1, 0, 1, 3, -1))
    verdict = make_rule("typical").verify(proposal, rows, enumeration.EnumeratingSampler())
    assert verdict.path == (1, 3, 4)
    assert verdict.kind == "bonus"
    assert verdict.emitted(proposal)[:3] == [1, 2, 3]


@pytest.mark.parametrize(("key", "status"), [("match", 0), ("block", 0), ("shared_noise", 0), ("typical", 1)])
def test_the_prover_takes_a_rule(key: str, status: int, monkeypatch, capsys) -> None:
    few_cases = [LoopCase(3, 2, 2, drafter="model"), LoopCase(2, 1, 2, drafter="point")]
    monkeypatch.setattr(prove, "cases", lambda rule: few_cases)
    monkeypatch.setattr(prove, "deep_loops", lambda rule: deep_loops(rule)[::9])
    monkeypatch.setattr(prove, "groups", few)
    assert terminal.main(["prove", "--rule", key]) == status
    assert RULES[key].name in capsys.readouterr().out


class Scripted(Sampler):
    """Coins as given; the first token that can be drawn."""

    def __init__(self, *coins: bool) -> None:
        self.coins, self.asked = list(coins), list[tuple[str, int]]()

    def categorical(self, probs: Tensor, key: tuple[str, int]) -> int:
        self.asked.append(key)
        return int(probs.nonzero()[0])

    def accept(self, p: float, q: float, key: tuple[str, int]) -> tuple[bool, float]:
        self.asked.append(key)
        return self.coins.pop(0), 0.5


@pytest.mark.parametrize(
    ("coins", "kind", "asked"),
    [
        ([True], "bonus", [("accept", 1), ("own", 2)]),
        ([False, True], "resampled", [("accept", 1), ("accept", 0), ("own", 1)]),
        ([False, False], "resampled", [("accept", 1), ("accept", 0), ("own", 0)]),
    ],
)
def test_a_block_is_judged_from_its_end(coins: list[bool], kind: str, asked: list[tuple[str, int]]) -> None:
    rows = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.3, 0.3, 0.4]])
    distributions = torch.tensor([[0.2, 0.6, 0.2], [0.02, 0.58, 0.4]])
    sampler = Scripted(*coins)
    verdict = BlockVerification().verify(Proposal.chain([1, 2], distributions), rows, sampler)
    kept = 2 - coins.count(False)
    assert verdict.path == tuple(range(kept)) and verdict.kind == kind and sampler.asked == asked
    assert [trial.accepted for trial in verdict.trials] == [True] * kept + [False] * (2 - kept)
    weights = [1.0, 0.5, 0.5 * 0.7 / 0.4]
    left = rows[2] if kept == 2 else (weights[kept] * rows[kept] - distributions[kept]).clamp(min=0.0)
    assert verdict.distribution is not None and torch.allclose(verdict.distribution, left / left.sum())


def test_typical_acceptance_asks_for_less_where_more_is_open() -> None:
    """min(ε, δ·exp(-H)): .05 of an open row is plausible, of a nearly closed one it is not."""
    rows = torch.full((3, 20), 0.05)
    rows[1] = torch.tensor([0.05, 0.78, 0.17] + [0.0] * 17)
    sampler = Scripted()
    verdict = make_rule("typical").verify(Proposal.chain([3, 0]), rows, sampler)
    assert verdict.path == (0,) and verdict.kind == "resampled" and sampler.asked == [("own", 1)]
    assert [trial.q for trial in verdict.trials] == [1.0, 1.0]  # a point mass on what was drafted
    verdict = make_rule("typical").verify(Proposal.chain([3, 2]), rows, sampler)
    assert [trial.p for trial in verdict.trials] == pytest.approx([0.05, 0.17])
    assert verdict.path == (0, 1) and verdict.kind == "bonus" and sampler.asked[1:] == [("own", 2)]
    exactly = torch.tensor([[0.09, 0.91], [0.5, 0.5]], dtype=torch.float64)
    assert make_rule("typical").verify(Proposal.chain([0]), exactly, Scripted()).path == (0,)


@pytest.mark.parametrize(("rule", "kept"), [(RejectionSampling(), [False, True, True]), (SharedNoise(), [])])
def test_in_a_tree_a_draw_is_named_by_its_level_and_a_trial_by_its_node(rule: Rule, kept: list[bool]) -> None:
    tree = Proposal((0, 1, 1), (-1, -1, 1))
    sampler = Scripted(*kept)
    rows = torch.full((4, 4), 0.25)
    if not kept:
        rows = torch.tensor([[0.0, 1.0, 0.0, 0.0]] * 4)
    assert rule.verify(tree, rows, sampler).path == (1, 2)
    assert [key for key in sampler.asked if key[0] == "own"][-1] == ("own", 2)
    assert [key for key in sampler.asked if key[0] == "accept"] == [("accept", node) for node in range(len(kept))]
