"""Who drafts, chosen in every cycle, on a simulated clock: never much behind the best single method in hindsight."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from statistics import mean
from typing import Any

import pytest
from torch import Tensor
from toyheads import MAKERS, TEXT, view_of, WARM

from specdec.drafters import Arm, auto, AutoDrafter, DraftModelDrafter, NoDrafter, PromptLookupDrafter, SuffixDrafter
from specdec.drafters.base import ChainDrafter, Drafter
from specdec.engine import generate, Task
from specdec.events import Committed, Drafted, Failed, from_dict, to_dict
from specdec.proof.enumeration import output_distribution
from specdec.proof.toys import Case, largest_error, LookupToy, run_loop, TableModel
from specdec.rules import RULES
from specdec.sampling import RandomSampler, Sampler
from specdec.types import Costs, Proposal, SamplingParams

GREEDY = SamplingParams()
PASSES = (1.0, 1.12, 1.25, 1.4, 1.53, 1.66, 1.8, 1.93)  # as measured on two cores
COSTS = {
    "model": Costs(0.09, PASSES, 0.08, 0.01),
    "block": Costs(0.01, PASSES, 0.25, 0.02),
    "copy": Costs(0.0, PASSES, 0.08),
}
Course = Callable[[int], float]  # of a text: what holds at each place


class Guesser:
    """The token at a place is its number. This guesses it with the chance that `alpha` gives there, up to `reach`."""

    def __init__(self, name: str, alpha: Course, seed: int, reach: Course = lambda place: 64) -> None:
        self.name, self.alpha, self.reach = name, alpha, reach
        rng = random.Random(f"{name} {seed}")
        self.coins = [rng.random() for _ in range(700)]

    def propose(self, tokens: Sequence[int], k: int, params: SamplingParams, sampler: Sampler) -> Proposal:
        places = range(len(tokens), len(tokens) + min(k, int(self.reach(len(tokens)))))
        return Proposal.chain([place if self.coins[place] < self.alpha(place) else -place for place in places])


def always(value: float) -> Course:
    return lambda place: value


def turns(first: float, second: float, every: int) -> Course:
    return lambda place: second if place // every % 2 else first


WORLDS: dict[str, dict[str, Course]] = {
    "model": {"model": always(0.8), "block": always(0.5)},
    "block": {"model": always(0.6), "block": always(0.75)},
    "equal": {"model": always(0.7), "block": always(0.7)},
    "copies": {"model": always(0.5), "block": always(0.4), "copy": always(0.95), "reach": always(8)},
    "nobody": {"model": always(0.1), "block": always(0.1), "copy": always(0.1)},
    "sure": {"model": always(0.96), "block": always(0.8)},
    "changes": {"model": turns(0.85, 0.2, 50), "block": turns(0.2, 0.85, 50)},
    "changes seldom": {"model": turns(0.2, 0.85, 300), "block": turns(0.85, 0.2, 300)},
    "loops": {"model": always(0.7), "block": always(0.6), "copy": turns(0.2, 0.97, 40), "reach": turns(1, 8, 40)},
}


def methods(world: str, seed: int) -> list[Guesser]:
    alphas = {"copy": always(0.2), "reach": always(1)} | WORLDS[world]
    reach = alphas.pop("reach")
    return [Guesser(name, alphas[name], seed, *((reach,) if name == "copy" else ())) for name in COSTS]


def rate(drafter: Drafter, k: int, tokens: int, costs: dict[str, Costs] = COSTS) -> float:
    """Tokens a plain step, on the clock that `costs` gives. What catching up costs is paid at once, in full."""
    text, spent, before, read = [0], 0.0, 1, dict.fromkeys(costs, 1)
    drafter.propose(text, 0, GREEDY, RandomSampler(0))
    while len(text) < tokens:
        proposal, length = drafter.propose(text, k, GREEDY, RandomSampler(0)), len(text)
        kept = next((i for i, token in enumerate(proposal.tokens) if token != length + i), len(proposal))
        who = proposal.drafter or drafter.name
        spent += costs[who].cycle(len(proposal)) if proposal.tokens else 1.0
        if proposal.tokens:
            spent += costs[who].catch_up * max(0, before - read[who])
            read[who] = length
        before = length
        text += range(length, length + kept + 1)
    return (len(text) - 1) / spent


def choosing(world: str, seed: int, costs: dict[str, Costs] = COSTS) -> AutoDrafter:
    return AutoDrafter([Arm(one, costs[one.name], one.name == "copy") for one in methods(world, seed)])


@functools.cache
def best_single(world: str, tokens: int, seeds: int) -> float:
    """Of all methods at all fixed depths, and of plain decoding, in hindsight."""
    rates = [1.0]
    for number, k in product(range(len(COSTS)), (1, 3, 8)):
        rates.append(mean(rate(methods(world, seed)[number], k, tokens) for seed in range(seeds)))
    return max(rates)


def share(world: str, tokens: int, seeds: int) -> float:
    """Of the best single method's speed."""
    rates = [rate(choosing(world, seed), 8, tokens) for seed in range(seeds)]
    return mean(rates) / best_single(world, tokens, seeds)


LONG, SHORT = (600, 2), (100, 10)


@pytest.mark.parametrize("world", WORLDS)
def test_regret_stays_within_ten_per_cent_of_the_best_single_method(world: str) -> None:
    """In the long run, and within the hundred tokens of one text."""
    assert min(share(world, *SHORT), share(world, *LONG)) >= 0.9


@pytest.mark.parametrize("world", ["changes seldom", "loops"])
def test_where_the_best_method_changes_it_beats_every_single_one(world: str) -> None:
    assert share(world, *LONG) >= 1.1


def regrets() -> list[str]:
    return [world for world in WORLDS if min(share(world, *SHORT), share(world, *LONG)) < 0.9]


def test_without_the_benefit_of_the_doubt_the_bound_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plant: what looks best is taken, nothing fades, so nothing is tried again."""
    monkeypatch.setattr(auto, "DOUBT", 0.0)
    monkeypatch.setattr(auto, "IDLE", 1.0)
    assert regrets()


def test_without_the_cost_of_catching_up_the_bound_is_missed() -> None:
    """A plant: methods as good as each other, which are dear to come back to. To wander between them is to lose."""
    free = {name: replace(costs, catch_up=0.0) for name, costs in COSTS.items()}
    dear = {name: replace(costs, catch_up=0.3 * (name != "copy")) for name, costs in COSTS.items()}
    best = best_single("equal", *LONG)

    def against(weighed: dict[str, Costs]) -> float:
        rates = []
        for seed in range(LONG[1]):
            drafter = AutoDrafter([Arm(one, weighed[one.name], one.name == "copy") for one in methods("equal", seed)])
            rates.append(rate(drafter, 8, 600, dear))
        return mean(rates) / best

    assert against(dear) >= 0.9 > against(free)


def test_the_same_text_gives_the_same_choices_and_no_coin_is_touched() -> None:
    class NoCoins(Sampler):
        def categorical(self, probs: Any, key: tuple[str, int]) -> int:
            raise AssertionError("it draws nothing itself")

    def chosen() -> list[tuple[str, int]]:
        drafter, text, found = choosing("loops", 4), [0], []
        for _ in range(60):
            proposal = drafter.propose(text, 8, GREEDY, NoCoins())
            found.append((proposal.drafter, len(proposal)))
            kept = next((i for i, token in enumerate(proposal.tokens) if token != len(text) + i), len(proposal))
            text += range(len(text), len(text) + kept + 1)
        return found

    assert chosen() == chosen()
    assert {name for name, _ in chosen()} >= {"model", "copy"}


def test_what_a_copy_would_have_given_is_read_off_the_text() -> None:
    """Nobody drafts, and yet the copies are known to be good; of a model nothing is learned in this way."""
    copy, model = Arm(SuffixDrafter(), COSTS["copy"], copies=True), Arm(NoDrafter(), COSTS["model"])
    drafter, text = AutoDrafter([copy, model]), [1, 2, 3, 4]
    for token in (1, 2, 3, 4) * 6:
        drafter.propose(text, 4, GREEDY, RandomSampler(0))
        text.append(token)
    assert copy.share(4).value > 0.9
    assert model.share(4).seen <= auto.WEIGHT


def test_a_copy_is_right_or_wrong_as_a_whole_and_goes_deeper_than_a_model_kept_as_often() -> None:
    copy, model = (Arm(NoDrafter(), COSTS["copy"], copies=copies) for copies in (True, False))
    model.shares[0] = copy.share(16)
    (more, further), (less, depth) = copy.best(16, 0, 0.0), model.best(16, 0, 0.0)
    assert further > depth > 1
    assert more > less


def test_what_was_not_read_costs_and_what_was_just_read_does_not() -> None:
    arm = Arm(NoDrafter(), Costs(0.1, PASSES, 0.1, catch_up=0.05))
    fresh, behind = arm.best(1, 0, 0.0)[0], arm.best(1, 40, 0.0)[0]
    assert fresh / behind == pytest.approx(1.0 + 40 * 0.05 / auto.STAY / arm.costs.cycle(1))


def test_a_method_that_breaks_leaves_the_others() -> None:
    class Broken(NoDrafter):
        name = "broken"

        def propose(self, tokens: Sequence[int], k: int, params: SamplingParams, sampler: Sampler) -> Proposal:
            if k:
                raise RuntimeError("out of order")
            return Proposal()

    cheap = Costs(0.0, (1.0, 1.0, 1.0, 1.0))
    arms = [Arm(Broken(), cheap), Arm(PromptLookupDrafter(), cheap, copies=True)]
    events = list(generate(Task(view_of(), TEXT, SamplingParams(max_tokens=24), AutoDrafter(arms), 3)))
    assert [e.reason for e in events if isinstance(e, Failed)] == ["RuntimeError: out of order"]
    assert {e.drafter for e in events if isinstance(e, Drafted)} == {"prompt_lookup"}
    assert sum(len(e.tokens) for e in events if isinstance(e, Committed)) == 24


def test_a_models_draft_ends_where_it_is_unsure_and_the_token_stays() -> None:
    class Wavering(ChainDrafter):
        name = "wavering"

        def propose(self, tokens: Sequence[int], k: int, params: SamplingParams, sampler: Sampler) -> Proposal:
            sure = (len(tokens) // 7) % 8 + 1  # tokens
            for n in range(k):
                if self.should_stop is not None and self.should_stop(0.99 if n < sure else 0.01, n):
                    return Proposal.chain(list(range(n + 1)))
            return Proposal.chain(list(range(k)))

    drafter, text, lengths = AutoDrafter([Arm(Wavering(), COSTS["model"])]), [0], []
    for _ in range(60):
        text = [*text, *drafter.propose(text, 8, GREEDY, RandomSampler(0)).tokens, 99]
        lengths.append(len(drafter._drafts.get(drafter.arms[0], ())))
    assert len(set(lengths)) > 3 and min(lengths) >= 1


def test_every_draft_names_its_drafter_in_the_trace() -> None:
    view = view_of()
    events = list(generate(Task(view, TEXT, WARM, MAKERS["auto"](view), 3)))
    drafts = [event for event in events if isinstance(event, Drafted)]
    assert {event.drafter for event in drafts} <= {"suffix", "draft_model", "eagle3", "quantised"} and drafts
    assert [from_dict(to_dict(event)) for event in drafts] == drafts
    assert "drafter" not in to_dict(Drafted("plain", 1, (), (), (), 0.0, 0.0))  # as in traces that were written before


def cases() -> Iterator[Any]:
    for rule, seed in product(("rejection", "match", "shared_noise", "block"), (0, 1, 2)):
        quick = seed == 0 and rule in ("rejection", "block")
        yield pytest.param(rule, seed, marks=[] if quick else [pytest.mark.long])


def arms_of(case: Case, models: int) -> list[Arm]:
    """Models that are named by number; beside a single one, a copy that is better in some texts."""
    passes = 1.0, 1.1, 1.2, 1.3
    drafts = [TableModel(case.vocabulary, 10_000 + case.seed + number, case.models()[0]) for number in range(models)]
    arms = [Arm(DraftModelDrafter(draft), Costs(0.05, passes, 0.1, 0.05)) for draft in drafts]
    for number, arm in enumerate(arms):
        arm.drafter.name = f"model {number}"
    return arms if models > 1 else [Arm(LookupToy(), Costs(0.05, passes), copies=True), *arms]


def distribution_error(case: Case, rule: str, kind: type[AutoDrafter], models: int = 1) -> float:
    distribution, _ = output_distribution(run_loop(lambda: case.task(RULES[rule](), kind(arms_of(case, models)))))
    return largest_error(distribution, case.exact_distribution())


@pytest.mark.parametrize(("rule", "seed"), cases())
@pytest.mark.parametrize(
    ("shape", "arms"), [((2, 2, 3), ("point", "model 0")), ((2, 1, 4), ("model 0", "model 1"))], ids=["copy", "models"]
)
def test_a_choice_by_the_text_leaves_the_distribution_as_it_is(
    shape: tuple[int, int, int], arms: tuple[str, ...], rule: str, seed: int
) -> None:
    """Every random path of the shipped loop, in which different texts get different drafters."""
    chosen = set[str]()

    class Watched(AutoDrafter):
        def propose(self, tokens: Sequence[int], k: int, params: SamplingParams, sampler: Sampler) -> Proposal:
            proposal = super().propose(tokens, k, params, sampler)
            chosen.add(proposal.drafter)
            return proposal

    assert distribution_error(Case(*shape, seed=seed), rule, Watched, 2 if "model 1" in arms else 1) <= 1e-12
    assert chosen >= {*arms}


class Peeking(AutoDrafter):
    """Looks at a draft, and drops it if it does not please."""

    def propose(self, tokens: Sequence[int], k: int, params: SamplingParams, sampler: Sampler) -> Proposal:
        proposal = super().propose(tokens, k, params, sampler)
        unpleasing = proposal.probs is not None and proposal.tokens[0] == 0
        return Proposal() if unpleasing else proposal


class Stale(AutoDrafter):
    """Reports the distributions of its draft before."""

    _probs: Tensor | None = None

    def propose(self, tokens: Sequence[int], k: int, params: SamplingParams, sampler: Sampler) -> Proposal:
        proposal, before = super().propose(tokens, k, params, sampler), self._probs
        if proposal.probs is None:
            return proposal
        self._probs = proposal.probs
        return proposal if before is None else replace(proposal, probs=before[: len(proposal)])


@pytest.mark.parametrize("wrong", [Peeking, Stale])
def test_a_wrong_choice_would_be_caught(wrong: type[AutoDrafter]) -> None:
    assert max(distribution_error(Case(2, 1, 4, seed=seed), "rejection", wrong, 2) for seed in (0, 1, 2)) > 1e-3
