"""The audit passes every run of the engine, and names the cycle of whatever was changed in one afterwards."""

import copy
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise, product
from typing import Any

import pytest

from specdec import rules
from specdec.cli import main
from specdec.drafters.base import Drafter, NoDrafter
from specdec.drafters.draft_model import DraftModelDrafter
from specdec.events import Candidate, Committed, Distribution, Event, Finished, from_dict, to_dict, Verified
from specdec.families.presets import SMOLLM2
from specdec.loop import generate
from specdec.methods import EMBEDDED, RULE_FACTS
from specdec.paths import ASSETS
from specdec.proof.mistakes import CATALOGUE
from specdec.proof.toys import LookupToy, TableModel, TreeDrafter
from specdec.task import Task
from specdec.traces import file as trace
from specdec.traces.audit import agree, audit, Fault, faultless, LaneAudit
from specdec.traces.cycle import REJECTION
from specdec.traces.file import Trace, TraceHeader
from specdec.types import SamplingParams
from specdec.ui import menu
from specdec.ui.text import LANGUAGES

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


def examine(path: Any) -> int:
    return main(["trace", str(path)])


def run(
    drafter: str = "model", rule: str = "rejection", params: SamplingParams = WARM, details: bool = True
) -> list[Event]:
    judge = rules.make_rule(rule)
    return list(generate(Task(TARGET, (1,), params, DRAFTERS[drafter](), 4, judge, details=details)))


def account(events: list[Event]) -> LaneAudit:
    """Through a file and back, as every trace comes."""
    read = Trace.loads(Trace(TraceHeader("r", "live", "p", ("speculative",)), tuple(events)).dumps())
    (only,) = audit(read.header.lanes, read.events)
    return only


Line = dict[str, Any]


def lines_of(**how: Any) -> list[Line]:
    return [to_dict(event) for event in run(**how)]


def reread(lines: list[Line]) -> LaneAudit:
    return account([from_dict(line) for line in lines])


SETTINGS = {
    "warm": WARM,
    "greedy": SamplingParams(max_tokens=30),
    "filtered": SamplingParams(1.0, top_k=6, top_p=0.9, max_tokens=30, seed=2),
    "hot": SamplingParams(2.0, max_tokens=30, seed=3),
}


def grid() -> Iterator[Any]:
    """Every rule on every kind of draft with one of the settings; a block, whose weights multiply, with each."""
    for i, (drafter, rule, name) in enumerate(product(DRAFTERS, rules.RULES, SETTINGS)):
        tree = drafter in ("sampled", "without replacement", "top")
        if ((i + i // 4) % 4 == 0 or (drafter, rule) == ("model", "block")) and not (rule == "block" and tree):
            yield pytest.param(drafter, rule, SETTINGS[name], id=f"{name}-{drafter}-{rule}")


@pytest.mark.parametrize(("drafter", "rule", "params"), grid())
def test_every_rule_on_every_draft_passes(drafter: str, rule: str, params: SamplingParams) -> None:
    events = run(drafter, rule, params)
    audited = account(events)
    assert audited.faults == []
    assert audited.tokens == 30 and audited.draws >= 5 and not audited.unchecked
    assert audited.lossless is (rule != "typical")
    judged = sum(x.status != "discarded" for e in events if isinstance(e, Verified) for x in e.positions)
    assert audited.decisions >= judged and (judged > 0) is (drafter != "none")


@pytest.mark.parametrize("end", ["\u2581<EOT>", "<|end|>", "."])
def test_the_token_that_ends_a_text_may_be_missing_in_it(end: str) -> None:
    *events, last, finished = run(details=False)
    assert isinstance(last, Committed) and isinstance(finished, Finished)
    text = "".join(last.pieces[:-1])
    last, final = replace(last, pieces=(*last.pieces[:-1], end), text=text), finished.text[: -len(last.pieces[-1])]
    ended = replace(finished, reason="end", text=final)
    assert not account([*events, last, ended]).faults
    assert bool(account([*events, last, replace(ended, reason="length")]).faults) is (end != "<|end|>")
    first = next(i for i, event in enumerate(events) if isinstance(event, Committed))
    events[first] = replace(events[first], text="other")
    assert account([*events, last, ended]).faults


def test_every_recorded_run_passes_and_every_drafter_has_one_in_every_domain() -> None:
    kinds = {Trace.load(path).header.kind for path in TRACES} - set(LANGUAGES)  # a language has one recording
    who = {EMBEDDED: menu.drafters(), SMOLLM2: STARS}
    named = {trace.recording(FOLDER, kind, name) for kind in kinds for name in who.get(menu.target_of(kind), ())}
    assert set(OTHERS) == {path for path in named if path.parent.name not in ("draft_model", "none")}
    for path in TRACES + OTHERS:
        recorded = Trace.load(path)
        text = path.read_text("utf-8").replace('"schema":1', '"schema":2').replace('"law":', '"distribution":')
        assert recorded.dumps() == text
        accounts = audit(recorded.header.lanes, recorded.events)
        assert faultless(accounts) and not any(one.unchecked for one in accounts), path
        checks = [event for event in recorded.events if isinstance(event, Verified) and event.lane == "speculative"]
        judged = [one for event in checks for one in event.positions if one.status in ("accepted", "rejected")]
        assert accounts[0].decisions == len(judged) > 0 < accounts[-1].draws, path


def test_a_light_trace_has_its_coins_checked_and_says_what_was_not() -> None:
    audited = account(run(details=False))
    assert not audited.faults and audited.decisions > 10 and audited.draws == 0
    assert sum(audited.unchecked.values()) >= 10
    lines = lines_of(details=False)
    first(lines, "accepted")[1]["q"] = 0.0  # no draft has it
    assert reread(lines).faults
    lines = lines_of(params=SETTINGS["greedy"], details=False)
    judged = reread(lines).decisions
    del first(lines, "accepted")[1]["u"]  # p is 1: no coin could reject it
    assert reread(lines).decisions == judged


def test_two_lists_of_one_distribution_leave_each_other_room() -> None:
    a, b = (
        Distribution(tuple(Candidate(token, "", p) for token, p in listed.items()), rest, 0.0)
        for listed, rest in (({1: 0.6, 3: 0.2, 4: 0.2}, 0.0), ({1: 0.6, 2: 0.2}, 0.2))
    )
    assert agree(a, a) and not agree(a, b) and not agree(b, a)


def test_an_older_trace_is_checked_as_far_as_it_tells() -> None:
    lines = lines_of()
    del lines[0]["rule"], lines[0]["lossless"]
    for line in lines:
        line.pop("bonus", None)
        for position in line.get("positions", ()):
            position.pop("block", None)
            for distribution in ("target", "residual"):
                position.get(distribution, {}).pop("sample", None)
    audited = reread(lines)
    assert not audited.faults and audited.rule == REJECTION and audited.decisions > 10


def test_shared_noise_without_its_samples_is_unchecked() -> None:
    lines = lines_of(rule="shared_noise")
    for line in lines:
        for position in line.get("positions", ()):
            position["target"].pop("sample", None)
    audited = reread(lines)
    assert not audited.faults and audited.decisions == 0 and sum(audited.unchecked.values()) > 10


def verified(lines: list[Line], cycle: int) -> Line:
    return next(line for line in lines if line["event"] == "verified" and line["cycle"] == cycle)


def committed(lines: list[Line], cycle: int) -> Line:
    return next(line for line in lines if line["event"] == "committed" and line["cycle"] == cycle)


def first(lines: list[Line], status: str) -> tuple[int, Line]:
    found = ((line["cycle"], x) for line in lines for x in line.get("positions", ()) if x["status"] == status)
    return next(found)


def unlikely_coin(lines: list[Line]) -> int:
    cycle, x = first(lines, "rejected")
    x["u"] = 0.5 * x["p"] / x["q"]
    return cycle


def other_residual(lines: list[Line]) -> int:
    cycle, x = first(lines, "rejected")
    x["residual"] = copy.deepcopy(x["target"])
    return cycle


def scaled_residual(lines: list[Line]) -> int:
    """A residual that lists the own token alone, at twice its probability, and an overlap for which that holds."""
    cycle, x = first(lines, "rejected")
    line, own = verified(lines, cycle), committed(lines, cycle)["tokens"][-1]
    (listed,) = (one for one in line["distribution"]["top"] if one["token"] == own)
    factor = min(2.0, 1.0 / listed["prob"])
    forged = {"top": [{**listed, "prob": factor * listed["prob"]}], "entropy": 0.5}
    x["residual"] = line["distribution"] = forged | {"rest": 1.0 - forged["top"][0]["prob"]}
    x["overlap"] = 1.0 - (1.0 - x["overlap"]) / factor
    return cycle


def unlisted_residual(lines: list[Line]) -> int:
    cycle, x = first(lines, "rejected")
    listed = {one["token"] for one in x["target"]["top"]}
    token = next(token for token in range(40) if token not in listed)
    x["residual"] |= {"top": [{"token": token, "piece": "", "prob": 1.0}], "rest": 0.0}
    return cycle


def other_residual_without_overlap(lines: list[Line]) -> int:
    cycle = drawn_from_target(lines)
    del first(lines, "rejected")[1]["overlap"]
    return cycle


def smaller_sum(name: str) -> Callable[[list[Line]], int]:
    def smaller(lines: list[Line]) -> int:
        cycle, x = first(lines, "rejected")
        (x if name in x else verified(lines, cycle))[name]["top"].pop()
        return cycle

    return smaller


def drawn_from_target(lines: list[Line]) -> int:
    cycle, x = first(lines, "rejected")
    verified(lines, cycle)["distribution"] = {**x["target"]}
    verified(lines, cycle)["distribution"].pop("sample")
    return cycle


def kept_though_discarded(lines: list[Line]) -> int:
    cycle, _ = first(lines, "discarded")
    verified(lines, cycle)["positions"][-1]["status"] = "rejected"
    return cycle


def one_more(lines: list[Line]) -> int:
    line = committed(lines, 2)
    line["tokens"].append(3)
    line["pieces"].append(" 3")
    return 2


def wrong_total(lines: list[Line]) -> int:
    committed(lines, 3)["total"] += 1
    return 3


def lost_cycle(lines: list[Line]) -> int:
    lines[:] = [line for line in lines if line.get("cycle") != 2]
    return 3


def other_ending(lines: list[Line]) -> int:
    lines[-1]["text"] += "!"
    return max(line["cycle"] for line in lines if "cycle" in line)


def vast_k(lines: list[Line]) -> int:
    lines[0]["k"] = 10**9
    return 0


def smaller_k(lines: list[Line]) -> int:
    deepest = max(len(line.get("parents", ())) for line in lines)
    lines[0]["k"] = deepest - 1
    return next(line["cycle"] for line in lines if len(line.get("parents", ())) == deepest)


def clock_before_zero(lines: list[Line]) -> int:
    committed(lines, 0)["at"] = -1e-3
    return 0


def more_than_max_tokens(lines: list[Line]) -> int:
    del lines[-1]
    lines[0]["params"]["max_tokens"] = 9
    return max(line["cycle"] for line in lines if "cycle" in line)


def other_bonus(lines: list[Line]) -> int:
    """Another token of the target after a wholly kept draft, with a law of its own that holds nothing else."""
    whole = (line for line in lines if line["event"] == "verified" and line["positions"])
    line = next(line for line in whole if all(x["status"] == "accepted" for x in line["positions"]))
    named = {one["token"] for one in line["bonus"]["top"]}
    token = next(token for token in range(40) if token not in named)
    line["law"] = {"top": [{"token": token, "piece": f" {token}", "prob": 1.0}], "rest": 0.0, "entropy": 0}
    line["p"] = 1.0
    own = committed(lines, line["cycle"])
    own["tokens"][-1], own["pieces"][-1] = token, f" {token}"
    own["text"] = "".join(own["pieces"])
    lines[-1]["text"] = "".join(one["text"] for one in lines if one["event"] == "committed")
    return int(line["cycle"])


TAMPERINGS = [
    vast_k, smaller_k, clock_before_zero, more_than_max_tokens, other_bonus, unlikely_coin, other_residual,
    scaled_residual, unlisted_residual, other_residual_without_overlap, smaller_sum("residual"), smaller_sum("bonus"),
    drawn_from_target, kept_though_discarded, one_more, wrong_total, lost_cycle, other_ending,
]  # fmt: skip


@pytest.mark.parametrize("change", TAMPERINGS, ids=lambda change: change.__qualname__)
def test_what_was_changed_is_named_with_its_cycle(change: Callable[[list[Line]], int]) -> None:
    lines = lines_of()
    cycle = change(lines)
    audited = reread(lines)
    assert audited.faults, "not found"
    assert audited.faults[0].cycle == cycle and audited.faults[0].lane == "speculative"
    assert str(audited.faults[0]).startswith(f"cycle {cycle} of the lane speculative: ")


def test_the_row_of_a_sibling_has_to_be_the_residual_before_it() -> None:
    lines = lines_of(drafter="without replacement")
    tried = (pair for line in lines for pair in pairwise(line.get("positions", ())))
    x, y = next((x, y) for x, y in tried if (x["status"], y["status"]) == ("rejected", "accepted"))
    y["target"], y["u"] = copy.deepcopy(x["target"]), 0.0
    y["p"] = next(one["prob"] for one in y["target"]["top"] if one["token"] == y["token"])
    del y["residual"]
    assert reread(lines).faults


def test_a_tampered_h_of_a_block_is_found() -> None:
    lines = lines_of(rule="block")
    cycle, x = next((line["cycle"], x) for line in lines for x in line.get("positions", ())[-1:] if 0 < x["h"] < 0.6)
    x["h"] = min(1.0, x["h"] + 0.3)
    faults = reread(lines).faults
    assert faults and faults[0].cycle == cycle


@pytest.mark.parametrize("rule", ["match", "shared_noise", "typical", "block"])
def test_a_verdict_of_another_rule_is_found(rule: str) -> None:
    lines = lines_of(rule=rule, params=SamplingParams(1.0, max_tokens=60, seed=1))
    other = RULE_FACTS["shared_noise" if rule == "typical" else "typical"]
    lines[0].update(rule=other.name, lossless=other.lossless)
    assert reread(lines).faults


def test_a_rule_that_nobody_knows_is_unchecked_not_good() -> None:
    lines = lines_of()
    lines[0]["rule"] = "a rule of my own"
    audited = reread(lines)
    assert audited.decisions == 0 and any("a rule of my own" in what for what in audited.unchecked)


def mistaken() -> Iterator[Any]:
    """Wrong rules whose traces contradict themselves. The others lie about a coin or tell none, shift a chance by less
    than a thousandth, or draw a possible token from the wrong distribution: no single run shows that."""
    unseen = ("accept_all", "typical", "coarse_ratio", "draft_bonus", "unjudged_fourth")
    for mistake in CATALOGUE:
        if mistake.rule and mistake.key not in unseen:
            yield pytest.param(mistake, id=mistake.key)


@pytest.mark.parametrize("mistake", mistaken())
def test_a_mistake_that_calls_itself_rejection_sampling_is_found(mistake: Any) -> None:
    params = SamplingParams(1.0, max_tokens=80, seed=3)
    target, draft = TableModel(12, 1, context=256), TableModel(12, 2, context=256)
    task = mistake.apply(Task(target, (1,), params, DraftModelDrafter(draft), 3), draft)
    task.rule.name = REJECTION
    assert account(list(generate(task))).faults


def test_a_lane_that_the_header_does_not_name_is_a_fault() -> None:
    (named, other) = audit(("plain",), run())
    assert not named.faults and other.faults[0] == Fault("speculative", 0, "the header names no such lane")
    assert not faultless([named, other])


@pytest.mark.parametrize("kept", [1, 20, -1])
def test_a_trace_that_was_cut_says_so(kept: int) -> None:
    (only,) = audit(("speculative",), run()[:kept])
    assert not only.faults and sum(only.unchecked.values()) == 1


def test_a_run_of_an_earlier_version_under_a_grammar_opens_and_says_what_is_not_checked() -> None:
    lines = lines_of()
    lines[0]["params"] |= {"grammar": "a*", "ignore_end": True}
    lines[-1]["reason"] = "end"  # where nothing else could follow
    audited = reread(lines)
    assert not audited.faults
    assert list(audited.unchecked) == ["texts decoded under a grammar, which is not checked"]


@pytest.mark.parametrize("where", ["piece", "text", "own"])
def test_ids_and_text_belong_together(where: str) -> None:
    lines = lines_of()
    line = committed(lines, 3)
    if where == "text":
        line["text"] += "!"
        lines[-1]["text"] = "".join(one.get("text", "") for one in lines[:-1])
    elif where == "piece":
        line["pieces"][-1] += "!"
    else:
        named = {one["token"] for one in verified(lines, 3)["distribution"]["top"]}
        line["tokens"][-1] = next(token for token in range(40) if token not in named)
    faults = reread(lines).faults
    assert faults and faults[0].cycle == 3


def test_names_cannot_forge_a_verdict(tmp_path, capsys) -> None:
    forged = "x\n\x1b[2J\x1b[32mthe audit holds\r\u202e"
    lines = lines_of()
    for line in lines:
        line["lane"] = forged
    lines[0]["rule"] = forged
    committed(lines, 3)["total"] += 1
    path = tmp_path / "a\nthe audit holds.jsonl"
    Trace(TraceHeader("r", "live", "p", (forged,)), tuple(map(from_dict, lines))).save(path)
    assert examine(path) == 1
    out = capsys.readouterr().out
    assert "THE AUDIT FAILS" in out and "\x1b" not in out and "\r" not in out and "\u202e" not in out
    assert not any(line.strip().startswith("the audit holds") for line in out.splitlines())
    assert "it is unknown whether it is lossless" in out and "lossless," not in out


EDITED = ("p", "q", "status", "tokens", "text")


def places(value: Any, key: Any = "") -> Iterator[tuple[Any, Any, str]]:
    for name, item in value.items() if isinstance(value, dict) else enumerate(value):
        field = name if isinstance(value, dict) else key
        if isinstance(item, dict | list):
            yield from places(item, field)
        elif field in EDITED and item is not None:
            yield value, name, field


def other(value: Any) -> Any:
    if isinstance(value, str):
        return {"accepted": "rejected", "rejected": "accepted"}.get(value, value + "x")
    return value + 1 if isinstance(value, int) else 0.5 * value + 0.01


def test_random_edits_of_recorded_runs_are_found() -> None:
    dice, found = random.Random(1), list[bool]()
    for path in dice.sample(TRACES + OTHERS, 10):
        recorded = Trace.load(path)
        for field in EDITED:
            lines = [to_dict(event) for event in recorded.events]
            holder, name, _ = dice.choice([place for place in places(lines) if place[2] == field])
            holder[name] = other(holder[name])
            try:
                found.append(not faultless(audit(recorded.header.lanes, map(from_dict, lines))))
            except ValueError:  # what `Trace.loads` names with its line
                found.append(True)
    assert sum(found) >= 0.95 * len(found)


def test_the_terminal_audits(tmp_path, capsys) -> None:
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.jsonl"
    header = TraceHeader("r", "live", "p", ("speculative",))
    Trace(header, tuple(run())).save(good)
    lines = lines_of()
    cycle = unlikely_coin(lines)
    Trace(header, tuple(map(from_dict, lines))).save(bad)
    assert examine(good) == 0
    assert "the audit holds" in capsys.readouterr().out
    assert examine(bad) == 1
    out = capsys.readouterr().out
    assert "THE AUDIT FAILS" in out and f"cycle {cycle} of the lane speculative: draft" in out
    assert examine(tmp_path / "none.jsonl") == 2
    assert "No such file" in capsys.readouterr().err
    good.write_bytes(b"\xff\xfe")
    assert examine(good) == 2
    assert "UTF-8" in capsys.readouterr().err
