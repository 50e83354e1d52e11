"""Every decision can be decision in words, and the words are those of its own figures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specdec import rules
from specdec.drafters.draft_model import DraftModelDrafter
from specdec.engine import generate, Task
from specdec.events import Position, Verified
from specdec.paths import ASSETS
from specdec.proof.toys import TableModel
from specdec.traces.cycle import cycles
from specdec.traces.explain import explain
from specdec.traces.file import Trace
from specdec.types import SamplingParams

TARGET = TableModel(8, seed=1)


def run(rule: str = "rejection", temperature: float = 1.0, k: int = 3) -> Trace:
    params = SamplingParams(temperature=temperature, max_tokens=24, seed=1)
    drafter = DraftModelDrafter(TableModel(8, seed=2, base=TARGET))
    return Trace.from_events(generate(Task(TARGET, (1,), params, drafter, k, rules.named(rule))), "a prompt")


def changed(trace: Trace, cycle: int, node: int, **values: object) -> Trace:
    def event(one: object) -> object:
        if not isinstance(one, Verified) or one.cycle != cycle:
            return one
        positions = list(one.positions)
        positions[node] = replace(positions[node], **values)  # type: ignore[arg-type]
        return replace(one, positions=tuple(positions))

    return replace(trace, events=tuple(map(event, trace.events)))  # type: ignore[arg-type]


def decisions(trace: Trace) -> list[tuple[int, Position]]:
    return [(one.number, x) for one in cycles(trace.events, trace.header.lanes[0]) for x in one.positions]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("rule", rules.RULES)
def test_every_decision_of_every_rule_is_told_as_it_fell(rule: str, temperature: float) -> None:
    trace, seen = run(rule, temperature), set()
    for cycle, x in decisions(trace):
        decision = explain(trace, cycle, x.node + 1)
        assert (decision.token, decision.status, decision.p, decision.q, decision.u) == (
            x.piece,
            x.status,
            x.p,
            x.q,
            x.u,
        )
        assert f"was {x.status}" in decision.said and "contradicts" not in decision.said
        assert decision.said.endswith(".") and "  " not in decision.said and "\n" not in decision.said
        seen.add(x.status)
    assert {"accepted", "rejected"} <= seen


def test_a_tree_is_told_by_its_places() -> None:
    trace = Trace.load(ASSETS / "traces" / "eagle3.tree" / "story.jsonl")
    said = [explain(trace, cycle, x.node + 1).said for cycle, x in decisions(trace)]
    assert not any("contradicts" in one for one in said)
    for sentence in ("for the same place was accepted", "of what comes before", "In its place", "bonus token"):
        assert any(sentence in one for one in said), sentence


def test_the_coin_the_ratio_and_the_replacement_are_told() -> None:
    trace = run()
    decision = explain(trace)
    first = next(x for _, x in decisions(trace) if x.status == "rejected")
    assert first.u is not None and decision.u == first.u
    assert f"u = {first.u:.4g}" in decision.said and "≥ p" in decision.said and "residual" in decision.said
    own = next(one for one in cycles(trace.events, "speculative") if one.number == decision.cycle).committed.pieces[-1]
    assert repr(own) in decision.said


def test_a_draft_that_was_never_judged_has_its_reason() -> None:
    trace = run()
    cycle, x = next(place for place in decisions(trace) if place[1].status == "discarded")
    assert "without being judged" in explain(trace, cycle, x.node + 1).said


def test_a_trace_that_is_untrue_is_not_explained_away() -> None:
    trace = run()
    decision = explain(trace)
    with pytest.raises(ValueError, match="contradicts itself"):
        explain(changed(trace, decision.cycle, decision.position - 1, p=7.0), decision.cycle, decision.position)


def test_what_is_not_there_is_answered_with_what_is() -> None:
    trace = run()
    last = max(cycle for cycle, _ in decisions(trace))
    with pytest.raises(ValueError, match=f"from 1 to {last}"):
        explain(trace, last + 1)
    with pytest.raises(ValueError, match="no draft 4"):
        explain(trace, 1, 4)
    with pytest.raises(ValueError, match="drafted nothing"):
        explain(run(k=0))
