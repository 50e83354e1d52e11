"""Sampling, residual, rules and trees on distributions in float32 that are as bad as float32 allows.

Each case draws distributions of one kind, a draft from one of them, and asks a rule; what must hold for any
distribution is looked at.
"""

import math
import random
from collections import Counter
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from specdec.describe import verification
from specdec.rules import RULES
from specdec.sampling import entropy, overlap, RandomSampler, residual, Sampler
from specdec.types import Proposal, Verdict

SIZES = (2, 3, 5, 17, 64)
ROUNDING = 4e-6  # of a sum of 64 float32 numbers near one
COINS = (0.0, 2.0**-53, 0.5, 1.0 - 2.0**-53)  # the smallest and the largest that `random.random` can give


class Broken(AssertionError):
    """An invariant does not hold; its name."""


class ExtremeNumbers(random.Random):
    """Its uniform numbers are mostly the ends of their range, where rounding decides."""

    def random(self) -> float:
        number = super().random()
        return COINS[int(number * 1e6) % len(COINS)] if number < 0.6 else super().random()


def extreme_sampler(rng: random.Random) -> Sampler:
    sampler = RandomSampler(0)
    sampler._random = ExtremeNumbers(rng.getrandbits(32))
    return sampler


def one_hot(size: int, rng: random.Random) -> Tensor:
    return torch.zeros(size).index_fill_(0, torch.tensor([rng.randrange(size)]), 1.0)


def uniform(size: int, rng: random.Random) -> Tensor:
    return torch.full((size,), 1.0 / size)


def tails(size: int, rng: random.Random) -> Tensor:
    """One token has all but 1e-30 a token."""
    return torch.full((size,), 1e-30) + one_hot(size, rng)


def subnormal(size: int, rng: random.Random) -> Tensor:
    distribution = one_hot(size, rng)
    return distribution + (distribution == 0) * rng.choice([1e-45, 1e-42, 1e-39])


def ties(size: int, rng: random.Random) -> Tensor:
    chosen = torch.tensor([float(rng.random() < 0.5) for _ in range(size)])
    chosen[rng.randrange(size)] = 1.0
    return chosen / chosen.sum()


def zipf(size: int, rng: random.Random) -> Tensor:
    distribution = 1.0 / torch.arange(1, size + 1).float() ** rng.uniform(0.5, 12.0)
    return (distribution / distribution.sum())[torch.tensor(rng.sample(range(size), size))]


def drawn(size: int, rng: random.Random) -> Tensor:
    scale = rng.choice([0.1, 1.0, 10.0, 80.0])
    return torch.tensor([rng.gauss(0.0, scale) for _ in range(size)]).softmax(0)


KINDS: tuple[Callable[[int, random.Random], Tensor], ...] = (one_hot, uniform, tails, subnormal, ties, zipf, drawn)


def near(distribution: Tensor, rng: random.Random) -> Tensor:
    other, token = distribution.clone(), rng.randrange(len(distribution))
    other[token] = torch.nextafter(other[token], torch.tensor(rng.choice([0.0, 2.0])))
    return other


def two_distributions(rng: random.Random) -> tuple[Tensor, Tensor]:
    size = rng.choice(SIZES)
    p = rng.choice(KINDS)(size, rng)
    return p, near(p, rng) if rng.random() < 0.3 else rng.choice(KINDS)(size, rng)


def must(holds: bool, what: str) -> None:
    if not holds:
        raise Broken(what)


def is_distribution(p: Tensor, what: str) -> None:
    must(bool(torch.isfinite(p).all()), f"{what} is finite")
    must(float(p.min()) >= 0.0, f"{what} has no negative entry")
    must(abs(float(p.double().sum()) - 1.0) <= ROUNDING, f"{what} sums to one")


def replacing(rng: random.Random) -> None:
    p, q = two_distributions(rng)
    token = rng.randrange(len(p))
    must(0.0 <= overlap(p, q) <= 1.0 + ROUNDING, "an overlap is between none and all")
    must(0.0 <= entropy(p) <= math.log(len(p)) + ROUNDING, "an entropy lies between 0 and a uniform one's")
    left = residual(p, q, token)
    is_distribution(left, "a residual")
    must(not bool((left[p == 0.0] > 0.0).any()), "a residual holds no token that the target excludes")
    if bool((p > q).any()):
        must(not bool((left[q >= p] > 0.0).any()), "a residual holds no token that is drafted often enough")
    kept = torch.minimum(p.double(), q.double())
    out = kept + (1.0 - kept.sum()).clamp(min=0.0) * left.double()
    must(float((out - p.double()).abs().max()) <= ROUNDING, "one token has the target's distribution")
    if float(p[token]) < 1.0:
        pointed = residual(p, None, token)
        is_distribution(pointed, "a residual of a point mass")
        must(float(pointed[token]) == 0.0, "a rejected guess is gone")


def judging(rng: random.Random) -> None:
    size, n = rng.choice(SIZES), rng.choice((1, 2, 3, 5))
    rows = torch.stack([rng.choice(KINDS)(size, rng) for _ in range(n + 1)])
    chain = rng.random() < 0.5
    parents = tuple(range(-1, n - 1)) if chain else tuple(rng.randrange(-1, node) for node in range(n))
    sampler = extreme_sampler(rng)
    distributions = [
        near(rows[parent + 1], rng) if rng.random() < 0.3 else rng.choice(KINDS)(size, rng) for parent in parents
    ]
    tokens = tuple(sampler.categorical(q, ("draft", level)) for level, q in enumerate(distributions))
    drawn_from = zip(tokens, distributions, strict=True)
    must(all(float(q[token]) > 0.0 for token, q in drawn_from), "no impossible token is drawn")
    proposal = Proposal(tokens, parents, torch.stack(distributions) if rng.random() < 0.7 else None)
    for key, kind in RULES.items():
        if key == "shared_noise" or not (kind.trees or chain):
            continue
        verdict = kind().verify(proposal, rows, extreme_sampler(rng))
        sound(verdict, proposal, rows, key)
        verification(proposal, rows, verdict, str, None)


def sound(verdict: Verdict, proposal: Proposal, rows: Tensor, rule: str) -> None:
    path, last = verdict.path, verdict.path[-1] if verdict.path else -1
    must([proposal.parents[node] for node in path] == [-1, *path[:-1]][: len(path)], "what is kept is a path")
    must(float(rows[last + 1][verdict.token]) > 0.0, f"the target's own token is one of its own ({rule})")
    must((verdict.kind == "bonus") == (not proposal.tree.children(last)), "a bonus follows a leaf")
    if verdict.distribution is not None:
        is_distribution(verdict.distribution, f"the distribution of the target's own token ({rule})")
    for node in path:
        p = float(rows[proposal.parents[node] + 1][proposal.tokens[node]])
        must(p > 0.0, f"nothing is kept that the target excludes ({rule})")
    for trial in verdict.trials:
        must(all(map(math.isfinite, (trial.p, trial.q))), "a trial's p and q are finite")
        if trial.h is not None:
            must(0.0 <= trial.h <= 1.0, "a block's chance is one")
        elif trial.u is not None:
            must((trial.u * trial.q < trial.p) == trial.accepted, "a coin decides as it says")


CHECKS = (replacing, judging)


def broken_invariants(cases: range) -> Counter[str]:
    """How often each invariant was broken; anything that is raised counts."""
    broken = Counter[str]()
    for seed in cases:
        check = CHECKS[seed % len(CHECKS)]
        try:
            check(random.Random(seed))
        except Broken as invariant:
            broken[str(invariant)] += 1
        except Exception as error:
            broken[f"{check.__name__} raised {type(error).__name__}: {error}"] += 1
    return broken


@pytest.mark.parametrize("cases", [range(2_000), pytest.param(range(2_000, 10_000), marks=pytest.mark.long)])
def test_no_invariant_breaks(cases: range, record_property) -> None:
    broken = broken_invariants(cases)
    record_property("cases", len(cases))
    record_property("invariants broken", broken.total())
    assert not broken


def test_a_broken_residual_is_seen(monkeypatch) -> None:
    for wrong in (lambda p, q, token: p, lambda p, q, token: p * 0, lambda p, q, token: p.flip(0)):
        monkeypatch.setitem(globals(), "residual", wrong)
        assert broken_invariants(range(120))
