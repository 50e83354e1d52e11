"""The doctor names each fault that was planted, and finds none where there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from ours import serving
from record import PROMPTS, TOKENS, TOP
from stub import replay

from specdec.bench import doctor
from specdec.bench.doctor import (
    acceptance,
    examine_pair,
    examine_server,
    Finding,
    lengths,
    longest_draft,
    Measured,
    OPTIONS,
    OURS,
    watched,
)  # fmt: skip
from specdec.cli import main
from specdec.drafters import NoDrafter
from specdec.engine import Task
from specdec.families import zoo
from specdec.figures.stats import LaneStats
from specdec.servers.connect import connect
from specdec.types import Costs, SamplingParams


def lane(drafted: int = 50, accepted: int = 30, cycles: int = 10, drafting: int = 10, **more: Any) -> LaneStats:
    """Of K = 5: two drafts in five kept at each place, unless it is said."""
    places = [accepted // 5] * 5
    told = {"accepted_at": places, "judged_at": [drafting] * 5, "tokens": cycles + accepted, "seconds": 1.0} | more
    return LaneStats(cycles=cycles, drafted=drafted, drafting_cycles=drafting, **told)


SOUND = Measured([lane()], [lane(accepted=25)], [lane()], [lane(0, 0, 40, 0)], 5)


def wrong(findings: Sequence[Finding]) -> dict[str, str]:
    return {one.question: one.advice for one in findings if one.state == "wrong"}


def test_a_sound_pair_has_no_fault() -> None:
    found = list(acceptance(SOUND, 0.8, OURS))
    assert wrong(found) == {} and len(found) == 4


FAULTS = {
    "off": (replace(SOUND, greedy=[lane(0, 0, drafting=0)]), "Is it active?", "--speculative-config"),
    "foreign draft": (
        replace(SOUND, greedy=[lane(accepted=0)], bare=[lane(accepted=0)]), "Is anything kept at T = 0?", "tokenizer",
    ),
    "draft of other weights": (
        replace(SOUND, greedy=[lane(drafted=400)], bare=[lane(drafted=400)]), "Is anything kept at T = 0?", "weights",
    ),
    "0 % at T > 0": (replace(SOUND, sampled=[lane(accepted=0)]), "And at T = 0.8?", "look at q"),
    "top-k left out of q": (replace(SOUND, sampled=[lane(accepted=5)]), "And at T = 0.8?", "top-k"),
    "wrong template": (replace(SOUND, greedy=[lane(accepted=10)]), "Has the draft read the chat template?", "template"),
    "n-gram on chat": (replace(SOUND, greedy=[lane(10, 5, drafting=2)]), "Does it draft in every cycle?", "lookup"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_named_with_what_to_change(fault: str) -> None:
    measured, question, advice = FAULTS[fault]
    found = wrong(list(acceptance(measured, 0.8, OPTIONS["vLLM"])))
    assert advice in found.pop(question)
    assert not found  # and nothing else is blamed


def test_a_server_that_tells_nothing_is_asked_for_its_counts() -> None:
    silent = [LaneStats(cycles=10, tokens=20, server="vLLM")]
    (only,) = acceptance(replace(SOUND, greedy=silent), 0.8, OPTIONS["vLLM"])
    assert only.state == "unknown" and "--per-request-spec-decode-metrics" in only.advice


def test_too_long_a_draft_is_told_the_best_length() -> None:
    """Half of the drafts pass each place: at a tenth of a step a draft, two are best by 1 + 1/2 + 1/4 + …"""
    halved = [160, 80, 40, 20, 10, 5, 2, 1]
    greedy = [
        LaneStats(cycles=320, drafted=2560, drafting_cycles=320, accepted_at=halved, judged_at=[320, *halved[:-1]])
    ]
    found = {one.question: one for one in lengths(replace(SOUND, greedy=greedy, k=8), lambda n: 1 + 0.1 * n, 8, "-k")}
    told = found["Which K?"]
    assert told.state == "wrong" and told.advice == "Set -k to 2."
    assert f"{(1 + sum(halved) / 320) / 1.8:.2f} times" in told.answer
    assert f"{9 / 1.8:.2f} times" in found["What could any draft gain here?"].answer


def test_no_length_pays_where_a_cycle_is_too_dear() -> None:
    told = next(lengths(SOUND, lambda n: 3.0 + n, 5, "-k"))
    assert told.state == "wrong" and "Turn it off" in told.advice


def many(kept: Sequence[int], judged: Sequence[int]) -> list[LaneStats]:
    places = {"accepted_at": list(kept), "judged_at": list(judged)}
    return [LaneStats(cycles=judged[0], drafted=4 * judged[0], drafting_cycles=judged[0], **places)]


GREEDY = many([75, 56, 45, 36], [100, 75, 56, 45])


@pytest.mark.parametrize(
    ("sampled", "fails"),
    [
        (many([28, 9, 3, 1], [100, 28, 9, 3]), False),  # of draws that must match: a tenth of all, as in llama-server
        (many([43, 0], [100, 43]), True),  # a sixth of all, but never two in a row: as in vLLM's build for CPUs
        (many([5, 2], [100, 5]), True),
    ],
)
def test_the_places_of_a_draft_tell_whether_sampling_fails(sampled: list[LaneStats], fails: bool) -> None:
    found = wrong(list(acceptance(replace(SOUND, greedy=GREEDY, sampled=sampled), 0.8, OPTIONS["llama.cpp"])))
    assert list(found) == ["And at T = 0.8?"] * fails
    assert all("own draw" in advice for advice in found.values())  # llama-server has no q to look at


def test_next_to_nothing_kept_in_the_template_alone_is_the_templates_fault() -> None:
    found = wrong(list(acceptance(replace(SOUND, greedy=[lane(accepted=0)], bare=[lane(accepted=10)]), 0.8, OURS)))
    assert "below" in found["Is anything kept at T = 0?"]
    assert "template" in found["Has the draft read the chat template?"]


def test_a_foreign_draft_is_not_the_templates_fault() -> None:
    found = wrong(list(acceptance(replace(SOUND, greedy=[lane(accepted=0)], bare=[lane(200, 5)]), 0.8, OURS)))
    assert list(found) == ["Is anything kept at T = 0?"] and "tokenizer" in found["Is anything kept at T = 0?"]


def test_few_passes_with_a_draft_tell_nothing_of_the_pair() -> None:
    seldom = replace(SOUND, greedy=[lane(10, 0, cycles=50, drafting=2)])
    assert list(wrong(list(acceptance(seldom, 0.8, OURS)))) == ["Does it draft in every cycle?"]
    asked = [one.question for one in lengths(seldom, lambda n: 1.0 + n, 5, "-k")]
    assert "Which K?" not in asked


def test_k_is_no_less_than_what_was_drafted() -> None:
    foreign = LaneStats(cycles=180, drafted=702, drafting_cycles=180, accepted_at=[4, 0], judged_at=[180, 4])
    assert longest_draft([foreign]) == 4


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The doctor asks what `record.py` asked."""
    monkeypatch.setattr(doctor, "PROMPTS", tuple(PROMPTS.values()))
    for name in ("TOKENS", "WARM_UP_TOKENS"):
        monkeypatch.setattr(doctor, name, TOKENS)
    race = doctor.lane.race
    monkeypatch.setattr(doctor.lane, "race", lambda *given, top: race(*given, top=TOP))


@pytest.mark.usefixtures("recorded")
def test_a_real_servers_rejected_drafts_are_counted() -> None:
    """vLLM tells them at the end alone: what came before holds only those that were accepted."""
    for name in ("vllm-draft_model", "vllm-draft_model-untold"):
        with replay(name) as stub:
            server, params = connect(stub.address), SamplingParams(max_tokens=TOKENS)
            stats = [watched(server, server.tokenize_chat(one), params) for one in doctor.PROMPTS]
        told = [one for one in stats if one.sums is None]
        assert told and all(one.drafted == 4 * one.drafting_cycles and one.judged_at for one in told)
        assert 0 < sum(one.accepted for one in stats) < sum(one.drafted for one in stats)


@pytest.mark.usefixtures("recorded")
def test_a_real_llama_server_without_speculation_is_told_so() -> None:
    with replay("llama-plain") as stub:
        (only,) = examine_server(connect(stub.address), None, 0.0)
    assert only.state == "wrong" and "--spec-type" in only.advice


def test_a_pair_of_ours_is_examined(shallow: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "TOKENS", 24)
    family = zoo.load(shallow, torch.float32)
    family.costs["draft_model"] = Costs(0.1, (1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8), 0.05)
    found = list(examine_pair(family, "draft_model", 4, 0.8))
    asked = [one.question for one in found]
    assert asked[0] == "Is it active?" and "What does one more row cost?" in asked and asked[-1] == "Is it faster?"
    assert found[0].state == "ok"
    assert next(examine_pair(family, "none", 4, 0.0)).answer == "No token was drafted."


def test_a_server_is_examined_from_outside(
    shallow: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Our own engine behind HTTP; one without speculation is told so."""
    monkeypatch.setattr(doctor, "TOKENS", 16)
    family = zoo.load(shallow, torch.float32)

    def task(name: str) -> Any:
        def made(prompt: Sequence[int], params: SamplingParams) -> Task:
            target, drafter = family.lane(name, len(prompt) + params.max_tokens)
            return Task(target, prompt, params, NoDrafter() if name == "none" else drafter, 0 if name == "none" else 4)

        return made

    with serving(task("draft_model"), family.encode) as fast, serving(task("none"), family.encode) as plain:
        found = {one.question: one for one in examine_server(connect(fast), connect(plain), 0.8)}
        # So few layers guess at random: all is drafted for nothing, which is another fault than not drafting.
        assert found["Is it active?"].state == "ok" and found["Is anything kept at T = 0?"].state == "wrong"
        assert "What does a cycle cost?" in found and "Is it faster?" in found
        assert main(["doctor", "--server", plain]) == 1
        out = capsys.readouterr().out
        assert out.startswith("✗ Is it active?") and "  → Start it with --speculative-config" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "name a --server, or a --target"),
        (["--server", "http://127.0.0.1:1", "--target", "x"], "name a --server, or a --target"),
        (["--target", "x", "--plain", "http://127.0.0.1:1"], "--plain belongs to a --server"),
        (["--server", "http://127.0.0.1:1", "--draft", "x"], "--draft and --drafter belong to a --target"),
    ],
)
def test_what_cannot_be_examined_is_told(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", *arguments]) == 2
    assert said in capsys.readouterr().err
