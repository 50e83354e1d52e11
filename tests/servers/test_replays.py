"""Recordings of real servers, read again: what was drafted and kept, cycle by cycle."""

import json
from dataclasses import replace
from typing import Any

import pytest
import torch

from specdec import cli
from specdec.drafters.draft_model import DraftModelDrafter
from specdec.events import Committed, Event, Finished, Started, UNNAMED, Verified
from specdec.families.zoo import load
from specdec.figures.stats import LaneStats
from specdec.loop import generate
from specdec.models.transformer import Transformer
from specdec.paths import ASSETS
from specdec.sampling import probabilities
from specdec.servers import lane
from specdec.servers.answers import ServerError
from specdec.servers.connect import connect
from specdec.task import Task
from specdec.traces.audit import audit
from specdec.traces.file import live_header, Trace
from specdec.types import SamplingParams
from tests.servers.record import PROMPTS, SETTINGS, SHORT, TOP
from tests.servers.stub import recording, replay
from tests.tokens import only

SPECULATIVE, PLAIN, BROKEN, NGRAM = "vllm-draft_model-mended", "vllm-plain", "vllm-draft_model", "vllm-ngram"
LLAMA, LLAMA_PLAIN = "llama-draft_model", "llama-plain"


def watched(name: str, kind: str, how: str) -> list[Event]:
    parts = list[str]()
    with replay(name) as stub:
        events = lane.race(connect(stub.address), None, PROMPTS[kind], SETTINGS[how], TOP, parts.append)
    assert isinstance(events[-1], Finished) and "".join(parts) == events[-1].text
    return events


def last_chunk(name: str, kind: str, how: str) -> dict[str, Any]:
    """The recording's own account, found by the settings of each text and its place among them."""
    streams = [call for call in recording(name)["calls"] if call["body"] and call["body"].get("stream")]
    mine = [call for call in streams if call["body"]["temperature"] == SETTINGS[how].temperature]
    chunks = [block for block in mine[[*PROMPTS].index(kind)]["blocks"] if "[DONE]" not in block]
    return json.loads(chunks[-1].removeprefix("data: "))


@pytest.mark.parametrize("name", [SPECULATIVE, PLAIN, BROKEN, NGRAM, LLAMA, LLAMA_PLAIN])
@pytest.mark.parametrize("how", SETTINGS)
@pytest.mark.parametrize("kind", PROMPTS)
def test_events_hold_all_that_arrived_and_make_a_sound_trace(name: str, kind: str, how: str) -> None:
    final = watched(name, kind, how)
    committed = only(final, Committed)
    finished = final[-1]
    assert isinstance(final[0], Started) and isinstance(finished, Finished)
    assert sum(len(event.tokens) for event in committed) == finished.tokens == committed[-1].total > 0
    pieces = "".join(piece for event in committed for piece in event.pieces)
    assert finished.text == (pieces.removesuffix("<|endoftext|>") if finished.reason == "end" else pieces)
    assert [event.at for event in committed] == sorted(event.at for event in committed)
    assert UNNAMED not in (token for event in committed for token in event.tokens)
    assert "".join(event.text for event in committed) == finished.text
    header = replace(live_header(PROMPTS[kind], {}, ("speculative",)), machine={})
    again = Trace.loads(Trace(header, tuple(final)).dumps())
    assert again.events == tuple(final)
    assert not any(account.faults for account in audit(header.lanes, again.events))


@pytest.mark.parametrize("name", [SPECULATIVE, BROKEN, NGRAM])
@pytest.mark.parametrize("how", SETTINGS)
@pytest.mark.parametrize("kind", PROMPTS)
def test_drafts_are_the_servers_own_list(name: str, kind: str, how: str) -> None:
    final = watched(name, kind, how)
    drafts = [event for event in final if isinstance(event, Verified) and event.positions]
    told = last_chunk(name, kind, how)["metrics"]["speculative_decoding"]
    assert [len(event.positions) for event in drafts] == told["per_step_drafted"]
    statuses = [[x.status for x in event.positions] for event in drafts]
    assert [found.count("accepted") for found in statuses] == told["per_step_accepted"]
    for found in statuses:
        after = found[found.count("accepted") :]
        assert after == ["rejected"] * bool(after) + ["discarded"] * (len(after) - 1)
    named = {x.token for event in drafts for x in event.positions if x.status != "accepted"}
    assert named <= {UNNAMED}
    finished = final[-1]
    assert isinstance(finished, Finished) and finished.counted in ("exact", "merged")
    assert (name, kind, how) != (BROKEN, "code", "greedy") or finished.counted == "merged"


@pytest.mark.parametrize("how", SETTINGS)
def test_llama_cpp_counts_its_cycles_as_they_come(how: str) -> None:
    final = watched(LLAMA, "code", how)
    accepted = [event.accepted for event in only(final, Committed)][1:]
    assert isinstance(final[-1], Finished) and final[-1].counted == "exact"
    told, stats = last_chunk(LLAMA, "code", how)["timings"], LaneStats.from_events(final, "speculative")
    assert (stats.drafted, sum(accepted)) == (told.get("draft_n", 0), told.get("draft_n_accepted", 0))


def test_llama_cpp_tells_the_distribution_in_use() -> None:
    params = SETTINGS["sampled"]
    with replay(LLAMA_PLAIN) as stub:
        server = connect(stub.address)
        ids = server.tokenize(PROMPTS["story"])
        told = server.distribution(ids, params, 5)
    target, _ = load().new_drafter("none", capacity=64)
    with torch.inference_mode():
        row = probabilities(target.forward(list(ids), target.new_cache(64), (), 1), params)[-1]
    assert len(told) == 5
    assert {token: pytest.approx(float(row[token]), abs=1e-4) for token in told} == told
    verified = only(watched(LLAMA_PLAIN, "story", "sampled"), Verified)
    assert all(event.p is not None and 0.0 < event.p <= 1.0 and event.distribution for event in verified)


@pytest.mark.parametrize("name", [SPECULATIVE, LLAMA])
@pytest.mark.parametrize("kind", PROMPTS)
def test_a_greedy_run_is_our_engines_cycle_by_cycle(name: str, kind: str) -> None:
    final = watched(name, kind, "greedy")
    # The servers' draft model computes in float32: in 8 bits it may draft other tokens.
    draft = DraftModelDrafter(Transformer.load(ASSETS / "family" / "draft_model", torch.float32), 256)
    family = load()
    with replay(name) as stub:
        ids = connect(stub.address).tokenize(PROMPTS[kind])
    task = Task(
        family.target, ids, SETTINGS["greedy"], draft, 4, end_tokens=family.end_tokens,
        token_bytes=family.pieces.bytes, piece=family.pieces.piece,
    )  # fmt: skip
    ours = list(generate(task))
    told, done = (only(events, Committed) for events in (final, ours))
    assert [token for e in told for token in e.tokens] == [token for e in done for token in e.tokens]
    if name == LLAMA:  # its own drafting differs a little
        return
    assert [(e.tokens, e.text) for e in told] == [(e.tokens, e.text) for e in done]
    # In the last cycle our engine drafts no more than there is room for; a server does.
    assert [e.accepted for e in told[:-1]] == [e.accepted for e in done[:-1]]
    found, wanted = LaneStats.from_events(final, "speculative"), LaneStats.from_events(ours, "speculative")
    assert found.tau == wanted.tau and found.alpha is not None and wanted.alpha is not None
    assert abs(found.alpha - wanted.alpha) <= (0.02 if kind != "facts" else 0.06)


def test_probabilities_are_told_only_where_they_are_those_in_use() -> None:
    for how, known in (("greedy", True), ("sampled", False)):
        final = watched(SPECULATIVE, "story", how)
        verified = only(final, Verified)
        taken = [x for event in verified for x in event.positions if x.status == "accepted"]
        assert taken and {x.p for x in taken} == {1.0 if known else None}
        assert {x.target is not None for x in taken} == {known}
        assert all(x.q is None and x.u is None for event in verified for x in event.positions)


def test_who_it_is_and_what_it_serves_is_asked_and_a_distribution_is_told_at_temperature_one() -> None:
    with replay(SPECULATIVE) as stub:
        facts = connect(stub.address + "/v1/").facts
    assert (facts.kind, facts.version, facts.model, facts.context) == ("vLLM", "0.32.0", "target", 512)
    assert (facts.speculates, facts.k) == (True, 4)
    with replay(PLAIN) as stub:
        server = connect(stub.address)
        distribution = server.distribution(server.tokenize(PROMPTS["story"]), SHORT, 5)
    assert server.facts.speculates is False
    assert len(distribution) >= 5 and 0.5 < sum(distribution.values()) <= 1.0


def test_a_race_merges_two_lanes_by_their_clocks_and_refuses_a_baseline_that_speculates() -> None:
    with replay(SPECULATIVE) as fast, replay(PLAIN) as slow:
        server, prompt, params = connect(fast.address), PROMPTS["story"], SETTINGS["greedy"]
        events = lane.race(server, connect(slow.address), prompt, params, TOP)
        with pytest.raises(ServerError, match="The plain server speculates, too"):
            lane.race(server, server, prompt, params, TOP)
    assert {event.lane for event in events[:8]} == {"speculative", "plain"}
    texts = {event.lane: event.text for event in events if isinstance(event, Finished)}
    assert texts["speculative"] == texts["plain"]


def test_a_prompt_that_is_too_long_is_refused_before_anything_runs(monkeypatch) -> None:
    with replay(PLAIN) as stub:
        server = connect(stub.address)
        with pytest.raises(ServerError, match="half of a character"):
            lane.race(server, None, "half \ud800", SamplingParams())
        monkeypatch.setattr(server, "tokenize_chat", lambda _: (1,) * 512)
        with pytest.raises(ServerError, match="The prompt has 512 tokens"):
            lane.race(server, None, "Once", SamplingParams())
        assert not any("complet" in asked.path for asked in stub.asked)


def test_the_terminal_shows_the_race_and_keeps_it(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setattr(lane.race, "__defaults__", (TOP, *lane.race.__defaults__[1:]))
    words = [PROMPTS["story"], "--temperature", "0", "--max-tokens", "24", "--seed", "0"]
    with replay(SPECULATIVE) as fast, replay(PLAIN) as slow:
        save = ["--save", str(tmp_path / "run.jsonl")]
        assert cli.main([*words, *save, "--server", fast.address, "--plain", slow.address]) == 0
        said = capsys.readouterr().out
        assert cli.main([*words, "--server", fast.address]) == 0
        alone = capsys.readouterr().out
    for line in ("vLLM 0.32.0, model target, at most 4", "exact: the server's own count", "measured speed-up"):
        assert line in said
    assert "□✗" in said and "not reported" in said
    assert "no --plain server given" in alone and "speed-up" not in alone
    trace = Trace.load(tmp_path / "run.jsonl")
    assert trace.header.lanes == ("speculative", "plain") and trace.header.machine == {}
    assert trace.summary()["same_text"] and trace.summary()["settings"]["counted"] == "exact"
    assert "127.0.0.1" not in trace.dumps()
