"""The loop's promises: where a text ends, what events say, and what a fault may cost."""

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest
import torch

from specdec import describe, loop
from specdec.cli.render import describe_run
from specdec.drafters.base import Drafter, NoDrafter
from specdec.drafters.draft_model import DraftModelDrafter
from specdec.drafters.prompt_lookup import PromptLookupDrafter
from specdec.events import Committed, Drafted, Event, Failed, Finished, PLAIN, SPECULATIVE, Started, Verified
from specdec.host import check_proposal, HostExecutor
from specdec.loop import generate
from specdec.messages import Refused
from specdec.proof.enumeration import output_distribution, total_variation
from specdec.proof.toys import LoopCase, TableModel
from specdec.rules import SampleAndMatch, SharedNoise
from specdec.sampling import probabilities, RandomSampler, Sampler, SharedNoiseSampler
from specdec.task import Task
from specdec.traces.audit import audit
from specdec.traces.cycle import lost_drafts
from specdec.traces.file import Trace, TraceHeader
from specdec.types import Proposal, SamplingParams, Verdict
from specdec.verify import RejectionSampling, Rule
from tests.tokens import ids, only

TARGET = TableModel(12, seed=1, context=256)
DRAFT = TableModel(12, seed=2, base=TARGET, context=256)
GREEDY = SamplingParams(temperature=0.0, max_tokens=40)
WARM = SamplingParams(temperature=1.0, max_tokens=40, seed=3)


class Oracle(Drafter):
    """Always right when the target is greedy."""

    name = "oracle"

    def propose(self, tokens: Sequence[int], k: int, *_: Any) -> Proposal:
        text = list(tokens)
        for _ in range(k):
            text.append(int(TARGET.logits(tuple(text)).argmax()))
        return Proposal.chain(text[len(tokens) :])


def run(task: Task) -> list[Event]:
    return list(generate(task))


def end(events: Sequence[Event]) -> Finished:
    assert isinstance(events[-1], Finished)
    return events[-1]


def task(drafter: object = None, params: SamplingParams = GREEDY, **changes: object) -> Task:
    return replace(Task(TARGET, (0, 5), params, drafter or DraftModelDrafter(DRAFT)), **changes)


GREEDY_TEXT = ids(run(task(NoDrafter())))


@pytest.mark.parametrize("k", [0, 1, 2, 3, 5, 8, 16])
@pytest.mark.parametrize("make", [lambda: DraftModelDrafter(DRAFT), PromptLookupDrafter, Oracle, NoDrafter])
def test_greedy_text_is_the_targets_own(make: type, k: int) -> None:
    assert ids(run(task(make(), k=k))) == GREEDY_TEXT


def test_an_end_token_inside_a_draft_ends_the_text_there() -> None:
    stop = GREEDY_TEXT[6]
    first = GREEDY_TEXT.index(stop)
    events = run(task(Oracle(), k=8, end_tokens=frozenset({stop})))
    assert ids(events) == GREEDY_TEXT[: first + 1]
    assert end(events).reason == "end"
    assert all(e.accepted <= len(e.tokens) for e in events if isinstance(e, Committed))
    assert not any(f" {stop}" in e.text for e in events if isinstance(e, Committed))
    ignoring = replace(GREEDY, ignore_end=True)
    assert ids(run(task(Oracle(), ignoring, k=8, end_tokens=frozenset({stop})))) == GREEDY_TEXT


def test_a_stop_string_across_tokens_and_cycles() -> None:
    text = end(run(task())).text
    for begin, length in itertools.product((3, 9, 17), (2, 5)):
        stop = text[begin : begin + length]
        plain = ids(run(task(NoDrafter(), replace(GREEDY, stop=(stop,)))))
        for k in (0, 2, 8):
            events = run(task(Oracle(), replace(GREEDY, stop=(stop,)), k=k))
            assert ids(events) == plain and end(events).tokens == len(plain)
            assert end(events).text == text[: text.index(stop)]
            assert end(events).reason == "stop"
            assert "".join(e.text for e in only(events, Committed)) == end(events).text


@pytest.mark.parametrize("prompt", [(), tuple(range(12)) * 30])
def test_a_prompt_that_cannot_run_is_refused_with_advice(prompt: tuple[int, ...]) -> None:
    with pytest.raises(Refused, match=r"Type|Shorten"):
        generate(task(prompt=prompt))


def test_a_run_says_how_deep_its_drafter_can_draft() -> None:
    drafter = Oracle()
    assert [event.k for event in only(run(task(drafter, k=16)), Started)] == [16]
    drafter.deepest = 6
    assert [event.k for event in only(run(task(drafter, k=16)), Started)] == [6]
    assert [event.k for event in only(run(task(drafter, k=3)), Started)] == [3]


def test_the_light_form_leaves_out_the_distributions_and_nothing_else() -> None:
    full, light = run(task(params=WARM)), run(task(params=WARM, details=False))
    assert ids(full) == ids(light)
    for a, b in zip(full, light, strict=True):
        if isinstance(a, Verified) and isinstance(b, Verified):
            assert [(p.status, p.p, p.q, p.u) for p in a.positions] == [(p.status, p.p, p.q, p.u) for p in b.positions]
            assert all(p.target is not None and p.residual is not None for p in a.positions)
            assert all(len(p.target.top) >= 8 and p.target.rest >= 0.0 for p in a.positions if p.target)
            assert all(p.target is None for p in b.positions)


class Broken(Drafter):
    """Hands over what is no draft, from its second draft on, or from then on in two of three."""

    name = "broken"

    def __init__(self, draft: Callable[[int], Any], recovers: bool = False) -> None:
        self.draft, self.recovers, self.calls = draft, recovers, 0

    def propose(self, tokens: Sequence[int], k: int, *_: Any) -> Proposal:
        self.calls += 1
        if self.calls == 1 or (self.recovers and self.calls % 3 == 0):
            return Proposal()
        return self.draft(k)


Draft = Callable[[int], Any]  # of so many tokens
V = TARGET.vocabulary


def raises(kind: type[BaseException]) -> Draft:
    def draft(k: int) -> Any:
        raise kind("out of order")

    return draft


def chained(token: Any) -> Draft:
    return lambda k: Proposal.chain([token] * k)


def drawn(change: Callable[[torch.Tensor], Any]) -> Draft:
    """From changed uniform distributions."""
    return lambda k: Proposal.chain([1] * k, change(torch.full((k, V), 1.0 / V)))


def spoiled(value: float) -> Draft:
    return drawn(lambda q: torch.cat([q[:-1], q[-1:].index_fill(1, torch.tensor([0]), value)]))


BAD = {
    "raises": raises(RuntimeError),
    "raises StopIteration": raises(StopIteration),
    "out of memory": raises(MemoryError),
    "returns None": lambda k: None,
    "returns a list": lambda k: [1] * k,
    "too deep": lambda k: Proposal.chain([1] * (k + 1)),
    "too many nodes": lambda k: Proposal((1,) * 65, (-1,) * 65),
    "no tree": lambda k: Proposal((1,) * k, (k,) * k),
    "a parent before the text": lambda k: Proposal((1,), (-2,)),
    "too few parents": lambda k: Proposal((1,) * k, ()),
    "id -1": chained(-1),
    "id V": chained(V),
    "id NaN": chained(float("nan")),
    "id 1.0": chained(1.0),
    "id of another library": chained(torch.tensor(1)),
    "no seconds": lambda k: Proposal.chain([1] * k, seconds=None),
    "seconds of other tokens": lambda k: Proposal.chain([1] * k, seconds=(0.1,) * (k + 1)),
    "parents without tokens": lambda k: Proposal((), (-1,) * k),
    "NaN in the distribution": spoiled(float("nan")),
    "negative distribution": spoiled(-0.1),
    "a sign that the sum hides": drawn(lambda q: q + 0.2 * (torch.eye(V)[2] - torch.eye(V)[3])),
    "distribution that does not sum to one": drawn(lambda q: q * 2),
    "distribution that nearly sums to one": drawn(lambda q: q * 1.0005),
    "rows that make up for each other": drawn(lambda q: q * torch.linspace(0.5, 1.5, len(q))[:, None]),
    "distribution of zeros": drawn(lambda q: q * 0),
    "distribution that excludes the token": drawn(lambda q: (q * V / (V - 1)).index_fill(1, torch.tensor([1]), 0.0)),
    "distribution of another vocabulary": drawn(lambda q: q[:, :5]),
}


@pytest.mark.parametrize("how", BAD)
def test_a_broken_drafter_never_harms_the_text(how: str) -> None:
    events = run(task(Broken(BAD[how])))
    assert ids(events) == GREEDY_TEXT
    failures = only(events, Failed)
    assert len(failures) == 3
    assert not any(f.fatal for f in failures)
    assert "switched off" in failures[-1].reason


def test_a_drafter_that_never_works_is_tried_three_times() -> None:
    never, began = NoDrafter(), time.perf_counter()
    never.propose = Mock(side_effect=OSError)
    events = run(task(never))
    took = time.perf_counter() - began
    assert ids(events) == GREEDY_TEXT and len(only(events, Failed)) == 3
    assert all(event.end <= took for event in events if isinstance(event, Verified))
    assert events[0].rule == "rejection sampling" and end(events).counted is None


class Squeamish(DraftModelDrafter):
    """Fails whenever it draws token 1."""

    def propose(self, tokens: Sequence[int], k: int, *more: Any) -> Proposal:
        proposal = super().propose(tokens, k, *more)
        if 1 in proposal.tokens:
            raise RuntimeError("not this one")
        return proposal


def squeamish_error(*rule: Rule) -> float:
    case = LoopCase(3, 1, 2)

    def run_case(sampler: Sampler) -> tuple[int, ...]:
        one = case.task(*rule, drafter=Squeamish(case.models()[1]))
        return tuple(ids(generate(one, HostExecutor(one, sampler))))

    return total_variation(output_distribution(run_case)[0], case.exact_distribution())


def test_a_drafter_that_fails_over_its_draw_biases_the_text_and_the_run_says_so() -> None:
    assert squeamish_error() > 0.01
    for params, lossless in ((WARM, None), (GREEDY, True)):
        trace = Trace(TraceHeader("r", "live", "p", (SPECULATIVE,)), tuple(run(task(Squeamish(DRAFT), params))))
        failures = len(only(trace.events, Failed))
        (account,) = audit(trace.header.lanes, trace.events)
        assert failures and lost_drafts(trace.events, SPECULATIVE) == (failures if lossless is None else 0)
        assert trace.summary()["settings"]["lossless"] is account.lossless is lossless
        assert bool(account.unchecked) is (lossless is None) and not account.faults
        assert (f"the drafter failed in {failures} cycles" in describe_run(trace.events)) is (lossless is None)
        plain = run(task(NoDrafter(), params, lane=PLAIN))
        assert lost_drafts([*plain, *trace.events], PLAIN) == 0
    assert lost_drafts(run(task(params=WARM, target=BadTarget(12, seed=1))), SPECULATIVE) == 0  # no drafter's failure


@pytest.mark.parametrize("rule", [SampleAndMatch(), SharedNoise()], ids=lambda rule: rule.name)
def test_where_the_target_draws_every_token_a_lost_draft_biases_nothing(rule: Rule) -> None:
    assert squeamish_error(SampleAndMatch()) < 1e-9
    trace = Trace(TraceHeader("r", "live", "p", (SPECULATIVE,)), tuple(run(task(Squeamish(DRAFT), WARM, rule=rule))))
    (account,) = audit(trace.header.lanes, trace.events)
    assert only(trace.events, Failed) and not account.unchecked
    assert trace.summary()["settings"]["lossless"] is account.lossless is True
    assert f"{rule.name}, lossless" in describe_run(trace.events)
    if rule.name == "shared noise":
        assert ids(trace.events) == ids(run(task(NoDrafter(), WARM, rule=rule)))


def test_a_rule_that_does_not_say_so_judges_no_trees() -> None:
    class Own(Rule):
        name, lossless = "own", True

        def verify(self, proposal: Proposal, rows: torch.Tensor, sampler: Sampler) -> Verdict:
            return RejectionSampling().verify(proposal, rows, sampler)

    failed = only(run(task(Bushy(), rule=Own())), Failed)
    assert len(failed) == 3 and "takes only chains" in failed[0].reason


def test_of_tokens_that_cannot_be_decoded_no_byte_is_shown() -> None:
    data = iter([b"a", b"b\xe2\x82"])
    assert end(run(task(Oracle(), token_bytes=lambda token: next(data)))).text == "a"


def test_a_drafter_reads_the_prompt_only_if_a_draft_can_follow_and_loses_none_there() -> None:
    asked = list[int]()

    class Reader(Oracle):
        def read_prompt(self, tokens: Sequence[int]) -> None:
            asked.append(0)
            raise RuntimeError("it cannot read the prompt")

        def propose(self, tokens: Sequence[int], k: int, *more: Any) -> Proposal:
            asked.append(k)
            return super().propose(tokens, k, *more)

    for max_tokens, expected in ((1, []), (2, []), (3, [0, 1])):
        asked.clear()
        events = run(task(Reader(), k=4, params=replace(WARM, max_tokens=max_tokens)))
        assert asked[:2] == expected and lost_drafts(events, SPECULATIVE) == 0
        assert [event.at for event in only(events, Failed)] == [0.0] * len(expected[:1])
        assert not audit((SPECULATIVE,), events)[0].faults


def test_a_drafter_that_recovers_stays_on() -> None:
    events = run(task(Broken(BAD["raises"], recovers=True)))
    assert ids(events) == GREEDY_TEXT
    assert len(only(events, Failed)) > 3


class BadTarget(TableModel):
    def forward(self, tokens, cache, parents=(), rows=1):
        out = super().forward(tokens, cache, parents, rows)
        if len(cache.tokens) > 20:
            out[-1, 0] = float("nan")
        return out


class Bushy(Drafter):
    """Three siblings a level, to the full depth: far more nodes than the text has room for at its end."""

    name = "bushy"

    def propose(self, tokens: Sequence[int], k: int, *_: Any) -> Proposal:
        nodes, parents, node = [], [], -1
        for level in range(k):
            first = len(nodes)
            nodes += [(tokens[-1] + level + i) % 97 for i in range(3)]
            parents += [node] * 3
            node = first + 1
        return Proposal(tuple(nodes), tuple(parents))


def test_a_tree_runs_on_the_real_decoder_to_the_last_token() -> None:
    from tests.models.test_models import lean

    model = lean("llama grouped heads")
    for wanted in (24, 200):
        params = replace(GREEDY, max_tokens=wanted)
        plain = run(Task(model, (1, 2, 3), params))
        bushy = run(Task(model, (1, 2, 3), params, Bushy(), 4))
        assert not only(bushy, Failed)
        assert ids(bushy) == ids(plain)
        assert end(bushy).reason == ("length" if wanted == 24 else "context")


class FullCard(TableModel):
    def new_cache(self, capacity: int) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")


@pytest.mark.parametrize(
    "full",
    [task(target=FullCard(12, seed=1)), task(DraftModelDrafter(FullCard(12, seed=2)))],
    ids=["the target's cache", "the drafter's"],
)
def test_without_room_a_run_ends_in_one_sentence(full: Task) -> None:
    *_, failed, _ = run(full)
    assert isinstance(failed, Failed) and failed.fatal
    assert failed.reason is loop.NO_ROOM  # no class of errors before it, and a page can translate it


@pytest.mark.parametrize("details", [True, False])
@pytest.mark.parametrize("what", ["new_cache", "verify", "at", "piece", "token_bytes", "verification"])
def test_every_run_ends_with_finished_whatever_breaks(what: str, details: bool, monkeypatch) -> None:
    one, sampler, calls = task(Oracle(), k=3, details=details, piece=" {}".format), RandomSampler(0), itertools.count()
    place, whole_calls, error = {
        "new_cache": (TARGET, 0, MemoryError("no room for a cache")),
        "verify": (one.rule, 0, RuntimeError("no verdict")),
        "at": (sampler, 5, OSError("no noise left")),
        "piece": (one, 10, KeyError(-1)),
        "token_bytes": (one, 10, KeyError(-1)),
        "verification": (describe, 10, KeyError(-1)),
    }[what]
    function = getattr(place, what)

    def breaks(*given: Any, **named: Any) -> Any:
        if next(calls) >= whole_calls:
            raise error
        return function(*given, **named)

    monkeypatch.setattr(place, what, breaks)
    events = list(generate(one, HostExecutor(one, sampler)))
    assert isinstance(events[0], Started)
    failed = only(events, Failed)
    assert len(failed) == 1 and failed[0].fatal and events[-2] == failed[0]
    assert end(events).reason == "failed" and end(events).tokens == len(ids(events))
    assert ids(events) == GREEDY_TEXT[: len(ids(events))]
    assert "".join(event.text for event in only(events, Committed)) == end(events).text


def test_the_clock_adds_up() -> None:
    events = run(task(k=3))
    finished, drafted = end(events), sum(event.end - event.start for event in events if isinstance(event, Drafted))
    verified = sum(event.end - event.start for event in events if isinstance(event, Verified) and event.cycle)
    assert finished.draft >= drafted > 0.0
    assert finished.verify == pytest.approx(verified, abs=1e-9) and verified > 0.0
    spent = finished.prefill + finished.draft + finished.verify + finished.other
    assert finished.prefill > 0.0 and finished.other > 0.0 and finished.at == pytest.approx(spent, abs=1e-9)
    committed = only(events, Committed)
    assert [event.cycle for event in committed] == [*range(len(committed))]


def test_limits_of_a_task() -> None:
    assert task().k == 4 and len(ids(run(task(k=64)))) == 40
    check_proposal(Proposal((1,) * 64, (-1,) * 64), 1, 12)
    for k in (65, 2.5):
        with pytest.raises(ValueError, match="whole number between 0 and 64"):
            run(task(k=k))
    small = task(Oracle(), replace(GREEDY, max_tokens=100), target=TableModel(12, seed=1, context=16), k=5)
    full = task(prompt=(0,) * 255)
    for one, tokens, reason in (
        (replace(full, params=replace(GREEDY, max_tokens=1)), 1, "length"),
        (full, 1, "context"),
        (small, 14, "context"),
        *((task(Oracle(), replace(GREEDY, max_tokens=n), k=8), n, "length") for n in (0, 1, 2, 3, 7)),
    ):
        assert len(ids(events := run(one))) == tokens
        assert end(events).tokens == tokens and end(events).reason == reason
    with pytest.raises(Refused, match="256 tokens; the model reads at most 255"):
        run(task(prompt=(0,) * 256))


def test_a_target_that_breaks_ends_the_run_and_what_was_held_back_is_shown() -> None:
    """Bytes that wait for the rest of their character are text that was written."""
    events = run(task(Oracle(), target=BadTarget(12, seed=1), k=3, token_bytes=lambda token: b"\xe2\x82"))
    (failed,) = (event for event in events if isinstance(event, Failed))
    assert failed.fatal and failed.where == "engine"
    assert ids(events) == GREEDY_TEXT[: len(ids(events))] and len(ids(events)) >= 14
    shown = "".join(event.text for event in only(events, Committed))
    assert end(events).reason == "failed" and end(events).text == shown + "\N{REPLACEMENT CHARACTER}"
    whole = end(run(task(token_bytes=lambda token: b"\xe2\x82")))
    assert whole.text == 40 * "\N{REPLACEMENT CHARACTER}"


def test_what_a_draft_says_of_itself_is_told() -> None:
    class Telling(Oracle):
        def propose(self, tokens: Sequence[int], k: int, *more: Any) -> Proposal:
            plain = super().propose(tokens, k, *more)
            return replace(plain, seconds=(0.25,) * k)

    for event in run(task(Telling(), k=2)):
        if isinstance(event, Drafted):
            count = len(event.tokens)
            assert event.step_ends == pytest.approx([event.start + 0.25 * (i + 1) for i in range(count)])


def test_an_example_is_drawn_with_the_noise_of_its_place() -> None:
    noise, text = SharedNoiseSampler(WARM.seed), [0, 5]
    for event in run(task(Oracle(), params=WARM, k=3)):
        if isinstance(event, Verified):
            noise.at(len(text))
            for level, position in enumerate(event.positions):
                drafted = [one.token for one in event.positions[:level]]
                distribution = probabilities(TARGET.logits((*text, *drafted))[None], WARM)[0]
                assert position.target is not None and position.target.sample is not None
                assert position.target.sample.token == noise.categorical(distribution, ("own", level))
        if isinstance(event, Committed):
            text += event.tokens
