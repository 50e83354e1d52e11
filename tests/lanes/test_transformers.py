"""The lane of transformers: the model's own text, its turns, and faults that stay its own."""

import gc
import threading
import time
import weakref
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch

from specdec.drafters.prompt_lookup import PromptLookupDrafter
from specdec.events import Committed, Drafted, Event, Failed, Finished, PEER, PLAIN, SPECULATIVE, Started
from specdec.families import zoo
from specdec.figures.stats import LaneStats
from specdec.lanes import transformers as peer
from specdec.lanes.race import race_lanes
from specdec.proof.toys import TableModel
from specdec.settings import RunRequest
from specdec.task import Task
from specdec.traces.audit import audit
from specdec.traces.file import live_header, Trace
from specdec.types import SamplingParams
from tests.tokens import ids

K, PROMPT = 3, "Once upon a time"
GREEDY = SamplingParams(max_tokens=24)
WARM = SamplingParams(0.8, top_k=20, top_p=0.9, max_tokens=24, seed=3)


@pytest.fixture(scope="module")
def family(shallow) -> zoo.Family:
    return zoo.load(shallow, torch.float32)


def run(family: zoo.Family, drafter: str = "draft_model", params: SamplingParams = WARM, k: int = K) -> list[Event]:
    return list(race_lanes(family, RunRequest(PROMPT, drafter, k, params, peer=True)))


def only(events: Sequence[Event], kind: type) -> list[Any]:
    return [event for event in events if event.lane == PEER and isinstance(event, kind)]


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "transformers"]


@pytest.mark.parametrize("params", [GREEDY, WARM], ids=["greedy", "sampled"])
@pytest.mark.parametrize("drafter", ["draft_model", "prompt_lookup"])
def test_its_cycles_are_told_as_a_servers_are(family, drafter: str, params: SamplingParams) -> None:
    events = run(family, drafter, params)
    (first,), (last,), cycles = only(events, Started), only(events, Finished), only(events, Committed)
    assert (first.drafter, first.k, last.reason, last.tokens) == (drafter, K, "length", 24)
    assert first.server.startswith("transformers ") and last.counted == "totals"
    assert max(len(cycle.tokens) for cycle in cycles) <= K + 1
    if (drafter, params) == ("draft_model", WARM):  # neither a schedule nor a threshold of confidence changes K
        assert max(len(cycle.tokens) for cycle in cycles) == K + 1
    assert last.text == "".join(cycle.text for cycle in cycles)
    assert last.prefill + last.draft + last.verify + last.other == pytest.approx(last.at)
    again = Trace.loads(Trace(live_header(PROMPT, {}, (SPECULATIVE, PEER, PLAIN)), tuple(events)).dumps())
    assert again.header.lanes == (SPECULATIVE, PEER, PLAIN) and again.events == tuple(events)
    assert not any(account.faults for account in audit(again.header.lanes, events))
    assert LaneStats.from_events(events, PEER).alpha is None and threads() == []


def test_loading_its_model_is_outside_of_its_clock(family, monkeypatch) -> None:
    library_model, expected = peer.library_model, run(family)

    def slow(*given: Any) -> Any:
        time.sleep(0.5)
        return library_model(*given)

    monkeypatch.setattr(peer, "library_model", slow)
    assert ids(events := run(family), PEER) == ids(expected, PEER) and only(events, Finished)[0].prefill < 0.5


def test_greedy_text_is_that_of_plain_decoding() -> None:
    whole = zoo.load("embedded", torch.float32)
    question = "Q: What is the capital of Italy?\nA:"
    for temperature, drafter, prompt in ((0.0, "draft_model", PROMPT), (1e-40, "prompt_lookup", question)):
        params = SamplingParams(temperature, max_tokens=40)
        events = list(race_lanes(whole, RunRequest(prompt, drafter, 4, params, peer=True)))
        assert ids(events, PEER) == ids(events, PLAIN) and not only(events, Failed)


def test_it_samples_as_it_is_asked_to(family) -> None:
    narrow = run(family, params=SamplingParams(1.0, top_k=1, max_tokens=24))
    assert ids(narrow, PEER) == ids(narrow, PLAIN)
    state = torch.get_rng_state()
    texts = [ids(run(family, params=SamplingParams(1.0, max_tokens=24, seed=seed)), PEER) for seed in (3, 3, 4)]
    assert texts[0] == texts[1] != texts[2] and torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize("params", [GREEDY, pytest.param(WARM, marks=pytest.mark.long)], ids=["greedy", "sampled"])
def test_a_stop_string_and_the_last_token_end_it(family, params: SamplingParams) -> None:
    whole = only(run(family, params=params), Finished)[0].text
    stop = whole[10:14]
    params = SamplingParams(params.temperature, params.top_k, params.top_p, 24, params.seed, (stop,))
    end = only(run(family, params=params), Finished)[0]
    assert (end.reason, end.text) == ("stop", whole[: whole.find(stop)])
    end = only(run(family, params=SamplingParams(params.temperature, max_tokens=1)), Finished)[0]
    assert (end.reason, end.tokens) == ("length", 1)


def test_stopping_the_race_ends_its_thread_between_two_cycles(family) -> None:
    request = RunRequest(PROMPT, "draft_model", K, SamplingParams(max_tokens=200), peer=True)
    running = race_lanes(family, request)
    next(event for event in running if event.lane == PEER and isinstance(event, Committed) and event.cycle == 2)
    assert threads() == ["transformers"]
    running.close()
    assert threads() == []


@pytest.mark.parametrize("fails_at", [0, 2], ids=["loading", "in a cycle"])
def test_a_fault_of_its_own_harms_no_other_lane(family, monkeypatch, fails_at: int) -> None:
    alone = list(race_lanes(family, RunRequest(PROMPT, "draft_model", K, WARM)))
    cycle, calls = peer.AssistedExecutor.cycle, count()

    def broken(*given: Any) -> Any:
        if next(calls) < fails_at:
            return cycle(*given)
        raise RuntimeError("out of paper")

    monkeypatch.setattr(*((peer.AssistedExecutor, "cycle") if fails_at else (peer, "library_model")), broken)
    events = run(family)
    (failure,), (end,) = only(events, Failed), only(events, Finished)
    assert failure.fatal and failure.cycle == fails_at and "out of paper" in failure.reason
    assert end.reason == "failed" and end.tokens == len(ids(events, PEER))
    assert (end.tokens > 0) is (fails_at > 0)
    for lane in (SPECULATIVE, PLAIN):
        assert ids(events, lane) == ids(alone, lane)
    assert threads() == []


@pytest.mark.parametrize(("drafter", "k"), [("medusa", 3), ("early_exit", 3), ("none", 3), ("draft_model", 0)])
def test_what_it_has_no_counterpart_of_is_refused_in_a_sentence(family, drafter: str, k: int) -> None:
    with pytest.raises(ValueError, match=r"ssisted generation .*\."):
        race_lanes(family, RunRequest(PROMPT, drafter, k, GREEDY, peer=True))


def test_models_without_files_are_refused() -> None:
    with pytest.raises(ValueError, match="loaded from files"):
        peer.assisted(Task(TableModel(8, seed=1), (1,), drafter=PromptLookupDrafter(), lane=PEER))


def test_its_model_is_read_once_and_ends_with_ours(shallow) -> None:
    family = zoo.load_family(Path(shallow), "shallow", torch.float32)
    target = peer.unwrapped(family.target)
    request = RunRequest("Once", "prompt_lookup", 2, SamplingParams(max_tokens=2), peer=True)
    list(race_lanes(family, request))
    model = weakref.ref(peer.library_model(target, family.resources.peers))
    list(race_lanes(family, request))
    assert model() is not None and peer.library_model(target, family.resources.peers) is model()
    del family, target
    gc.collect()
    assert model() is None


def test_a_first_cycle_of_several_tokens_is_no_gain_in_speed() -> None:
    told = [
        Drafted(PEER, 0, (1, 2), ("a", "b"), (-1, 0), 0.0, 0.5),
        Committed(PEER, 0, (1, 2, 3), ("a", "b", "c"), 2, "bonus", "abc", 3, 1.0),
        Committed(PEER, 1, (4, 5), ("d", "e"), 0, "bonus", "de", 5, 2.0),
    ]
    stats = LaneStats.from_events(told, PEER)
    assert (stats.tokens_per_second, stats.tau, stats.drafted) == (2.0, 2.0, 0)
