from __future__ import annotations

import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from specdec.sampling import entropy, overlap, probabilities, RandomChooser, residual
from specdec.types import SamplingParams

LOGITS = torch.tensor([[1.0, 3.0, 3.0, -2.0, 0.5]], dtype=torch.float64)


def law(**params: float) -> list[float]:
    return probabilities(LOGITS, SamplingParams(**params))[0].tolist()


def test_temperature_zero_is_one_hot_on_the_first_of_equals() -> None:
    assert law(temperature=0.0) == [0.0, 1.0, 0.0, 0.0, 0.0]


def test_top_k_keeps_exactly_k_even_among_equals() -> None:
    assert sum(chance > 0 for chance in law(temperature=1.0, top_k=1)) == 1
    assert sum(chance > 0 for chance in law(temperature=1.0, top_k=3)) == 3


def test_top_p_keeps_the_smallest_set_that_reaches_p() -> None:
    kept = law(temperature=1.0, top_p=0.6)
    assert [chance > 0 for chance in kept] == [False, True, True, False, False]
    assert sum(kept) == pytest.approx(1.0, abs=1e-15)


def test_top_p_counts_what_top_k_left() -> None:
    assert sum(chance > 0 for chance in law(temperature=1.0, top_k=2, top_p=0.4)) == 1


def test_low_precision_logits_are_lifted_to_float32() -> None:
    assert probabilities(LOGITS.bfloat16(), SamplingParams(temperature=1.0)).dtype == torch.float32


laws = st.lists(st.floats(0.0, 1.0), min_size=2, max_size=6).filter(lambda values: sum(values) > 1e-3)


@settings(derandomize=True, max_examples=200, deadline=None)
@given(laws, st.randoms(use_true_random=False))
def test_kept_plus_residual_is_the_target(values: list[float], rng: random.Random) -> None:
    """q·accept + (1 - β)·residual = p: the identity behind the whole method."""
    p = torch.tensor(values, dtype=torch.float64)
    q = torch.tensor(rng.sample(values, len(values)), dtype=torch.float64)
    p, q = p / p.sum(), q / q.sum()
    kept = torch.minimum(p, q)
    rebuilt = kept + (1.0 - overlap(p, q)) * residual(p, q, 0)
    assert torch.allclose(rebuilt, p, atol=1e-12)


def test_residual_of_equal_laws_is_the_target() -> None:
    p = torch.tensor([0.25, 0.75])
    assert torch.equal(residual(p, p.clone(), 0), p)


def test_residual_of_a_point_mass_removes_the_guess() -> None:
    p = torch.tensor([0.5, 0.25, 0.25])
    assert residual(p, None, 0).tolist() == [0.0, 0.5, 0.5]
    assert p.tolist() == [0.5, 0.25, 0.25]


def test_entropy_is_in_nats_and_zero_for_a_point() -> None:
    assert entropy(torch.tensor([1.0, 0.0])) == 0.0
    assert entropy(torch.full((4,), 0.25)) == pytest.approx(1.3863, abs=1e-4)


def test_the_chooser_never_draws_what_has_no_chance() -> None:
    probs = torch.tensor([0.0, 0.3, 0.0, 0.7, 0.0])
    chooser = RandomChooser(1)
    drawn = [chooser.categorical(probs, ("", 0)) for _ in range(2000)]
    assert set(drawn) == {1, 3}
    assert sum(token == 3 for token in drawn) == pytest.approx(1400, abs=120)


def test_choosers_are_alone_with_their_seed() -> None:
    state = torch.get_rng_state()
    probs = torch.full((50,), 0.02)
    first, second = RandomChooser(7), RandomChooser(7)
    a = [first.categorical(probs, ("", 0)) for _ in range(20)]
    random.random()
    assert a == [second.categorical(probs, ("", 0)) for _ in range(20)]
    assert a != [RandomChooser(8).categorical(probs, ("", 0)) for _ in range(20)]
    assert torch.equal(state, torch.get_rng_state())


def test_zero_coins_do_not_accept_the_impossible() -> None:
    accepted, _ = RandomChooser(0).accept(0.0, 0.5, ("", 0))
    assert not accepted


@pytest.mark.parametrize(
    "bad",
    [
        {"temperature": -1.0},
        {"temperature": float("nan")},
        {"top_p": 0.0},
        {"top_p": 1.5},
        {"top_k": -1},
        {"max_tokens": -1},
    ],
)
def test_bad_parameters_are_refused_with_a_sentence(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must"):
        SamplingParams(**bad)


@pytest.mark.parametrize("temperature", [5e-324, 1e-40, 1e-38, 1e-31])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_coldest_temperatures_are_greedy(temperature: float, dtype: torch.dtype) -> None:
    """Logits over a denormal temperature overflow, and a law of NaNs is drawn from as garbage."""
    logits = torch.tensor([[-300.0, 2.0, 300.0, 299.9]], dtype=dtype)
    law = probabilities(logits, SamplingParams(temperature=temperature))
    assert law.tolist() == [[0.0, 0.0, 1.0, 0.0]]
