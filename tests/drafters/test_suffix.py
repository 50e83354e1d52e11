"""Suffix decoding: which copy it chooses, and how far it goes."""

from specdec.drafters.suffix import SuffixDrafter
from specdec.sampling import RandomSampler
from tests.toyheads import WARM


def after(text: list[int], k: int = 8, factor: int = 1, offset: int = 0) -> tuple[int, ...]:
    return SuffixDrafter(factor=factor, offset=offset).propose(text, k, WARM, RandomSampler(0)).tokens


def test_a_suffix_is_continued_by_the_number_of_tokens_that_agree() -> None:
    text = [1, 2, *range(10, 30), 1, 2]
    assert after(text, 20, 1, 1) == (10, 11, 12)
    assert len(SuffixDrafter().propose(text, 20, WARM, RandomSampler(0))) == 2 * 2 + 2
    assert after([1, 2, 3, 9, 8, 7, 6, 1, 2, 3]) == (9, 8, 7)
    assert after([5, 2, 3, 9, 8, 7, 6, 1, 2, 3]) == (9, 8)
    assert after([1, 2, 3, 9, 8, 7, 6, 1, 2, 3], k=2) == (9, 8)
    assert after([1, 2, 3, 4]) == after([1]) == after([]) == ()


def test_a_suffix_is_continued_by_what_followed_most_often_and_of_equals_by_the_latest() -> None:
    assert after([1, 2, 7, 1, 2, 7, 1, 2, 8, 1, 2])[:1] == (7,)
    assert after([1, 2, 7, 3, 1, 2, 8, 1, 2])[:1] == (8,)


def test_a_shorter_suffix_wins_where_it_expects_more_kept_tokens() -> None:
    # `5 1 2` stood before once, and 9 came; `1 2` stood before five times, and four times 3 4 came.
    text = [5, 1, 2, 9, 0] + [6, 1, 2, 3, 4] * 4
    longer, shorter = [*text, 5, 1, 2], [*text, 7, 1, 2]
    assert after(shorter) == (3, 4) and after(longer) == (9, 0, 6)
    assert after([5, 1, 2, 9, 5, 1, 2, 8, 5, 1, 2, 7] + [6, 1, 2, 3, 4] * 9 + [5, 1, 2]) == (3, 4)


def test_a_continuation_ends_where_its_chance_falls_below_the_floor() -> None:
    text = [token for last in range(20) for token in (1, 2, 3, 50 + last)]
    assert after([*text, 1, 2, 3]) == ()  # each of 20 continuations has one chance in 20
    assert SuffixDrafter(floor=0.0).propose([*text, 1, 2, 3], 8, WARM, RandomSampler(0)).tokens[0] == 69


def test_a_suffix_continues_a_loop_as_a_loop() -> None:
    assert after([1, 2, 1, 2, 1, 2], k=4) == (1, 2, 1, 2)
