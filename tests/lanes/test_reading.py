"""A long prompt is read in chunks: what is reported, that the run is the same as without, and that it can be left."""

from asyncio import CancelledError
from collections.abc import Sequence
from typing import Any

import pytest

from specdec import host, SamplingParams
from specdec.events import Committed, Event, Failed, PLAIN, SPECULATIVE
from specdec.host import CHUNK
from specdec.models.view import TargetView
from specdec.settings import RunRequest

PARAMS = SamplingParams(max_tokens=8, ignore_end=True)
LONG = "Once there was a fox who lived by the sea. " * 30


def committed(events: list[Event]) -> list[tuple[str, tuple[int, ...]]]:
    return [(event.lane, event.tokens) for event in events if isinstance(event, Committed)]


@pytest.mark.parametrize("drafter", ["draft_model", "eagle3", "early_exit"])
def test_a_long_prompt_is_reported_and_the_run_stays_the_same(engine, drafter: str, monkeypatch) -> None:
    told, request, count = list[Any](), RunRequest(LONG, drafter, 3, PARAMS), len(engine.models.encode(LONG))
    watched = list(engine.start(request, on_read=lambda *state: told.append(state)).events)
    sizes, forward = list[int](), TargetView.forward

    def count_tokens(view: TargetView, tokens: Sequence[int], *rest: Any) -> Any:
        sizes.append(len(tokens))
        return forward(view, tokens, *rest)

    monkeypatch.setattr(TargetView, "forward", count_tokens)
    unwatched = list(engine.start(request).events)
    assert max(sizes) == CHUNK  # sums of other sizes could round differently
    monkeypatch.setattr(host, "CHUNK", count)
    in_one_pass = list(engine.start(request).events)
    assert max(sizes) == count
    assert sorted(committed(watched)) == sorted(committed(unwatched)) == sorted(committed(in_one_pass))
    assert count > 2 * CHUNK and {lane for lane, *_ in told} <= {SPECULATIVE, PLAIN}
    read = [state[1:] for state in told if state[0] == PLAIN]
    assert read == [(done, count) for done in (*range(0, count - CHUNK, CHUNK), count - CHUNK)]


def test_a_run_that_is_abandoned_while_it_reads_ends_at_once(engine) -> None:
    told, seen = list[int](), list[Event]()

    def leave(lane: str, done: int, total: int) -> None:
        told.append(done)
        raise CancelledError

    with pytest.raises(CancelledError):
        seen.extend(engine.start(RunRequest(LONG, "none", 1, PARAMS), on_read=leave).events)
    assert told == [0] and not any(isinstance(event, Failed) for event in seen)


def test_of_a_short_prompt_nothing_is_reported(engine) -> None:
    told: list[tuple[str, int, int]] = []
    request = RunRequest("Once there was a fox.", "draft_model", 3, PARAMS)
    list(engine.start(request, on_read=lambda *state: told.append(state)).events)
    assert not told
