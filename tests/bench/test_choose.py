"""Which answers of the star a first screen may show."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from specdec.events import Committed, Event, Finished, Position, Verified
from specdec.types import SamplingParams, Status
from tools import record
from tools.choose import answered
from tools.options import run

WARM = SamplingParams(temperature=0.8, seed=3)


def judged(*parts: tuple[str, Status]) -> tuple[Position, ...]:
    return tuple(Position(i, 0, piece, status, 0.1, 0.4, 0.9) for i, (piece, status) in enumerate(parts))


def told(early: int = 2, reason: str = "end", looped: bool = False) -> list[Event]:
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


def test_an_answer_that_ends_and_begins_with_a_kept_draft_may_be_shown() -> None:
    found = answered("Why?", WARM, told())
    assert found is not None and (found.rejected, found.instead) == (" light", " sky")
    assert (found.prompt, found.temperature, found.seed) == ("Why?", 0.8, 3)
    assert found.tau == pytest.approx(26 / 3) and found.text.startswith("The blue and sky appears blue.")


@pytest.mark.parametrize("wrong", [{"reason": "length"}, {"looped": True}, {"early": 1}], ids=str)
def test_what_is_cut_loops_or_begins_with_a_rejection_is_left_out(wrong: dict[str, object]) -> None:
    assert answered("Why?", WARM, told(**wrong)) is None  # type: ignore[arg-type]


def test_candidates_belong_to_their_family(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["--choose", "answering"], ["--choose", "story", "--family", "smollm2"]):
        assert run(record.record, record.Options, arguments, "tools.record") == 2
        assert "--choose answering and qa belong to --family smollm2" in capsys.readouterr().err
    assert len(record.questions()) == 6
