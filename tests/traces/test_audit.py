"""The audit passes every run of the engine, and names the cycle of whatever was changed in one afterwards."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mutations
import pytest
import torch

from specdec import rules
from specdec.cli.trace import examine
from specdec.drafters import DraftModelDrafter, NoDrafter
from specdec.drafters.base import Drafter
from specdec.engine import generate, Task
from specdec.events import Committed, Event, from_dict, to_dict, Verified
from specdec.families import zoo
from specdec.families.presets import STAR
from specdec.lanes.race import race
from specdec.methods import EMBEDDED
from specdec.paths import ASSETS
from specdec.proof.mistakes import CATALOGUE
from specdec.proof.toys import LookupToy, TableModel, TreeDrafter
from specdec.traces import file as trace
from specdec.traces.audit import audit, Fault, holds, LaneAudit, LOSSLESS
from specdec.traces.compare import compare
from specdec.traces.cycle import BLOCK, MATCH, NOISE, REJECTION, TYPICAL
from specdec.traces.file import Header, Trace
from specdec.types import Costs, SamplingParams
from specdec.ui import menu

needs_family = pytest.mark.skipif(not (zoo.EMBEDDED / "target").is_dir(), reason="the embedded family is not there")
FOLDER = ASSETS / "traces"
STARS = ("eagle3", "quantised")  # whose runs SmolLM2 has beside its draft model's
TRACES, OTHERS = sorted(FOLDER.glob("*.jsonl")), sorted(FOLDER.glob("*/*.jsonl"))
TARGET = TableModel(40, seed=1)
DRAFT = TableModel(40, seed=2, base=TARGET)
WARM = SamplingParams(temperature=0.7, max_tokens=30, seed=5)
DRAFTERS: dict[str, Callable[[], Drafter]] = {
    "model": lambda: DraftModelDrafter(DRAFT),
    "point": LookupToy,
    "sampled": lambda: TreeDrafter(DRAFT, 3),
    "without replacement": lambda: TreeDrafter(DRAFT, 3, "without replacement"),
    "top": lambda: TreeDrafter(DRAFT, 3, "top"),
    "none": NoDrafter,
}


def run(
    drafter: str = "model", rule: str = "rejection", params: SamplingParams = WARM, details: bool = True
) -> list[Event]:
    judge = rules.named(rule)
    return list(generate(Task(TARGET, (1,), params, DRAFTERS[drafter](), 4, judge, details=details)))


def account(events: list[Event]) -> LaneAudit:
    """Through a file and back, as every trace comes."""
    read = Trace.loads(Trace(Header("r", "live", "p", ("speculative",)), tuple(events)).dumps())
    (only,) = audit(read.header.lanes, read.events)
    return only


# ---- what the engine writes, holds ----


TREES = ("sampled", "without replacement", "top")


SETTINGS = {
    "warm": WARM,
    "greedy": SamplingParams(max_tokens=30),
    "filtered": SamplingParams(1.0, top_k=6, top_p=0.9, max_tokens=30, seed=2),
    "hot": SamplingParams(2.0, max_tokens=30, seed=3),
}


def grid() -> Iterator[Any]:
    """Every rule on every kind of draft, each time with two of the four settings; the others are long."""
    for i, drafter in enumerate(DRAFTERS):
        for j, rule in enumerate(rules.RULES):
            for k, (name, params) in enumerate(SETTINGS.items()):
                if rule != "block" or drafter not in TREES:
                    marks = [pytest.mark.long] if (i + j + k) % 2 else []
                    yield pytest.param(drafter, rule, params, marks=marks, id=f"{name}-{drafter}-{rule}")


@pytest.mark.parametrize(("drafter", "rule", "params"), grid())
def test_every_rule_on_every_draft_passes(drafter: str, rule: str, params: SamplingParams) -> None:
    events = run(drafter, rule, params)
    told = account(events)
    assert told.faults == []
    assert told.tokens == 30 and told.draws >= 5 and not told.unchecked
    assert told.lossless is (rule != "typical")
    judged = sum(x.status != "discarded" for e in events if isinstance(e, Verified) for x in e.positions)
    assert told.decisions >= judged and (judged > 0) is (drafter != "none")


def test_the_names_of_the_rules_are_the_engines() -> None:
    assert set(LOSSLESS) == {rule.name for rule in rules.RULES.values()} == {REJECTION, MATCH, NOISE, BLOCK, TYPICAL}


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_every_recorded_run_passes(path: Path) -> None:
    recorded = Trace.load(path)
    accounts = audit(recorded.header.lanes, recorded.events)
    assert holds(accounts) and not any(one.unchecked for one in accounts)
    checks = [event for event in recorded.events if isinstance(event, Verified) and event.lane == "speculative"]
    judged = [one for event in checks for one in event.positions if one.status in ("accepted", "rejected")]
    written = [event for event in recorded.events if isinstance(event, Committed) and event.lane == "plain"]
    assert accounts[0].decisions == len(judged) > 15 and accounts[0].draws > 5
    assert accounts[-1].draws == sum(len(event.tokens) for event in written) > 15


def test_every_drafter_has_a_sound_run_in_every_domain() -> None:
    kinds, who = {Trace.load(path).header.kind for path in TRACES}, {EMBEDDED: menu.drafters(), STAR: STARS}
    named = {trace.recording(FOLDER, kind, name) for kind in kinds for name in who.get(menu.target_of(kind), ())}
    assert set(OTHERS) == {path for path in named if path.parent.name not in ("draft_model", "none")}
    for path in OTHERS:
        recorded = Trace.load(path)
        accounts = audit(recorded.header.lanes, recorded.events)
        assert holds(accounts) and recorded.header.kind == path.stem and accounts[0].decisions > 0 < accounts[-1].draws


@needs_family
@pytest.mark.parametrize("rule", rules.RULES)
def test_every_drafter_of_the_family_passes(rule: str, shallow: str) -> None:
    """On few layers, greedily and sampled in turn; recorded runs of the whole models are audited above."""
    family = zoo.load(shallow, torch.float32)
    family.costs.setdefault("draft_model", Costs(0.1, (1.0, 1.1, 1.2, 1.3), 0.05))
    for i, name in enumerate([one for one in family.drafters if one != "none"] + ["adaptive"]):
        if rule == "block" and name.endswith("tree"):
            continue
        temperature = (0.0, 0.8)[(i + [*rules.RULES].index(rule)) % 2]
        params = SamplingParams(temperature, max_tokens=20, seed=4, ignore_end=True)
        events = list(race(family, "The old keeper of the", name, 4, params, rule=rule))
        accounts = audit(("speculative", "plain"), events)
        assert [fault for one in accounts for fault in one.faults] == [], name
        assert accounts[0].tokens == accounts[1].tokens == 20


@needs_family
@pytest.mark.parametrize("drafter", ["draft_model", "prompt_lookup"])
def test_a_peer_passes_and_what_it_does_not_tell_is_counted(drafter: str, shallow: str) -> None:
    family = zoo.load(shallow, torch.float32)
    for temperature in (0.0, 0.8):
        params = SamplingParams(temperature, max_tokens=20, seed=4)
        events = list(race(family, "Once upon a time, once upon a", drafter, 3, params, peer=True))
        accounts = audit(("speculative", "transformers", "plain"), events)
        assert [fault for one in accounts for fault in one.faults] == []
        assert accounts[1].unchecked and accounts[1].server.startswith("transformers")


def test_a_light_trace_has_its_coins_checked_and_says_what_was_not() -> None:
    told = account(run(details=False))
    assert not told.faults and told.decisions > 10 and told.draws == 0
    assert sum(told.unchecked.values()) >= 10


def test_an_older_trace_is_checked_as_far_as_it_tells() -> None:
    """Before rules had names, and examples of draws were told."""
    lines = [to_dict(event) for event in run()]
    del lines[0]["rule"], lines[0]["lossless"]
    for line in lines:
        line.pop("bonus", None)
        for position in line.get("positions", ()):
            position.pop("block", None)
            for distribution in ("target", "residual"):
                position.get(distribution, {}).pop("sample", None)
    told = account([from_dict(line) for line in lines])
    assert not told.faults and told.rule == REJECTION and told.decisions > 10


def test_an_older_block_that_could_not_stay_told_an_empty_residual() -> None:
    lines = [to_dict(event) for event in run(rule="block", params=SamplingParams(max_tokens=30))]
    behind = [x for line in lines for x in line.get("positions", ()) if "residual" not in x]
    assert behind  # the engine tells none any more
    for x in behind:
        x["residual"] = {"top": [], "rest": 1.0, "entropy": 0.0}
    assert not account([from_dict(line) for line in lines]).faults


def test_shared_noise_without_its_samples_is_unchecked() -> None:
    lines = [to_dict(event) for event in run(rule="shared_noise")]
    for line in lines:
        for position in line.get("positions", ()):
            position["target"].pop("sample", None)
    told = account([from_dict(line) for line in lines])
    assert not told.faults and told.decisions == 0 and sum(told.unchecked.values()) > 10


# ---- what was changed afterwards, is found ----

Line = dict[str, Any]


def verified(lines: list[Line], cycle: int) -> Line:
    return next(line for line in lines if line["event"] == "verified" and line["cycle"] == cycle)


def committed(lines: list[Line], cycle: int) -> Line:
    return next(line for line in lines if line["event"] == "committed" and line["cycle"] == cycle)


def first(lines: list[Line], status: str) -> tuple[int, Line]:
    """A drafted token of that status, and its cycle."""
    found = ((line["cycle"], x) for line in lines for x in line.get("positions", ()) if x["status"] == status)
    return next(found)


def unlikely_coin(lines: list[Line]) -> int:
    cycle, x = first(lines, "rejected")
    x["u"] = 0.5 * x["p"] / x["q"]
    return cycle


def raised_p(lines: list[Line]) -> int:
    cycle, x = first(lines, "rejected")
    x["p"] = min(1.0, x["p"] + 0.01)
    return cycle


def other_residual(lines: list[Line]) -> int:
    cycle, x = first(lines, "rejected")
    x["residual"] = copy.deepcopy(x["target"])
    return cycle


def drawn_from_target(lines: list[Line]) -> int:
    cycle, x = first(lines, "rejected")
    verified(lines, cycle)["law"] = {**x["target"]}
    verified(lines, cycle)["law"].pop("sample")
    return cycle


def kept_though_discarded(lines: list[Line]) -> int:
    cycle, _ = first(lines, "discarded")
    verified(lines, cycle)["positions"][-1]["status"] = "rejected"
    return cycle


def swapped_commit(lines: list[Line]) -> int:
    cycle, _ = first(lines, "accepted")
    committed(lines, cycle)["tokens"][0] += 1
    return cycle


def one_more(lines: list[Line]) -> int:
    line = committed(lines, 2)
    line["tokens"].append(3)
    line["pieces"].append(" 3")
    return 2


def wrong_total(lines: list[Line]) -> int:
    committed(lines, 3)["total"] += 1
    return 3


def clock_back(lines: list[Line]) -> int:
    committed(lines, 4)["at"] = 0.0
    return 4


def lost_cycle(lines: list[Line]) -> int:
    lines[:] = [line for line in lines if line.get("cycle") != 2]
    return 3


def other_ending(lines: list[Line]) -> int:
    lines[-1]["text"] += "!"
    return max(line["cycle"] for line in lines if "cycle" in line)


TAMPERINGS = [
    unlikely_coin, raised_p, other_residual, drawn_from_target, kept_though_discarded, swapped_commit, one_more,
    wrong_total, clock_back, lost_cycle, other_ending,
]  # fmt: skip


@pytest.mark.parametrize("change", TAMPERINGS, ids=lambda change: change.__qualname__)
def test_what_was_changed_is_named_with_its_cycle(change: Callable[[list[Line]], int]) -> None:
    lines = [copy.deepcopy(to_dict(event)) for event in run()]
    cycle = change(lines)
    told = account([from_dict(json.loads(json.dumps(line))) for line in lines])
    assert told.faults, "not found"
    assert told.faults[0].cycle == cycle and told.faults[0].lane == "speculative"
    assert str(told.faults[0]).startswith(f"cycle {cycle} of the lane speculative: ")


def test_a_tampered_h_of_a_block_is_found() -> None:
    lines = [to_dict(event) for event in run(rule="block")]
    cycle, x = next((line["cycle"], x) for line in lines for x in line.get("positions", ())[-1:] if 0 < x["h"] < 0.6)
    x["h"] = min(1.0, x["h"] + 0.3)
    faults = account([from_dict(line) for line in lines]).faults
    assert faults and faults[0].cycle == cycle


@pytest.mark.parametrize("rule", ["match", "shared_noise", "typical", "block"])
def test_a_verdict_of_another_rule_is_found(rule: str) -> None:
    lines = [to_dict(event) for event in run(rule=rule, params=SamplingParams(1.0, max_tokens=60, seed=1))]
    other = NOISE if rule == "typical" else TYPICAL
    lines[0].update(rule=other, lossless=other != TYPICAL)
    assert account([from_dict(line) for line in lines]).faults


def test_a_rule_that_nobody_knows_is_unchecked_not_good() -> None:
    lines = [to_dict(event) for event in run()]
    lines[0]["rule"] = "a rule of my own"
    told = account([from_dict(line) for line in lines])
    assert told.decisions == 0 and any("a rule of my own" in what for what in told.unchecked)


def mistaken() -> Iterator[Any]:
    """Wrong rules whose traces contradict themselves. The others lie about a coin or tell none, shift a chance by less
    than a thousandth, or draw a possible token from the wrong distribution: no single run shows that."""
    unseen = ("accept_all", "typical", "coarse_ratio", "ratio_epsilon", "draft_bonus", "reused_coin", "unjudged_fourth")
    for mistake in CATALOGUE:
        if mistake.rule and mistake.key not in unseen:
            yield pytest.param(mistake, id=mistake.key)


@pytest.mark.parametrize("mistake", mistaken())
def test_a_mistake_that_calls_itself_rejection_sampling_is_found(mistake: Any) -> None:
    params = SamplingParams(1.0, max_tokens=80, seed=3)
    target, draft = TableModel(12, 1, context=256), TableModel(12, 2, context=256)
    drafter = LookupToy() if mistake.needs_point_mass else DraftModelDrafter(draft)
    task = mistake.apply(Task(target, (1,), params, drafter, 3), draft)
    task.rule.name = REJECTION
    assert account(list(generate(task))).faults


def test_a_lane_that_the_header_does_not_name_is_a_fault() -> None:
    (named, other) = audit(("plain",), run())
    assert not named.faults and other.faults[0] == Fault("speculative", 0, "the header names no such lane")
    assert not holds([named, other])


# ---- what is missing, and what is forged ----


@pytest.mark.parametrize("kept", [1, 20, -1])
def test_a_trace_that_was_cut_says_so(kept: int) -> None:
    (only,) = audit(("speculative",), run()[:kept])
    assert not only.faults and sum(only.unchecked.values()) == 1


def test_a_lane_that_is_gone_is_told() -> None:
    accounts = audit(("speculative", "plain"), run())
    assert [dict(one.unchecked) for one in accounts] == [{}, {"lanes of which the trace holds nothing": 1}]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"temperature": 0.0}, "more than the 1 tokens of its settings"),
        ({"max_tokens": 3}, "30 tokens of 3"),
        ({"max_tokens": 31}, "30 tokens of 31"),
        ({"top_k": 2}, "more than the 2 tokens of its settings"),
        ({"stop": [" 1"]}, "stop string"),
        ({"k": 1}, "4 deep, and K is 1"),
        ({"lossless": False}, "a lossless one lossy"),
    ],
)
def test_settings_that_the_run_did_not_have_are_found(change: dict[str, Any], reason: str) -> None:
    lines = [to_dict(event) for event in run()]
    (lines[0] if change.keys() & lines[0].keys() else lines[0]["params"]).update(change)
    assert any(reason in fault.reason for fault in account([from_dict(line) for line in lines]).faults)


def test_a_run_of_an_earlier_version_under_a_grammar_opens_and_says_what_is_not_checked() -> None:
    lines = [to_dict(event) for event in run()]
    lines[0]["params"] |= {"grammar": "a*", "ignore_end": True}
    lines[-1]["reason"] = "end"  # where nothing else could follow
    told = account([from_dict(line) for line in lines])
    assert not told.faults and list(told.unchecked) == ["texts under a grammar, which is no longer checked"]
    again = [from_dict(to_dict(from_dict(line))) for line in lines]
    assert account(again).unchecked == told.unchecked
    del lines[0]["params"]["grammar"]
    assert account([from_dict(line) for line in lines]).faults


def test_the_coins_of_a_run_come_from_its_seed() -> None:
    events = run()
    told = account(events)
    tossed = [x.u for e in events if isinstance(e, Verified) for x in e.positions if x.u is not None]
    assert told.coins == len(tossed) > 10
    lines = [to_dict(event) for event in events]
    cycle, x = first(lines, "accepted")
    x["u"] *= 0.999  # decides nothing else
    (fault,) = account([from_dict(line) for line in lines]).faults
    assert fault.cycle == cycle and "the seed does not give" in fault.reason


@pytest.mark.parametrize("where", ["token", "piece", "text", "own"])
def test_ids_pieces_and_text_belong_together(where: str) -> None:
    lines = [to_dict(event) for event in run()]
    line = committed(lines, 3)
    if where == "text":
        line["text"] += "!"
        lines[-1]["text"] = "".join(one.get("text", "") for one in lines[:-1])
    elif where == "piece":
        line["pieces"][-1] += "!"
    elif where == "token":
        verified(lines, 3)["positions"][-1]["target"]["top"][-1]["token"] += 1
    else:
        named = {one["token"] for one in verified(lines, 3)["law"]["top"]}
        line["tokens"][-1] = next(token for token in range(40) if token not in named)
    faults = account([from_dict(one) for one in lines]).faults
    assert faults and faults[0].cycle == 3


def test_names_cannot_forge_a_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    forged = "x\n\x1b[2J\x1b[32mthe audit holds\r\u202e"
    lines = [to_dict(event) for event in run()]
    for line in lines:
        line["lane"] = forged
    lines[0]["rule"] = forged
    committed(lines, 3)["total"] += 1
    path = tmp_path / "a\nthe audit holds.jsonl"
    Trace(Header("r", "live", "p", (forged,)), tuple(map(from_dict, lines))).save(path)
    assert examine(path) == 1
    out = capsys.readouterr().out
    assert "THE AUDIT FAILS" in out and "\x1b" not in out and "\r" not in out and "\u202e" not in out
    assert not any(line.strip().startswith("the audit holds") for line in out.splitlines())
    assert "nobody knows whether this rule is lossless" in out and "lossless," not in out


def test_random_edits_are_refused_or_audited_and_most_are_found() -> None:
    found, tried = mutations.edits(66, seed=1)
    assert sum(found[kind] for kind in mutations.NAMED) >= 0.9 * sum(tried[kind] for kind in mutations.NAMED)


# ---- two runs, and the terminal ----


def test_two_runs_part_where_they_part() -> None:
    one = run()
    assert compare(one, run()).what == "nothing"
    other = run(params=SamplingParams(0.7, max_tokens=30, seed=6))
    ids = [[t for e in events if isinstance(e, Committed) for t in e.tokens] for events in (one, other)]
    parting = compare(one, other)
    at = next(i for i, (a, b) in enumerate(zip(*ids, strict=True)) if a != b)
    assert (parting.what, parting.token) == ("words", at) and f"part at token {at + 1}:" in str(parting)
    some = one[: 1 + next(i for i, event in enumerate(one) if isinstance(event, Committed) and event.cycle == 3)]
    shorter = compare(one, some)
    assert (shorter.what, shorter.token) == ("words", some[-1].total) and "nothing more" in str(shorter)
    greedy = SamplingParams(max_tokens=30)
    assert compare(run("model", params=greedy), run("point", params=greedy)).what == "drafts"
    lines = [to_dict(event) for event in one]
    cycle = unlikely_coin(lines)
    changed = compare(one, [from_dict(line) for line in lines])
    assert (changed.what, changed.cycles) == ("numbers", (cycle, cycle))


def test_the_terminal_audits_and_compares(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.jsonl"
    header = Header("r", "live", "p", ("speculative",))
    Trace(header, tuple(run())).save(good)
    lines = [to_dict(event) for event in run()]
    cycle = unlikely_coin(lines)
    Trace(header, tuple(map(from_dict, lines))).save(bad)
    assert examine(good) == 0
    assert "the audit holds" in capsys.readouterr().out
    assert examine(good, bad) == 1
    out = capsys.readouterr().out
    assert "THE AUDIT FAILS" in out and f"cycle {cycle} of the lane speculative: draft" in out
    assert f"numbers first differ in cycle {cycle}" in out
    assert examine(tmp_path / "none.jsonl") == 1
    assert "No such file" in capsys.readouterr().err
    good.write_bytes(b"\xff\xfe")
    assert examine(good) == 1
    assert "UTF-8" in capsys.readouterr().err
