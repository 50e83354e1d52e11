"""The accept step on the device is the plain walk: same numbers in, same decisions out."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import torch
from torch import Tensor

from specdec.gpu import accept as fused
from specdec.gpu.accept import accept, draw, packed, Record
from specdec.sampling import probabilities, Sampler
from specdec.types import Proposal, SamplingParams, Verdict
from specdec.verify import RejectionSampling
from tools.bench.shapes import synthetic

CASES = 10_000
WARPS = (
    SamplingParams(temperature=0.0),
    SamplingParams(temperature=1.0),
    SamplingParams(temperature=0.7, top_k=3),
    SamplingParams(temperature=1.3, top_p=0.6),
)


class Given(Sampler):
    """Random numbers from outside: one a coin, one for the target's own token."""

    def __init__(self, coins: Tensor, own: Tensor) -> None:
        self.coins, self.own = coins, own

    def categorical(self, probs: Tensor, key: tuple[str, int]) -> int:
        sums = probs.double().cumsum(0)
        return min(int(torch.searchsorted(sums, self.own * sums[-1], right=True)), int(probs.nonzero()[-1]))

    def accept(self, p: float, q: float, key: tuple[str, int]) -> tuple[bool, float]:
        u = float(self.coins[key[1]])
        return u * q < p, u


class TableSampler(Sampler):
    """The random numbers of a captured cycle, for the plain loop: both must then write the same text."""

    def __init__(self, seed: int, places: int, k: int) -> None:
        self._table, self._k, self._row = fused.numbers(seed, places, k), k, 0

    def at(self, length: int) -> None:
        self._row = length

    def categorical(self, probs: Tensor, key: tuple[str, int]) -> int:
        kind, level = key
        place = 1 + self._k + level if kind == "draft" else 0
        return int(draw(probs, self._table[self._row, place : place + 1].to(probs.device)))

    def accept(self, p: float, q: float, key: tuple[str, int]) -> tuple[bool, float]:
        u = float(self._table[self._row, 1 + key[1]])
        return u * q < p, u


@dataclass(frozen=True)
class Batch:
    """Many cycles' inputs: of one K, under one warp, from point masses or from distributions."""

    rows: Tensor
    drafted: Tensor
    distributions: Tensor | None
    coins: Tensor
    own: Tensor
    limit: Tensor

    @classmethod
    def random(cls, k: int, params: SamplingParams, point: bool, count: int) -> Batch:
        generator = torch.Generator().manual_seed(17 * k + point)
        vocabulary = 5 + 3 * k
        target = 2.0 * torch.randn(count, k + 1, vocabulary, generator=generator)
        near = torch.tensor([0.0, 0.5, 3.0])[torch.randint(3, (count, 1, 1), generator=generator)]  # 0: itself
        other = target[:, :k] + near * torch.randn(count, k, vocabulary, generator=generator)
        distributions = probabilities(other.flatten(0, 1), params).view(count, k, vocabulary)
        if params.temperature and not point:  # what the target wants and the draft excludes
            distributions = distributions.masked_fill(torch.rand(distributions.shape, generator=generator) < 0.2, 0.0)
            distributions[..., 0] += distributions.sum(-1) == 0.0
            distributions /= distributions.sum(-1, keepdim=True)
        drafted = torch.zeros(count, 0, dtype=torch.long)
        if k:
            drafted = distributions.flatten(0, 1).multinomial(1, generator=generator).view(count, k)
        rows = probabilities(target.flatten(0, 1), params).view(count, k + 1, vocabulary)
        coins = torch.rand(count, k, generator=generator, dtype=torch.float64)
        own = torch.rand(count, 1, generator=generator, dtype=torch.float64)
        limit = torch.randint(2 * k + 1, (count, 1), generator=generator).clamp(max=k)  # half of them all of K
        return cls(rows, drafted, None if point else distributions, coins, own, limit)

    def walks(self) -> list[Verdict]:
        verdicts = []
        for i, limit in enumerate(self.limit[:, 0].tolist()):
            distributions = None if self.distributions is None else self.distributions[i, :limit]
            proposal = Proposal.chain(self.drafted[i, :limit].tolist(), distributions)
            given = Given(self.coins[i], self.own[i])
            verdicts.append(RejectionSampling().verify(proposal, self.rows[i, : limit + 1], given))
        return verdicts

    def records(self) -> list[Record]:
        def cycle(rows, drafted, distributions, coins, own, limit):
            yes = torch.ones(1)
            return packed(accept(rows, drafted, distributions, coins, own, limit), drafted, coins, limit, yes, yes)

        parts = (self.rows, self.drafted, self.distributions, self.coins, self.own, self.limit)
        over = (0, 0, None if self.distributions is None else 0, 0, 0, 0)
        return [Record.unpack(numbers) for numbers in torch.vmap(cycle, in_dims=over)(*parts).tolist()]


def test_the_fused_step_is_the_plain_walk() -> None:
    seen: set[tuple[int, int, bool]] = set()
    count, kinds = 0, list(itertools.product(range(9), WARPS, (False, True)))
    for kind in kinds:
        batch = Batch.random(*kind, 1 + CASES // len(kinds))
        for verdict, record, limit in zip(batch.walks(), batch.records(), batch.limit[:, 0].tolist(), strict=True):
            assert record.verdict() == verdict
            seen.add((limit, record.accepted, batch.distributions is None))
            count += 1
    assert count >= CASES
    assert seen == {(limit, n, point) for limit in range(9) for n in range(limit + 1) for point in (False, True)}


def test_a_draft_that_the_target_excludes_is_never_kept() -> None:
    """u may be 0 and so may p: the test is strict."""
    rows, distributions = torch.tensor([[0.0, 1.0], [0.5, 0.5]]), torch.tensor([[1.0, 0.0]])
    zero, one = torch.zeros(1, dtype=torch.float64), torch.tensor([1])
    inputs = (rows, torch.tensor([0]), distributions, zero, zero, one)
    assert accept(*inputs).accepted.item() == 0 and accept(*inputs).token.item() == 1
    assert accept(*inputs, lambda p, q, u: u * q <= p).accepted.item() == 1


def test_where_nothing_is_left_the_target_itself_draws() -> None:
    distribution = torch.tensor([[0.25, 0.75]])
    rows, half = distribution.expand(2, 2), torch.full((1,), 0.5, dtype=torch.float64)
    outcome = accept(rows, torch.tensor([0]), distribution, half, half, torch.tensor([1]), synthetic(0.2))
    assert (outcome.accepted.item(), outcome.token.item()) == (0, 1)


def test_a_broken_draft_distribution_does_no_harm_where_it_does_not_count() -> None:
    rows, distributions = torch.full((3, 4), 0.25), torch.full((2, 4), float("nan"))
    numbers = torch.full((2,), 0.6, dtype=torch.float64)
    outcome = accept(rows, torch.tensor([0, 0]), distributions, numbers, numbers[:1], torch.tensor([0]))
    assert (outcome.accepted.item(), outcome.token.item()) == (0, 2)


def test_a_draw_has_its_share_of_the_unit_interval() -> None:
    weights = torch.tensor([0.0, 0.5, 0.0, 1.5, 0.0])  # any total
    grid = torch.linspace(0, 1, 401, dtype=torch.float64)[:-1]
    drawn = [int(draw(weights, u[None])) for u in grid]
    assert drawn == [1] * 100 + [3] * 300
    assert int(draw(weights, torch.ones(1, dtype=torch.float64))) == 3  # u times the total may round up


def test_every_seed_has_numbers_of_its_own() -> None:
    assert not torch.equal(fused.numbers(5, 7, 3), fused.numbers(6, 7, 3))
