"""Which answers of the star a first screen may show."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from specdec.events import Committed, Event, Finished, Position, Verified
from specdec.types import SamplingParams, Status
from tools.choose import candidate, clear_coins, whole_answers

WARM = SamplingParams(temperature=0.8, seed=3)


def judged(*parts: tuple[str, Status]) -> tuple[Position, ...]:
    return tuple(Position(i, 0, piece, status, 0.1, 0.4, 0.9) for i, (piece, status) in enumerate(parts))


def events_of(early: int = 2, reason: str = "end", looped: bool = False) -> list[Event]:
    """A run whose first rejection is in cycle `early`: " light" gives way to " sky"."""
    events: list[Event] = [Committed("speculative", 0, (0,), ("The",), 0, "bonus", "The", 1, 0.0)]
    ids = iter([7] * 90 if looped else range(1, 90))

    def cycle(number: int, positions: Sequence[Position], pieces: tuple[str, ...]) -> None:
        tokens = tuple(next(ids) for _ in pieces)
        events.append(Verified("speculative", number, tuple(positions), 0.0, 1.0))
        events.append(
            Committed("speculative", number, tokens, pieces, len(pieces) - 1, "resampled", "".join(pieces), 9, 1.0)
        )

    for number in range(1, early):
        cycle(number, judged((" blue", "accepted")), (" blue", " and"))
    cycle(early, judged((" light", "rejected"), (" is", "discarded")), (" sky",))
    cycle(early + 1, judged((" appears", "accepted")), (" appears", " blue", ".", *(" more",) * 20))
    text = "".join(event.text for event in events if isinstance(event, Committed))
    events.append(Finished("speculative", reason, 9, text, 1.0, 0.1, 0.1, 0.1, 0.1))  # type: ignore[arg-type]
    return events


def test_a_whole_answer_that_begins_with_a_kept_draft_may_be_shown() -> None:
    one = candidate("Why?", WARM, events_of())
    assert one is not None and (one.rejected.piece, one.instead, one.cycle) == (" light", " sky", 2)
    assert (one.prompt, one.params) == ("Why?", WARM)
    assert one.tau == pytest.approx(26 / 3) and one.text.startswith("The blue and sky appears blue.")
    assert whole_answers([one]) == clear_coins([one]) == [one]


@pytest.mark.parametrize("wrong", [{"reason": "length"}, {"looped": True}, {"early": 1}], ids=str)
def test_what_is_cut_loops_or_begins_with_a_rejection_is_left_out(wrong: dict[str, object]) -> None:
    one = candidate("Why?", WARM, events_of(**wrong))  # type: ignore[arg-type]
    assert whole_answers([one] if one else []) == []


def test_a_coin_is_shown_early_or_not_at_all() -> None:
    late = candidate("Why?", WARM, events_of(early=5))
    assert late is not None and clear_coins([late]) == []
