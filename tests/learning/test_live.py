"""A draft that learns from its own runs: what it is taught, that it learns, what is told of it, and the distribution
that stays.

On a family with three layers of the target, which its draft does not know: there is much to learn, in a moment.
"""

from __future__ import annotations

import gc
import itertools
import json
import weakref
from collections.abc import Generator
from dataclasses import replace
from typing import Any, TypeVar

import pytest
import torch

from specdec.families import zoo
from specdec.families.zoo import Family
from specdec.learning import live
from specdec.learning.experience import Example, run, Student
from specdec.learning.live import certificate, figures, learn, of_kind, run_until, TrainingSet, verdict
from specdec.models.base import LanguageModel
from specdec.models.transformer import Transformer
from specdec.paths import ASSETS
from specdec.proof.mistakes import MISTAKES
from specdec.training.loss import divergence
from specdec.types import SamplingParams
from tools import learn as tool

DRAFT, PROMPT = "draft_model", "The captain and"
PARAMS = SamplingParams(live.TEMPERATURE, max_tokens=20, seed=1, ignore_end=True)
TRAINING_SET = TrainingSet([["Once upon a time"], ["The old man"]], [PROMPT], PROMPT, seconds=1e9, runs=6)
Done = TypeVar("Done")


@pytest.fixture(scope="module")
def family(shallow: str) -> Family:
    return zoo.load(shallow)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"TEXT": 24, "HELD_OUT_TEXT": 40, "SEEDS": 2, "DRAWS": 100}.items():
        monkeypatch.setattr(live, name, value)


def finished(work: Generator[Any, None, Done]) -> Done:
    while True:
        try:
            next(work)
        except StopIteration as ended:
            done: Done = ended.value
            return done


def taught_by(family: Family, seed: int, prompt: str = PROMPT) -> Example:
    params = replace(PARAMS, seed=seed)
    return finished(run(family, family.drafts[DRAFT], family.encode(prompt), 3, params))[1]


def logits(model: LanguageModel[Any], tokens: tuple[int, ...]) -> torch.Tensor:
    return model.forward(tokens, model.new_cache(len(tokens)), rows=len(tokens))


# ---- what is taught ----


@pytest.mark.parametrize("drafts", [True, False])
def test_a_lesson_is_the_targets_own_distribution_at_every_place_that_it_judged(family: Family, drafts: bool) -> None:
    prompt = family.encode(PROMPT)
    stats, example = finished(run(family, family.drafts[DRAFT] if drafts else None, prompt, 3, PARAMS))
    assert (0 < stats.accepted < stats.judged) == drafts  # both happened: neither leaves a gap
    assert list(example.tokens[: len(prompt)]) == prompt and example.first == len(prompt)
    assert len(example.tokens) - example.first == PARAMS.max_tokens == len(example.logits)
    told = logits(family.target, example.tokens[:-1])[example.first - 1 :]
    assert torch.allclose(example.logits.float(), told, atol=0.02, rtol=0.002)


def test_before_any_step_the_student_is_the_draft(family: Family) -> None:
    draft = family.drafts[DRAFT]
    assert isinstance(draft, Transformer)
    student, text = Student(draft, 0.8), tuple(family.encode(PROMPT))
    same = student.exported()
    assert torch.equal(logits(same, text), logits(draft, text))
    assert same.stored == draft.stored and same.parameters == draft.parameters


def test_the_loss_is_the_divergence_at_the_judged_places_alone(family: Family) -> None:
    student = Student(family.drafts[DRAFT], 0.8)  # type: ignore[arg-type]
    examples = [taught_by(family, 1), taught_by(family, 2, "In the garden there stood an old tree, and")]
    each = []
    for example in examples:
        q = student.model(input_ids=torch.tensor([example.tokens[:-1]])).logits[0, example.first - 1 :]
        p = example.logits.float()
        each.append(divergence((p / 0.8).log_softmax(-1), (q / 0.8).log_softmax(-1)))
    mean = torch.stack(each).mean()  # as many places in each
    assert torch.allclose(student.loss(examples), mean, rtol=1e-4)


def test_steps_bring_the_draft_nearer_to_the_target_on_a_text_that_taught_nothing(family: Family) -> None:
    draft = family.drafts[DRAFT]
    student, unseen = Student(draft, 0.8), taught_by(family, 99, "When the letter came")  # type: ignore[arg-type]
    examples, before = [taught_by(family, seed) for seed in range(3)], student.loss([unseen]).item()
    losses = [student.step(examples) for _ in range(8)]
    assert losses[-1] < 0.7 * losses[0] and student.loss([unseen]).item() < 0.9 * before
    text = unseen.tokens
    assert not torch.allclose(logits(student.exported(), text), logits(draft, text), atol=0.1)


def test_nothing_is_taught_by_what_it_is_examined_with() -> None:
    teaching, asked = (json.loads((ASSETS / name).read_text(encoding="utf-8")) for name in live.FILES)
    for kind, prompts in teaching.items():
        assert len(set(prompts)) == len(prompts) >= 8 and not set(prompts) & set(asked[kind])
        assert not [one for one in prompts for other in asked[kind] if one.startswith(other) or other.startswith(one)]
    training_set = of_kind("code", ["mine", f" {asked['code'][1]}\n", "other"])
    assert training_set.sources == [["mine", "other"], teaching["code"]] and training_set.held_out == asked["code"]
    assert of_kind("facts", [asked["facts"][0]]).sources == [teaching["facts"]]
    with pytest.raises(ValueError, match="no examples of the kind 'poems'; choose from story, code, facts"):
        of_kind("poems")
    for unreadable in (" ", "a\ud800b"):
        with pytest.raises(ValueError, match="a prompt is empty, or holds half of a character"):
            of_kind("code", [unreadable])


# ---- a minute of it ----


@pytest.fixture(scope="module")
def states(family: Family) -> list[dict[str, Any]]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"TEXT": 24, "HELD_OUT_TEXT": 40, "SEEDS": 2, "DRAWS": 100}.items():
            patch.setattr(live, name, value)
        return [state for state in learn(family, DRAFT, TRAINING_SET) if state is not None]


def test_it_learns_is_examined_and_is_certified(states: list[dict[str, Any]], family: Family) -> None:
    phases = [state["phase"] for state in states]
    assert list(dict.fromkeys(phases)) == ["learning", "measuring", "certifying", "done"]
    assert phases.count("learning") == 1 + TRAINING_SET.runs and phases.count("measuring") == 1 + 2
    assert json.loads(json.dumps(states, allow_nan=False)) == states
    last = states[-1]
    assert [len(state["rounds"]) for state in states[:3]] == [0, 1, 2]
    assert last["judged"] == sum(one[2] for one in last["rounds"]) > last["rejected"] > 0
    before, after = last["figures"]["before"], last["figures"]["after"]
    assert after["alpha"] > before["alpha"] and after["tau"] > before["tau"] and before["runs"] == 2
    assert before["interval"][0] < before["alpha"] < before["interval"][1]
    assert last["verdict"] == verdict(last["figures"])
    assert last["certificate"]["passed"] == [True] * 3 and last["certificate"]["done"] == 100


def test_before_is_the_draft_as_it_ships_with_the_same_seeds(states: list[dict[str, Any]], family: Family) -> None:
    told = []
    for seed in range(2):
        params = SamplingParams(live.TEMPERATURE, max_tokens=40, seed=seed, ignore_end=True)
        told.append(finished(run(family, family.drafts[DRAFT], family.encode(PROMPT), live.K, params))[0])
    figures = states[-1]["figures"]["before"]
    assert figures["judged"] == sum(one.judged for one in told)
    assert figures["alpha"] == pytest.approx(sum(one.accepted for one in told) / figures["judged"], abs=1e-4)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [((0.1, 0.2), (0.3, 0.4), "better"), ((0.3, 0.4), (0.1, 0.2), "worse"), ((0.1, 0.3), (0.2, 0.4), "same")],
)
def test_a_gain_is_told_where_the_intervals_are_apart(before: Any, after: Any, said: str) -> None:
    assert verdict({"before": {"interval": before}, "after": {"interval": after}}) == said


def test_nothing_judged_is_no_figure_and_no_error() -> None:
    told = figures([])
    assert told["alpha"] is None and told["interval"] == [0.0, 1.0] and told["judged"] == 0


@pytest.mark.usefixtures("short")
def test_a_slow_machine_measures_and_certifies_less_in_the_same_time(
    family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here a second goes by whenever somebody looks at the clock."""
    monkeypatch.setattr(live, "DRAWS", 1_000)
    seconds = itertools.count()
    monkeypatch.setattr(live.time, "monotonic", lambda: float(next(seconds)))
    *_, last = learn(family, DRAFT, replace(TRAINING_SET, runs=2, after=2.0))
    assert last
    assert last["figures"]["before"]["runs"] == 1  # of two
    assert (last["certificate"]["done"], last["certificate"]["draws"]) == (100, 1_000)
    assert last["certificate"]["passed"] == [True] * 3
    (_, _, _, degrees, *_) = last["certificate"]["tests"][-1]
    assert degrees < 100  # of the sample that is told, no larger one


@pytest.mark.usefixtures("short")
def test_where_there_was_no_time_nothing_is_learned_and_that_is_told(family: Family) -> None:
    states = (state for state in learn(family, DRAFT, replace(TRAINING_SET, seconds=1e-9)) if state)
    last = next(state for state in states if state["phase"] == "certifying")
    assert last["rounds"] == [] and last["verdict"] == "same"
    alike = ("alpha", "tau", "judged", "interval")
    assert [last["figures"]["before"][name] == last["figures"]["after"][name] for name in alike] == [True] * 4


def test_a_run_that_the_end_cuts_is_left_at_once() -> None:
    closed, asked = [], iter([False, False, True])

    def work() -> Generator[None, None, str]:
        try:
            yield None
            yield None
            yield None
            return "done"
        finally:
            closed.append(True)

    working = work()  # held: nobody else would close it
    cut = run_until(working, lambda: next(asked))
    assert finished(cut) is None and closed == [True]
    assert finished(run_until(work(), lambda: False)) == "done"


def test_who_leaves_takes_everything_along(family: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two steps; the copy that learned, and its examples, are gone."""
    made: list[weakref.ref[Any]] = []

    class Watched(Student):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            made.append(weakref.ref(self.model))

    monkeypatch.setattr(live, "Student", Watched)
    learning = learn(family, DRAFT, TRAINING_SET)
    while (state := next(learning)) is None or not state["rounds"]:
        pass
    assert made[0]() is not None
    learning.close()
    gc.collect()
    assert made[0]() is None


def test_only_a_draft_model_can_be_taught(family: Family) -> None:
    with pytest.raises(ValueError, match="no draft model 'medusa' to teach; choose from draft_model"):
        next(learn(family, "medusa", TRAINING_SET))


# ---- the distribution ----


@pytest.mark.parametrize("mistake", ["accept_all", pytest.param("from_target", marks=pytest.mark.long)])
def test_a_planted_mistake_is_red_with_a_draft_that_learned(family: Family, mistake: str) -> None:
    student = Student(family.drafts[DRAFT], 0.8)  # type: ignore[arg-type]
    example = taught_by(family, 1)
    for _ in range(3):
        student.step([example])
    draft = student.exported()
    *_, green = certificate(family, draft, PROMPT, draws=100)
    assert green["passed"] == [True] * 3 and green["done"] == 100
    *_, red = certificate(family, draft, PROMPT, MISTAKES[mistake], draws=100)
    assert not red["passed"][0] and red["closed"]["error"] > 1e-3


# ---- in a terminal ----


def test_the_report_tells_phases_runs_and_figures(states: list[dict[str, Any]]) -> None:
    assert tool.news({}, states[0]) == ["learning …"]
    (line,) = tool.news(states[0], states[1])
    seconds, accepted, judged, loss = states[1]["rounds"][0]
    assert (
        f"α of this run {accepted / judged:.2f}" in line and f"loss {loss:.3f}" in line and f"{seconds:.1f} s" in line
    )
    text = "\n".join(tool.conclusion(states[-1]))
    for lane, told in states[-1]["figures"].items():
        assert f"{lane}" in text and f"α {told['alpha']:.3f}" in text and f"τ {told['tau']:.2f}" in text
    assert text.count("✓") == 3 and "✗" not in text
    assert "no run was finished in time" in "\n".join(tool.conclusion(states[-1] | {"rounds": []}))
