from __future__ import annotations

import random

import pytest

from specdec.theory import best_k, expected_tokens, speedup, tokens_by_position


def test_the_tutorials_example() -> None:
    """α = .8, K = 4, c = .1: 3.36 tokens for 1.4 passes."""
    assert expected_tokens(0.8, 4) == pytest.approx(3.3616)
    assert speedup(0.8, 4, 0.1) == pytest.approx(2.401, abs=1e-3)


def test_closed_form_equals_the_recursion() -> None:
    for alpha in (0.0, 0.3, 0.9, 1.0):
        extra = 0.0
        for _ in range(5):  # E_k = α(1 + E_{k+1})
            extra = alpha * (1 + extra)
        assert expected_tokens(alpha, 5) == pytest.approx(1 + extra)


def test_equal_positions_give_the_closed_form() -> None:
    assert tokens_by_position([0.7] * 4, 4) == pytest.approx(expected_tokens(0.7, 4))
    assert tokens_by_position([0.7] * 4, 2) == pytest.approx(expected_tokens(0.7, 2))


def test_expected_tokens_is_what_coins_give() -> None:
    rng = random.Random(0)
    total = 0
    for _ in range(20_000):
        kept = 0
        while kept < 4 and rng.random() < 0.6:
            kept += 1
        total += kept + 1
    assert total / 20_000 == pytest.approx(expected_tokens(0.6, 4), abs=0.03)


@pytest.mark.parametrize(("alpha", "c", "k"), [(0.6, 0.08, 3), (0.8, 0.08, 6), (0.8, 0.2, 4), (0.6, 0.78, 0)])
def test_best_k(alpha: float, c: float, k: int) -> None:
    assert best_k(alpha, c) == k


def test_speculation_pays_only_if_acceptance_beats_cost() -> None:
    for alpha in (0.2, 0.5, 0.8):
        assert best_k(alpha, c=alpha + 0.01) == 0
        assert best_k(alpha, c=alpha - 0.05) > 0


def test_bad_alpha_is_refused() -> None:
    with pytest.raises(ValueError, match="alpha"):
        expected_tokens(1.1, 4)
