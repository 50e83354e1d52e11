"""The section *Learn here* without a browser: what is asked, told and refused; the machine is given back."""

from __future__ import annotations

import inspect
import itertools
import json
import re

import pytest

from specdec.exposure import limits, OWN, PUBLIC
from specdec.lanes import worker
from specdec.ui import learn, menu, request, session, text
from specdec.ui.tabs import race

CERTIFICATE = {
    "text": "It was",
    "closed": {"error": 1.4e-16, "overlap": 0.5}, "done": 5_000, "draws": 5_000, "greedy": {"equal": 48, "of": 48},
    "tests": [[0.01, 0.02, 4.0, 8.0, 1.0, 0], [0.1, 0.2, 130.0, 100.0, 0.25, 0]], "passed": [True, True, True],
}  # fmt: skip
BEFORE = {"alpha": 0.1, "interval": [0.08, 0.12], "tau": 1.1, "measured_speedup": 0.6, "judged": 700, "runs": 16}
AFTER = {"alpha": 0.4, "interval": [0.36, 0.44], "tau": 1.6, "measured_speedup": 0.9, "judged": 800, "runs": 16}
LEARNING = {"phase": "learning", "left": 30.0, "rounds": [[5.0, 3, 60, 4.0], [30.0, 30, 80, 2.0]], "judged": 140}
LEARNING |= {"rejected": 107}
FIGURES = {"before": BEFORE, "after": AFTER}
DONE = LEARNING | {"phase": "done", "left": 0.0, "figures": FIGURES, "verdict": "better", "certificate": CERTIFICATE}
PLACES = ["line", "badge", "chart", "told", "figures", "run", "stop"]


@pytest.fixture
def asked(monkeypatch):
    """States in place of an engine; the requests."""
    calls = []

    def lessons(request):
        calls.append(request)
        yield LEARNING | {"rounds": [], "left": 60.0}
        yield None
        yield LEARNING
        yield LEARNING | {"phase": "measuring"}
        yield LEARNING | {"phase": "certifying"}
        yield DONE

    monkeypatch.setattr(session, "_lessons", lessons)
    return calls


def told(*given):
    return [dict(zip(PLACES, update, strict=True)) for update in learn.learned(*given)]


def said(updates):
    return [update["line"]["value"] for update in updates if "value" in update["line"]]


def test_a_minute_is_told_from_beginning_to_end(asked, monkeypatch):
    monkeypatch.setattr(learn, "SECONDS_A_CHART", 0.0)
    updates = told("code", "draft_model:story", [text.prompts()["code"][1], "x = 1\n"])
    assert asked == [request.LearningRequest("code", "draft_model:story", ("x = 1\n",))]  # not what it is asked
    assert "(1)" in updates[0]["badge"][1] and "Code (12)" in updates[0]["badge"][1]
    lines = said(updates)
    assert "Learning: 2 runs, 140 drafted tokens judged, 107 of them rejected. About 30 seconds left." in lines
    assert any(line.startswith("Measuring") for line in lines) and any(line.startswith("Certifying") for line in lines)
    shares = [update["line"]["share"] for update in updates if "Learning" in update["line"].get("value", "")]
    assert shares == [0.0, 0.5]
    last = updates[-1]
    assert last["line"]["value"].startswith("Done in")
    assert last["figures"] == [
        ["Before", 0.1, "0.08 to 0.12", 1.1, 0.6, 700],
        ["After", 0.4, "0.36 to 0.44", 1.6, 0.9, 800],
    ]
    gained, speed, good, *checks, forgotten = last["told"]
    assert "rose from 0.10 to 0.40" in gained and "1.60 tokens instead of 1.10" in gained
    assert "0.60× before, 0.90× after" in speed and "still slower" in speed
    assert "still the target" in good and [one[:1] for one in checks] == ["✓"] * 3
    assert (
        "after “It was”: largest error 1e-16" in checks[0]
        and "G = 130 on 100 degrees" in checks[1]
        and "chance below 0.25" in checks[1]
    )
    assert "forgotten" in forgotten and not session._machine.locked()
    dots, line = json.loads(last["chart"].to_json())["data"]
    assert dots["x"] == [5.0, 30.0] and dots["y"] == [3 / 60, 30 / 80] and line["y"] == [3 / 60, 33 / 140]


@pytest.mark.parametrize(("verdict", "word"), [("same", "intervals meet"), ("worse", "got worse: α fell from 0.10")])
def test_no_gain_is_told_as_honestly(verdict, word):
    assert word in learn.conclusion(DONE | {"verdict": verdict})[0]


def test_where_no_run_was_finished_in_time_that_is_why_nothing_was_gained():
    assert "too busy to finish a run" in learn.conclusion(DONE | {"verdict": "same", "rounds": []})[0]


def test_a_certificate_that_fails_is_told_with_its_figures():
    broken = {"passed": [False, False, True], "closed": {"error": None}, "tests": [[1.0, 0.1, None, 9, 0.0, 7]]}
    said, *checks = learn.certified(CERTIFICATE | broken)
    assert "failed" in said and [one[:1] for one in checks] == ["✗", "✗", "✓"]
    assert "0 ÷ 0" in checks[0] and "G = ∞ on 9" in checks[1]


@pytest.mark.parametrize("language", list(text.LANGUAGES))
def test_every_language_can_say_all_of_it(language):
    with text.speaking(language):
        for verdict in ("better", "same", "worse"):
            assert all(learn.conclusion(DONE | {"verdict": verdict}))
        for phase in ("learning", "measuring", "certifying"):
            assert learn.progress(LEARNING | {"phase": phase})["value"]
        assert "8" in learn.sources(8, "story") and learn.sources(0, "facts")


@pytest.mark.parametrize(
    ("kind", "drafter", "ran", "word"),
    [
        ("poems", "draft_model", [], "one of: story, code, facts"),
        (None, "draft_model", [], "texts to learn"),
        (["code"], "draft_model", [], "texts to learn"),
        ("code", "medusa", [], "Who learns must be one of: draft_model:story"),
        ("code", "adaptive:draft_model", [], "Who learns"),
        ("code", 7, [], "Who learns"),
        ("code", "draft_model", "x", "must be text"),
        ("code", "draft_model", ["\ud800"], "half of a character"),
        ("code", "draft_model", ["x" * 9_999], "9,999 characters"),
    ],
)
def test_bad_input_is_one_sentence_and_starts_nothing(asked, kind, drafter, ran, word):
    (update,) = told(kind, drafter, ran)
    assert update["line"]["wrong"] is True and word in update["line"]["value"] and asked == []


def test_leaving_frees_the_machine_and_what_was_learned(monkeypatch):
    closed = []

    def lessons(request):
        try:
            while True:
                yield LEARNING
        finally:
            closed.append(request.kind)

    monkeypatch.setattr(session, "_lessons", lessons)
    updates = learn.learned("facts", "draft_model", [])
    for _ in range(5):
        next(updates)
    assert session._machine.locked() and closed == []
    updates.close()
    assert not session._machine.locked() and closed == ["facts"]


def test_it_waits_in_the_same_line_as_everybody(asked):
    ticket = session._machine.join("run")
    assert session._machine.before(ticket) == (0, 0.0)
    updates = learn.learned("facts", "draft_model", [])
    next(updates)
    assert "1 before you" in next(updates)[0]["value"] and asked == []
    updates.close()
    session._machine.leave(ticket)
    assert not session._machine.locked()


def test_it_ends_at_its_deadline(monkeypatch):
    """Which is what the page promises; to load the models comes before."""

    def lessons(request):
        for _ in range(20):  # the models are loaded
            yield None
        while True:
            yield LEARNING

    clock = itertools.count()
    monkeypatch.setattr(session, "_lessons", lessons)
    monkeypatch.setattr(session.time, "monotonic", lambda: next(clock))
    last = told("code", "draft_model", [])[-1]
    assert "too busy" in last["line"]["value"] and not session._machine.locked()
    promised = limits().learning + limits().after_learning
    assert promised <= int(re.search(r"after (\d+) seconds", last["line"]["value"])[1]) <= promised + 10


@pytest.mark.parametrize("exposure", ["own", "network", "class", "public"])
def test_the_page_promises_what_the_machine_is_held_for(exposure, monkeypatch):
    monkeypatch.setenv("SPECDEC_EXPOSURE", exposure)
    for name in ("en", "zh"):
        with text.speaking(name):
            lead = learn.lead()
        assert f" {limits().learning:.0f} " in lead and f" {limits().after_learning:.0f} " in lead
    assert limits().learning + limits().after_learning <= (120 if exposure == "own" else 60)


def test_what_broke_is_one_sentence(monkeypatch):
    def lessons(request):
        yield LEARNING
        raise RuntimeError("no")

    monkeypatch.setattr(session, "_lessons", lessons)
    last = told("code", "draft_model", [])[-1]
    assert last["line"]["wrong"] is True and "broke off" in last["line"]["value"] and not session._machine.locked()


def test_the_engine_is_asked_what_it_answers(monkeypatch):
    calls = []
    monkeypatch.setattr(session._worker, "call", lambda *given, **more: calls.append((given, more)))
    session._lessons(request.check_learning("story", "draft_model:scratch", ["mine"]))
    (((name, *given), more),) = calls
    asked = inspect.signature(worker.CALLS[name]).bind(*given).arguments
    assert asked == {"drafter": "draft_model:scratch", "kind": "story", "own": ("mine",)} | {
        "seconds": limits().learning,
        "after": limits().after_learning,
    }
    assert more == {"pulse": True} and PUBLIC.learning < OWN.learning


def test_those_who_can_learn_are_draft_models_and_the_one_with_most_to_learn_is_first():
    names = request.pupils()
    assert names[0] == request.PUPIL and set(names) <= set(menu.drafters())
    assert {"draft_model", "draft_model:scratch", "draft_model:story"} <= set(names)
    assert not [name for name in names if not name.startswith("draft_model")]


def test_the_prompts_of_this_visit_are_kept_in_their_order_and_not_too_many():
    ran = []
    for prompt in ("a", "b", "", None, " ", "a", "x" * (4_001)):
        ran = race.noted(ran, prompt)
    assert ran == ["b", "a"]
    for i in range(20):
        ran = race.noted(ran, str(i))
    assert ran == [str(i) for i in range(12, 20)] and len(ran) == request.MOST_OWN
