"""Against servers that run: `SPECDEC_TEST_SERVER=http://… SPECDEC_TEST_PLAIN=http://… pytest -m server tests/servers`.

docs/serving.md starts such a pair. Both serve the embedded family, K = 4 with the draft model.
"""

from __future__ import annotations

import os

import pytest
from record import PROMPTS

from specdec.engine import generate, Task
from specdec.events import Committed, Event, Finished
from specdec.families.zoo import load
from specdec.figures.stats import LaneStats
from specdec.servers import lane
from specdec.servers.base import Server
from specdec.servers.connect import connect
from specdec.types import SamplingParams

pytestmark = pytest.mark.server
GREEDY = SamplingParams(max_tokens=64)


def asked(name: str) -> Server:
    if not (address := os.environ.get(name)):
        pytest.skip(f"{name} names no server")
    return connect(address, os.environ.get("SPECDEC_SERVER_KEY", ""))


def raced(server: Server, plain: Server | None, ids: tuple[int, ...]) -> list[Event]:
    *_, last = lane.race(server, plain, ids, GREEDY)
    assert isinstance(last, lane.FinalTrace)
    return list(last.events)


@pytest.mark.parametrize("kind", PROMPTS)
def test_a_greedy_race_is_our_engines(kind: str) -> None:
    server, plain = asked("SPECDEC_TEST_SERVER"), asked("SPECDEC_TEST_PLAIN")
    family = load()
    ids = server.tokenize(PROMPTS[kind])
    events = raced(server, plain, ids)
    target, drafter = family.lane("draft_model", capacity=256)
    task = Task(
        target, ids, GREEDY, drafter, 4, end_tokens=family.end_tokens,
        token_bytes=family.pieces.bytes, piece=family.pieces.piece,
    )  # fmt: skip
    ours = list(generate(task))
    ends = {event.lane: event for event in events if isinstance(event, Finished)}
    written = {
        lane: [t for e in events if isinstance(e, Committed) and e.lane == lane for t in e.tokens] for lane in ends
    }
    assert ends["speculative"].counted in ("exact", "merged")
    assert written["speculative"] == written["plain"] == LaneStats.of(ours, "speculative").ids
    found, wanted = LaneStats.of(events, "speculative"), LaneStats.of(ours, "speculative")
    assert found.tau == pytest.approx(wanted.tau, rel=0.02) and found.alpha == pytest.approx(wanted.alpha, rel=0.02)
