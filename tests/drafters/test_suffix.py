"""Suffix decoding: which copy it chooses, how far it goes, and which words it replaces on the way."""

from __future__ import annotations

from typing import Any

import pytest
from toyheads import WARM

from specdec.drafters.suffix import MAX_WORDS, replacement, Replacements, SuffixDrafter
from specdec.models.base import common_prefix
from specdec.sampling import RandomSampler


def after(text: list[int], k: int = 8, factor: int = 1, offset: int = 0) -> tuple[int, ...]:
    return SuffixDrafter(factor, offset, replacing=False).propose(text, k, WARM, RandomSampler(0)).tokens


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
    assert after(shorter) == (3, 4) and after(longer) == (9, 0, 6)  # three sure tokens against 0.8 + 0.8
    assert after([5, 1, 2, 9, 5, 1, 2, 8, 5, 1, 2, 7] + [6, 1, 2, 3, 4] * 9 + [5, 1, 2]) == (3, 4)


def test_a_continuation_ends_where_its_chance_falls_below_the_floor() -> None:
    text = [token for last in range(20) for token in (1, 2, 3, 50 + last)]
    assert after([*text, 1, 2, 3]) == ()  # each of 20 continuations has one chance in 20
    assert SuffixDrafter(floor=0.0).propose([*text, 1, 2, 3], 8, WARM, RandomSampler(0)).tokens[0] == 69


def test_a_suffix_continues_a_loop_as_a_loop_and_keeps_up_with_a_growing_text() -> None:
    assert after([1, 2, 1, 2, 1, 2], k=4) == (1, 2, 1, 2)
    drafter, text = SuffixDrafter(1, 0, replacing=False), [1, 2, 3]
    for token in (1, 2, 3, 1, 4, 1, 2):
        text.append(token)
        assert drafter.propose(text, 3, WARM, RandomSampler(0)).tokens == after(text, 3)


def written(source: list[int], answer: list[int], k: int = 8, **settings: Any) -> list[tuple[int, ...]]:
    """The drafts of a run that writes `answer` after `source`, each checked as the target would."""
    drafter, text, drafts = SuffixDrafter(**settings), list(source), []
    while len(text) < len(source) + len(answer):
        draft = drafter.propose(text, k, WARM, RandomSampler(0)).tokens
        rest = answer[len(text) - len(source) :]
        text += rest[: common_prefix(draft, rest) + 1]
        drafts.append(draft)
    return drafts


@pytest.mark.parametrize("new", [[99], [98, 99], [97, 98, 99]])
def test_what_is_replaced_once_in_a_copy_is_replaced_again(new: list[int]) -> None:
    # 7 8 is the name. Its neighbours differ, so that only the name itself tells what comes.
    source = [*range(10, 20), 7, 8, *range(20, 30), 7, 8, *range(30, 40), 7, 8, *range(40, 50), 9]
    answer = [*range(10, 20), *new, *range(20, 30), *new, *range(30, 40), *new, *range(40, 50)]
    source.append(10)
    drafts = written(source, answer[1:])
    assert any(tuple(new) == draft[i : i + len(new)] for draft in drafts for i in range(len(draft)))
    assert sum(7 in draft for draft in drafts) == 1  # the first time, which taught it
    assert len(drafts) < len(written(source, answer[1:], replacing=False))


def test_a_word_that_is_itself_again_is_no_longer_replaced() -> None:
    source = [*range(10, 18), 7, *range(20, 28), 7, *range(30, 35), 7, *range(40, 48), 9, 10]
    answer = [*range(11, 18), 99, *range(20, 28), 7, *range(30, 35), 7, *range(40, 48)]
    drafts = written(source, answer)
    assert [99 in draft for draft in drafts if 7 in draft or 99 in draft] == [False, True, False]


def test_a_short_copy_that_breaks_off_replaces_nothing() -> None:
    source = [1, 2, 7, 3, 50, 51, 52, 53, 2]
    assert written(source, [99, 3, 60, 7, 61, 62]) == written(source, [99, 3, 60, 7, 61, 62], replacing=False)


def test_a_replacement_is_the_shortest_after_which_both_texts_agree() -> None:
    assert replacement([1, 5, 6], [2, 5, 6]) == ((1,), (2,))
    assert replacement([1, 5, 6], [2, 3, 5]) == ((1,), (2, 3))
    assert replacement([1, 2, 5], [3, 5]) == ((1, 2), (3,))
    assert replacement([1, 2, 3, 5], [6, 7, 8, 5]) == ((1, 2, 3), (6, 7, 8))
    assert replacement([1, 2, 3, 4, 5], [6, 5]) is None  # longer than a word
    assert replacement([1], [2]) is None  # not known yet


def test_replacements_follow_a_word_and_the_longest_wins() -> None:
    words = Replacements()
    words.learn((1,), (2,))
    words.learn((1, 3), (4,))
    assert words.apply([1, 3, 1, 5]) == [4, 2, 5]
    words.learn((2,), (6, 7))  # what 1 had become
    assert words.apply([1, 2]) == [6, 7, 6, 7]
    words.learn((6, 7), (1,))
    assert words.apply([1, 2, 1, 3]) == [1, 1, 4]
    for token in range(100, 150):
        words.learn((token,), (0,))
    assert len(words.words) == MAX_WORDS and words.apply([149, 100]) == [0, 100]
