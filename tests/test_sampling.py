import random
from collections import Counter
from collections.abc import Iterable
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from specdec.proof.goodness_of_fit import FALSE_ALARM, g_test
from specdec.sampling import (
    apply_top_p,
    block_chance,
    entropy,
    mark_tail,
    overlap,
    probabilities,
    RandomSampler,
    residual,
    Sampler,
    SharedNoiseSampler,
)
from specdec.types import MAX_SEED, MIN_SEED, SamplingParams

LOGITS = torch.tensor([[1.0, 3.0, 3.0, -2.0, 0.5]], dtype=torch.float64)


def over_the_vocabulary(logits: torch.Tensor, k: int, p: float) -> torch.Tensor:
    """Top-p after top-k as it reads: every token that top-k drops has no chance, and all are sorted."""
    keep = logits.sort(dim=-1, descending=True, stable=True).indices[:, :k]  # of equal logits the lowest ids
    probs = torch.full_like(logits, float("-inf")).scatter(-1, keep, logits.gather(-1, keep)).softmax(-1)
    ordered, order = probs.sort(dim=-1, descending=True, stable=True)
    kept = torch.zeros_like(probs).scatter(-1, order, (ordered.cumsum(-1) - ordered < p).to(probs)) * probs
    return kept / kept.sum(-1, keepdim=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("k", "p"), [(1, 0.5), (5, 0.9), (20, 0.95), (20, 1e-9), (49, 0.5), (7, 1.0)])
def test_top_p_within_top_k_is_top_p_of_what_is_left(k: int, p: float, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(k)
    smooth = 2.0 * torch.randn(40, 50, generator=generator, dtype=dtype)
    for logits in (smooth, smooth.round()):
        found = probabilities(logits, SamplingParams(temperature=1.0, top_k=k, top_p=p))
        expected = over_the_vocabulary(logits, k, p)
        assert found.dtype == dtype and torch.equal(found > 0, expected > 0)
        assert torch.allclose(found, expected, atol=1e-6)


def test_top_p_sorts_no_more_than_top_k_left() -> None:
    """Nor, without top-k, more than are likely: a vocabulary of 150,000 tokens is sorted for .1 ms and more."""
    widths = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func.overloadpacket.__name__ == "sort":
                widths.append(args[0].shape[-1])
            return func(*args, **(kwargs or {}))

    with Watch():
        probabilities(torch.randn(3, 5000), SamplingParams(temperature=0.8, top_k=40, top_p=0.9))
        assert widths and max(widths) == 40
        probabilities(8 * torch.randn(3, 5000), SamplingParams(temperature=0.8, top_p=0.9))
    assert len(widths) >= 4 and max(widths) < 2500


@pytest.mark.parametrize("tokens", [1000, 49_152, 151_936])
def test_a_row_of_a_large_vocabulary_sums_to_one(tokens: int) -> None:
    """Else every draft would be kept a little too often, and the residual would not be what the overlap leaves."""
    logits = torch.randn(6, tokens, generator=torch.Generator().manual_seed(1)) * 4
    p, q = probabilities(logits, SamplingParams(0.8)), probabilities(logits.roll(1, 0), SamplingParams(0.8))
    assert (p.double().sum(-1) - 1).abs().max() < 1e-6
    assert abs(float((p[0] - q[0]).clamp(min=0).sum()) - (1 - overlap(p[0], q[0]))) < 2e-6
    top = probabilities(logits, SamplingParams(0.8, top_k=tokens - 1))
    assert (top.double().sum(-1) - 1).abs().max() < 1e-6


@pytest.mark.parametrize("temperature", [0.0, 1e-2, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_logits_are_divided_by_the_temperature(temperature: float, dtype: torch.dtype) -> None:
    logits = LOGITS.to(dtype)  # bfloat16 keeps these numbers
    found = probabilities(logits, SamplingParams(temperature=temperature))
    assert found.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    if temperature:
        assert torch.allclose(found.double(), (LOGITS / temperature).softmax(-1), atol=1e-6)
    else:
        assert found.tolist() == [[0.0, 1.0, 0.0, 0.0, 0.0]]  # of equals the first


def test_top_p_ends_where_the_sum_is_reached_exactly() -> None:
    probs = torch.tensor([[0.125, 0.5, 0.125, 0.25]])
    assert torch.allclose(apply_top_p(probs, 0.75), torch.tensor([[0.0, 2 / 3, 0.0, 1 / 3]]))


@pytest.mark.parametrize("size", [9, 5_000])
def test_the_smallest_top_p_keeps_the_likeliest_token(size: int) -> None:
    logits = torch.randn(3, size, generator=torch.Generator().manual_seed(0))
    found = probabilities(logits, SamplingParams(temperature=0.8, top_p=5e-324))
    assert torch.equal(found, probabilities(logits, SamplingParams(temperature=0.0)))


@pytest.mark.parametrize("p", [1e-9, 0.3, 0.9, 0.95, 0.999, 1 - 1e-7])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_top_p_keeps_to_the_bit_what_sorting_all_keeps(p: float, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(4, 5_000, generator=generator, dtype=dtype)
    for logits in (8 * noise, (8 * noise).round(), noise, noise.round(), 0 * noise, 1e-3 * noise.round()):
        probs = logits.softmax(-1)
        expected = probs.masked_fill(mark_tail(probs, p)[0], 0.0)
        assert torch.equal(apply_top_p(probs, p), expected / expected.sum(-1, keepdim=True))


def test_top_p_of_one_leaves_the_distribution_alone() -> None:
    """Though the likeliest tokens' rounded sum reaches 1 before the last."""
    probs = torch.full((1, 3001), 1e-9)
    probs[0, :3] = 1 / 3
    assert float(probs[0, :3].sum()) >= 1.0 and torch.equal(apply_top_p(probs, 1.0), probs)


def test_block_chance() -> None:
    """h = m / (m + 1 - w): Sun et al. 2024 (arXiv 2403.10444), Algorithm 2."""
    p, q = torch.tensor([0.5, 0.5]), torch.tensor([0.25, 0.75])
    assert block_chance(0.5, p, torch.tensor([0.125, 0.875])) == 0.125 / 0.625
    assert block_chance(1.0, p, q) == 1.0 and block_chance(1.0, p, p) == 1.0 and block_chance(0.5, p, p) == 0.0


@pytest.mark.parametrize(("u", "drawn"), [(0.0, 1), (0.3, 3), (1.0, 4)])
def test_draws_at_the_ends_of_the_coins_range(u: float, drawn: int) -> None:
    """1 stands for the product with the total that rounds up to it."""
    assert with_coins([u]).categorical(torch.tensor([0.0, 0.25, 0.0, 0.5, 0.25, 0.0]), ("", 0)) == drawn


def test_the_smallest_coin_keeps_nothing_impossible() -> None:
    assert with_coins([0.0]).accept(0.0, 0.5, ("accept", 0)) == (False, 0.0)
    assert with_coins([0.0]).accept(1e-30, 0.5, ("accept", 0)) == (True, 0.0)


def with_coins(coins: Iterable[float]) -> RandomSampler:
    sampler, numbers = RandomSampler(0), iter(coins)
    sampler._random = SimpleNamespace(random=lambda: next(numbers))
    return sampler


def test_shared_noise_is_what_it_was_when_traces_were_written() -> None:
    found = SharedNoiseSampler(7).noise(3, 3).tolist()
    assert found == pytest.approx([0.9628359676765175, 0.7499625733637267, -0.26002165220575507], abs=1e-12)


def test_entropy_is_in_nats_and_zero_for_a_point() -> None:
    assert entropy(torch.tensor([1.0, 0.0])) == 0.0
    assert entropy(torch.full((4,), 0.25)) == pytest.approx(1.3863, abs=1e-4)


def on_a_grid(n: int) -> RandomSampler:
    """Instead of random numbers it takes the middles of `n` equal parts of [0, 1), in turn."""
    return with_coins((i + 0.5) / n for i in range(n))


LAW = torch.tensor([0.2996, 0.0, 0.0501, 0.0007, 0.3004, 0.2492, 0.1], dtype=torch.float64)  # no sums of few bits


def grid_error(probs: torch.Tensor, n: int = 8_000) -> float:
    """By how many draws of `n` the sampler is off where u takes every value of a grid: below 1 if it is exact."""
    sampler = on_a_grid(n)
    counts = torch.bincount(torch.tensor([sampler.categorical(probs, ("", 0)) for _ in range(n)]), minlength=len(LAW))
    return float((counts - n * LAW).abs().max())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_u_draws_the_token_that_it_belongs_to(dtype: torch.dtype) -> None:
    assert grid_error(LAW.to(dtype)) < 1.001
    assert grid_error((3.7 * LAW).to(dtype)) < 1.001  # weights need not sum to one


@pytest.mark.parametrize(
    ("p", "q"), [(0.3, 0.4), (0.0, 0.5), (0.5, 0.5), (0.9, 0.1), (1e-3, 0.7), (0.00037, 0.98), (0.6, 0.61)]
)
def test_of_all_coins_the_share_p_over_q_accepts(p: float, q: float) -> None:
    sampler, n = on_a_grid(5_000), 5_000
    answers = [sampler.accept(p, q, ("", 0)) for _ in range(n)]
    assert sum(accepted for accepted, _ in answers) == pytest.approx(n * min(1.0, p / q), abs=0.501)
    assert [u for _, u in answers] == [(i + 0.5) / n for i in range(n)]  # and the very coin is told
    assert all(accepted == (u * q < p) for accepted, u in answers)


def cycles(sampler: Sampler, count: int) -> list[tuple[int, ...]]:
    fair, found = torch.tensor([0.5, 0.5], dtype=torch.float64), []
    for cycle in range(count):
        sampler.at(3 * cycle)
        drafts = [sampler.categorical(fair, ("draft", i)) for i in range(2)]
        coins = [int(sampler.accept(0.35, 0.7, ("accept", i))[0]) for i in range(2)]
        found.append((*drafts, *coins, sampler.categorical(fair, ("own", 2))))
    return found


@pytest.mark.parametrize("seed", [0, 1])
def test_coins_and_draws_are_independent_within_a_cycle_and_across(seed: int) -> None:
    told = cycles(RandomSampler(seed), 3_000)
    within = Counter(told)
    across = Counter((*a[1:], *b[1:]) for a, b in zip(told[::2], told[1::2], strict=True))
    fair = {length: dict.fromkeys(product((0, 1), repeat=length), 0.5**length) for length in (5, 8)}
    tests = g_test(within, fair[5]), g_test(across, fair[8])
    assert [test.degrees for test in tests] == [31, 255]
    assert not any(test.tail < FALSE_ALARM for test in tests)


def test_samplers_are_alone_with_their_seed() -> None:
    state = torch.get_rng_state()
    probs = torch.full((50,), 0.02)
    first, second = RandomSampler(7), RandomSampler(7)
    a = [first.categorical(probs, ("", 0)) for _ in range(20)]
    random.random()
    assert a == [second.categorical(probs, ("", 0)) for _ in range(20)]
    assert a != [RandomSampler(8).categorical(probs, ("", 0)) for _ in range(20)]
    assert torch.equal(state, torch.get_rng_state())
    seeds = 5, -5, MIN_SEED, -MIN_SEED, MAX_SEED, -1
    firsts = {seed: RandomSampler(seed).accept(1.0, 1.0, ("", 0))[1] for seed in seeds}
    assert len(set(firsts.values())) == len(seeds)
    assert all(firsts[seed] == random.Random(seed).random() for seed in (5, -MIN_SEED, MAX_SEED))  # in old traces


@pytest.mark.parametrize(
    "bad",
    [{"temperature": n} for n in (-1.0, float("nan"))]
    + [{"top_p": 0.0}, {"top_p": 1.5}, {"top_k": -1}, {"max_tokens": -1}],
)
def test_bad_parameters_are_refused_with_a_sentence(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must"):
        SamplingParams(**bad)


def test_residual() -> None:
    """Without the guess of a point mass; the target where the two agree, normalised where it was weighed."""
    p = torch.tensor([0.5, 0.25, 0.25])
    assert residual(p, None, 0).tolist() == [0.0, 0.5, 0.5] and p.tolist() == [0.5, 0.25, 0.25]
    assert torch.equal(residual(p, p.clone(), 0), p) and torch.equal(residual(0.5 * p, p, 0), p)


@pytest.mark.parametrize("temperature", [5e-324, 1e-40, 1e-31, 1e-6])
def test_the_coldest_temperatures_are_greedy(temperature: float) -> None:
    """Logits over a denormal temperature overflow, and a distribution of NaNs is drawn from as garbage."""
    logits = torch.tensor([[-300.0, 2.0, 300.0], [1e36, -1e36, 0.9e36], [5e9, 5e9, -5e9]])
    for dtype in (torch.float32, torch.float64):
        found = probabilities(logits.to(dtype), SamplingParams(temperature=temperature))
        assert found.tolist() == [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]
