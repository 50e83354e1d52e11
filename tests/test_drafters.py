"""The contract that every drafter keeps."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from specdec.drafters import Drafter, DraftModelDrafter, NoDrafter, PromptLookupDrafter
from specdec.prove import TableModel
from specdec.sampling import probabilities, RandomChooser
from specdec.types import SamplingParams

MODEL = TableModel(9, seed=4, context=64)
MAKERS: dict[str, Callable[[], Drafter]] = {
    "none": NoDrafter,
    "prompt_lookup": PromptLookupDrafter,
    "draft_model": lambda: DraftModelDrafter(MODEL),
}
WARM = SamplingParams(temperature=0.9, top_k=6)
TEXT = [0, 3, 1, 4, 1, 5, 3, 1, 4]


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("k", [0, 1, 3, 7])
def test_never_deeper_than_asked_and_the_text_stays_as_it_is(make: Callable[[], Drafter], k: int) -> None:
    text = list(TEXT)
    proposal = make().propose(text, k, WARM, RandomChooser(1))
    assert len(proposal) <= k
    assert text == TEXT


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_same_seed_same_proposal(make: Callable[[], Drafter]) -> None:
    a, b = (make().propose(TEXT, 4, WARM, RandomChooser(5)) for _ in range(2))
    assert a.tokens == b.tokens


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_rejected_tokens_are_forgotten(make: Callable[[], Drafter]) -> None:
    """A used drafter proposes what a fresh one would: nothing of its wrong guesses stays behind."""
    used = make()
    for length in (5, 6, 8, 9):
        used.propose(TEXT[:length], 3, WARM, RandomChooser(length))
        fresh = make().propose([*TEXT[:length], 2], 3, WARM, RandomChooser(99))
        again = used.propose([*TEXT[:length], 2], 3, WARM, RandomChooser(99))
        if isinstance(used, DraftModelDrafter):
            used = make()  # its text may only grow
            used.propose(TEXT[:length], 3, WARM, RandomChooser(length))
        assert again.tokens == fresh.tokens


def test_draft_model_reports_the_law_it_drew_from() -> None:
    proposal = DraftModelDrafter(MODEL).propose(TEXT, 4, WARM, RandomChooser(2))
    assert proposal.probs is not None
    prefix = list(TEXT)
    for token, law in zip(proposal.tokens, proposal.probs, strict=True):
        expected = probabilities(MODEL.logits(tuple(prefix))[None], WARM)[0]
        assert torch.equal(law, expected)
        assert law[token] > 0
        prefix.append(token)


def test_draft_model_feeds_every_kept_token_exactly_once() -> None:
    """After full acceptance two tokens are missing in its cache, after a rejection one; K may pause at 0."""
    drafter, text = DraftModelDrafter(MODEL), list(TEXT)
    for k, kept, own in ((3, 3, 7), (2, 0, 1), (0, 0, 2), (4, 1, 8), (1, 1, 0), (3, 2, 5)):
        proposal = drafter.propose(text, k, WARM, RandomChooser(k))
        text += [*proposal.tokens[:kept], own]
        drafter.propose(text, 1, WARM, RandomChooser(0))
        assert drafter._cache.tokens[: len(text)] == text  # type: ignore[attr-defined]


def test_draft_model_stops_at_its_own_context() -> None:
    drafter = DraftModelDrafter(TableModel(9, seed=4, context=12))
    assert len(drafter.propose(TEXT, 8, WARM, RandomChooser(1))) == 4
    with pytest.raises(ValueError, match="longer than the 5 tokens that the draft model reads"):
        DraftModelDrafter(TableModel(9, seed=4, context=5)).propose(TEXT, 8, WARM, RandomChooser(1))


def test_a_draft_model_serves_one_run() -> None:
    drafter = DraftModelDrafter(MODEL)
    drafter.propose(TEXT, 2, WARM, RandomChooser(1))
    drafter.propose([*TEXT, 1, 2, 3], 2, WARM, RandomChooser(1))
    with pytest.raises(ValueError, match="serves one run"):
        drafter.propose(TEXT[:4], 2, WARM, RandomChooser(1))


def lookup(text: list[int], k: int) -> tuple[int, ...]:
    return PromptLookupDrafter().propose(text, k, WARM, RandomChooser(0)).tokens


def test_prompt_lookup_copies_what_followed_the_longest_match() -> None:
    assert lookup([1, 2, 3, 9, 8, 7, 1, 2, 3], 3) == (9, 8, 7)
    assert lookup([5, 3, 4, 1, 2, 3, 6, 1, 2, 3], 2) == (6, 1)


def test_prompt_lookup_prefers_the_latest_match() -> None:
    assert lookup([1, 2, 7, 1, 2, 8, 1, 2], 1) == (8,)


def test_prompt_lookup_continues_a_loop_as_a_loop() -> None:
    assert lookup([1, 2, 1, 2], 5) == (1, 2, 1, 2, 1)
    assert lookup([4, 4], 3) == (4, 4, 4)


def test_prompt_lookup_has_nothing_where_nothing_repeats() -> None:
    assert lookup([1, 2, 3, 4], 4) == ()
    assert lookup([1], 4) == ()


def test_prompt_lookup_keeps_up_with_a_growing_text() -> None:
    drafter, text = PromptLookupDrafter(), [1, 2, 3]
    for token in (1, 2, 3, 1, 9, 2, 3):
        text.append(token)
        assert drafter.propose(text, 3, WARM, RandomChooser(0)).tokens == lookup(text, 3)
