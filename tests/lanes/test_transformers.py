"""The lane of transformers: its cycles as events, the model's own text, its turns, and faults that stay its own."""

from __future__ import annotations

import gc
import itertools
import threading
import time
import weakref
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from specdec.drafters import PromptLookupDrafter
from specdec.engine import Task
from specdec.events import Committed, Drafted, Event, Failed, Finished, Started, Verified
from specdec.families import zoo
from specdec.figures.stats import LaneStats
from specdec.lanes import transformers as peer
from specdec.lanes.race import PEER, PLAIN, race, SPECULATIVE, tasks
from specdec.proof.toys import TableModel
from specdec.sampling import probabilities
from specdec.traces.file import live_header, Trace
from specdec.types import SamplingParams

needs_family = pytest.mark.skipif(not (zoo.EMBEDDED / "target").is_dir(), reason="the embedded family is not there")
K, PROMPT = 3, "Once upon a time"
GREEDY = SamplingParams(max_tokens=24)
WARM = SamplingParams(0.8, top_k=20, top_p=0.9, max_tokens=24, seed=3)


@pytest.fixture(scope="module")
def family(shallow: str) -> zoo.Family:
    return zoo.load(shallow, torch.float32)


def events_of(events: Sequence[Event], lane: str, kind: type) -> list:
    return [event for event in events if event.lane == lane and isinstance(event, kind)]


def ids(events: Sequence[Event], lane: str) -> list[int]:
    return LaneStats.of(events, lane).ids


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "transformers"]


@needs_family
@pytest.mark.parametrize("params", [GREEDY, WARM], ids=["greedy", "sampled"])
@pytest.mark.parametrize("drafter", ["draft_model", "prompt_lookup"])
def test_its_cycles_are_told_as_every_lanes_are(family, drafter, params):
    events = list(race(family, PROMPT, drafter, K, params, peer=True))
    own = [event for event in events if event.lane == PEER]
    first, *between, last = own
    assert isinstance(first, Started) and isinstance(last, Finished)
    assert (first.drafter, first.k, first.lossless, last.reason) == (drafter, K, True, "length")
    total, clock = 0, 0.0
    for _, group in itertools.groupby(between, key=lambda event: event.cycle):
        *drafted, verified, committed = group
        assert isinstance(verified, Verified) and isinstance(committed, Committed)
        tokens = drafted[0].tokens if drafted else ()
        assert len(drafted) <= 1 and len(tokens) <= K
        statuses = [position.status for position in verified.positions]
        accepted = committed.accepted
        assert [position.token for position in verified.positions] == list(tokens)
        assert committed.tokens[:accepted] == tokens[:accepted] and statuses[:accepted] == ["accepted"] * accepted
        assert "accepted" not in statuses[accepted:] and "rejected" not in statuses[accepted + 1 :]
        assert committed.kind == ("bonus" if accepted == len(tokens) else "resampled")
        for position in verified.positions:  # what it tossed it does not tell
            assert position.u is None and 0.0 <= position.p <= 1.0 and 0.0 < position.q <= 1.0
            assert position.status != "rejected" or position.p < position.q
        total += len(committed.tokens)
        assert committed.total == total
        start = drafted[0].start if drafted else verified.start
        assert clock <= start <= verified.start <= verified.end == committed.at
        clock = committed.at
    assert (last.tokens, total) == (24, 24) and last.at >= clock
    assert last.text == "".join(event.text for event in events_of(events, PEER, Committed))
    assert last.prefill + last.draft + last.verify + last.other == pytest.approx(last.at)
    header = live_header(PROMPT, {}, peer=True)
    again = Trace.loads(Trace(header, tuple(events)).dumps())
    assert again.header.lanes == (SPECULATIVE, PEER, PLAIN) and again.events == tuple(events)
    assert threads() == []


QUESTION = "Q: What is the capital of Italy?\nA:"


@needs_family
@pytest.mark.parametrize(
    ("drafter", "prompt"),
    [
        ("draft_model", PROMPT),
        ("prompt_lookup", QUESTION),
        *(
            pytest.param(*pair, marks=pytest.mark.long)
            for pair in (
                ("draft_model", QUESTION), ("draft_model", "def add(a, b):\n"),
                ("prompt_lookup", PROMPT), ("prompt_lookup", "def add(a, b):\n"),
            )
        ),
    ],
)  # fmt: skip
def test_greedy_text_is_that_of_plain_decoding(drafter, prompt):
    """The whole family's."""
    family = zoo.load("embedded", torch.float32)
    events = list(race(family, prompt, drafter, 4, SamplingParams(max_tokens=40), peer=True))
    assert ids(events, PEER) == ids(events, PLAIN)


@needs_family
def test_k_is_k(family):
    """Neither a schedule nor a threshold of confidence changes it; only the end of the text does."""
    events = list(race(family, PROMPT, "draft_model", K, WARM, peer=True))
    depths = [len(event.tokens) for event in events_of(events, PEER, Drafted)]
    assert set(depths[:-2]) == {K}


@needs_family
@pytest.mark.parametrize("params", [WARM, SamplingParams(1.0, max_tokens=24, seed=1)], ids=["filtered", "unfiltered"])
def test_it_samples_from_the_distribution_of_the_other_lanes(family, params):
    text = family.encode(PROMPT)
    for event in race(family, PROMPT, "draft_model", K, params, peer=True):
        if event.lane == PEER and isinstance(event, Verified):
            verified = event
        elif event.lane == PEER and isinstance(event, Committed):
            text += event.tokens
            logits = family.target.forward(text[:-1], family.target.new_cache(len(text)))
            if len(event.tokens) > event.accepted:
                assert verified.p == pytest.approx(float(probabilities(logits, params)[0, text[-1]]), abs=1e-4)


@needs_family
def test_the_coldest_temperature_is_greedy(family):
    """As in the other lanes: logits that are divided by still less would overflow."""
    params = SamplingParams(1e-40, max_tokens=12)
    events = list(race(family, PROMPT, "draft_model", K, params, peer=True))
    assert not events_of(events, PEER, Failed)
    assert ids(events, PEER) == ids(events, PLAIN)


@needs_family
def test_a_seed_gives_one_text_and_leaves_the_processs_random_numbers_alone(family):
    state = torch.get_rng_state()
    one, two = (ids(list(race(family, PROMPT, "draft_model", K, WARM, peer=True)), PEER) for _ in range(2))
    assert one == two and torch.equal(state, torch.get_rng_state())


@needs_family
@pytest.mark.parametrize("params", [GREEDY, WARM], ids=["greedy", "sampled"])
def test_a_stop_string_and_the_last_token_end_it(family, params):
    whole = events_of(list(race(family, PROMPT, "draft_model", K, params, peer=True)), PEER, Finished)[0].text
    stop = whole[10:14]
    params = SamplingParams(params.temperature, params.top_k, params.top_p, 24, params.seed, (stop,))
    end = events_of(list(race(family, PROMPT, "draft_model", K, params, peer=True)), PEER, Finished)[0]
    assert (end.reason, end.text) == ("stop", whole[: whole.find(stop)])
    short = SamplingParams(params.temperature, max_tokens=1)
    end = events_of(list(race(family, PROMPT, "draft_model", K, short, peer=True)), PEER, Finished)[0]
    assert (end.reason, end.tokens) == ("length", 1)


@needs_family
def test_stopping_the_race_ends_its_thread_between_two_cycles(family):
    running = race(family, PROMPT, "draft_model", K, SamplingParams(max_tokens=200), peer=True)
    next(event for event in running if event.lane == PEER and isinstance(event, Committed) and event.cycle == 2)
    assert threads() == ["transformers"]
    running.close()
    assert threads() == []


@needs_family
@pytest.mark.parametrize("fails_at", [0, 2], ids=["loading", "in a cycle"])
def test_a_fault_of_its_own_harms_no_other_lane(family, monkeypatch, fails_at):
    alone = list(race(family, PROMPT, "draft_model", K, WARM))
    told = peer.Run.tell_cycle

    def broken(*_):
        raise RuntimeError("out of paper")

    def tell_cycle(self, *arguments):
        return broken() if self.transcript.cycle == fails_at else told(self, *arguments)

    if fails_at:
        monkeypatch.setattr(peer.Run, "tell_cycle", tell_cycle)
    else:
        monkeypatch.setattr(peer, "shared", broken)
    events = list(race(family, PROMPT, "draft_model", K, WARM, peer=True))
    (failure,), (end,) = events_of(events, PEER, Failed), events_of(events, PEER, Finished)
    assert failure.fatal and failure.cycle == fails_at and "out of paper" in failure.reason
    assert end.reason == "failed" and end.tokens == len(ids(events, PEER))
    assert (end.tokens > 0) is (fails_at > 0)
    for lane in (SPECULATIVE, PLAIN):
        assert ids(events, lane) == ids(alone, lane)
    assert threads() == []


@needs_family
@pytest.mark.parametrize(("drafter", "k"), [("medusa", 3), ("early_exit", 3), ("none", 3), ("draft_model", 0)])
def test_what_it_has_no_counterpart_of_is_refused_in_a_sentence(family, drafter, k):
    with pytest.raises(ValueError, match=r"ssisted generation .*\."):
        race(family, PROMPT, drafter, k, GREEDY, peer=True)


@needs_family
def test_what_a_run_sets_stays_with_the_run(family):
    task = tasks(family, PROMPT, "draft_model", K, GREEDY, True, peer=True)[PEER]
    model = peer.shared(family.target)
    before = dict(vars(model))
    list(peer.assisted(task))
    assert vars(model) == before


@needs_family
def test_its_model_is_read_once_and_ends_with_ours(shallow):
    family = zoo.read(Path(shallow), "shallow", torch.float32)
    list(race(family, "Once", "prompt_lookup", 2, SamplingParams(max_tokens=2), peer=True))
    model = weakref.ref(peer.shared(family.target))
    list(race(family, "Once", "prompt_lookup", 2, SamplingParams(max_tokens=2), peer=True))
    assert model() is not None and peer.shared(family.target) is model()
    del family
    gc.collect()
    assert model() is None


def test_models_without_files_are_refused():
    with pytest.raises(ValueError, match="folder of files"):
        peer.assisted(Task(TableModel(8, seed=1), (1,), drafter=PromptLookupDrafter(), lane=PEER))


def test_a_body_runs_only_while_its_next_event_is_awaited():
    begun: list[int] = []

    def body(tell):
        for number in range(3):
            begun.append(number)
            tell(number)

    turns = peer.in_turns(body)
    assert begun == []
    for number in range(3):
        assert next(turns) == number
        assert begun == list(range(number + 1))
    assert list(turns) == [] and threads() == []


def test_what_breaks_in_a_body_reaches_whoever_waits():
    def body(tell):
        tell("one")
        raise KeyError("two")

    turns = peer.in_turns(body)
    assert next(turns) == "one"
    with pytest.raises(KeyError, match="two"):
        next(turns)
    assert threads() == []


def test_its_clock_stands_still_while_it_waits(monkeypatch):
    now = 0.0
    monkeypatch.setattr(time, "perf_counter", lambda: now)
    clock = peer.Clock(0, "cpu")
    with clock:
        now = 2.0
        with clock.paused():
            now = 100.0
            assert clock.now() == clock.elapsed == 2.0
        now = 103.0
    assert clock.elapsed == 5.0


def test_a_first_cycle_of_several_tokens_is_no_gain_in_speed():
    """They come with the prefill, whose time does not count either."""
    told = [
        Drafted(PEER, 0, (1, 2), ("a", "b"), (-1, 0), 0.0, 0.5),
        Committed(PEER, 0, (1, 2, 3), ("a", "b", "c"), 2, "bonus", "abc", 3, 1.0),
        Committed(PEER, 1, (4, 5), ("d", "e"), 0, "bonus", "de", 5, 2.0),
    ]
    stats = LaneStats.of(told, PEER)
    assert (stats.tokens_per_second, stats.tau, stats.drafted) == (2.0, 2.0, 0)
