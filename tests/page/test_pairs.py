"""Pairs from the Hub on the page: they are downloaded, stopped, run and refused. A local server replaces the Hub."""

from __future__ import annotations

import contextlib
import json

import pytest

from specdec import exposure
from specdec.families import hub
from specdec.figures import machine
from specdec.messages import Refused, TranslatableText
from specdec.methods import ROUNDED
from specdec.process import EngineProcess
from specdec.settings import SETTINGS
from specdec.ui import api, menu, recorded
from specdec.ui.components import examples, form
from specdec.ui.request import check
from specdec.ui.session import Answer, session
from specdec.ui.text import questions
from tests import toyrun
from tests.families import hubserver, toypairs

PAIR = "some/target + some/draft"


@pytest.fixture(autouse=True)
def host(monkeypatch):
    monkeypatch.setattr(machine, "memory_of", lambda device: 16 * 10**9)


@pytest.fixture
def server(monkeypatch, tmp_path):
    with hubserver.hub(monkeypatch, tmp_path / "cache") as server:
        target, draft = toypairs.pair_into(tmp_path)
        server.repositories |= {"some/target": target, "some/draft": draft}
        process = EngineProcess()
        monkeypatch.setattr(session, "process", process)
        yield server
        process.close()


def told(k=3, **settings):
    return list(session.run(check("Once upon", k=k, target=PAIR, max_tokens=8, **settings)))


@pytest.mark.long
def test_a_pair_is_downloaded_loaded_and_run(server):
    news = told()
    names = [item.name for item in news if item != Answer("lines", "")]
    assert names[-1] == "done" and "error" not in names
    assert names.index("fetch") < names.index("lines")
    header = json.loads(toyrun.written(news)[0].splitlines()[0])
    assert header["models"]["family"] == PAIR and header["models"]["chat"][0] == "<|im_start|>user\n"
    server.close()  # what is there needs no Hub
    again = told(drafter="prompt_lookup")
    assert again[-1].name == "done" and "fetch" not in [item.name for item in again]
    refused = told(drafter="medusa")
    assert refused[-1].name == "error" and "draft_model" in refused[-1].text
    assert told()[-1].name == "done"
    assert menu.drafters("some/target") == ["suffix", "prompt_lookup", "quantised", "none"]


def test_a_stopped_download_leaves_the_machine_to_others(server, monkeypatch):
    monkeypatch.setattr(hub, "REPORT_EVERY_S", 0.05)
    server.held = 0
    with contextlib.closing(session.run(check("Hi", target=PAIR))) as news:
        assert next(item for item in news if item.name == "fetch" and "some/target" in item.text)
        assert not session.turns.busy()
        with contextlib.closing(session.run(check("Hi", target=PAIR))) as others:  # waits, and is told so
            assert next(item for item in others if item.name == "fetch")
    assert not session._downloading.locked()


@pytest.mark.long
def test_what_cannot_be_had_is_one_sentence(server):
    server.repositories["gated/draft"] = server.repositories["some/draft"]
    server.gated.add("gated/draft")
    news = list(session.run(check("Hi", target="some/target + gated/draft")))
    assert news[-1].name == "error" and "gated/draft is not on this machine, and could not be fetched" in news[-1].text


def test_a_pair_of_ones_own_is_for_hosts_of_ones_own(monkeypatch):
    assert check("Hi", target="a/b + c/d").target == "a/b + c/d"
    assert check("Hi", "prompt_lookup", target="a/b").target == "a/b"
    for wrong in ("a/b +", "/etc + a/b", "a/b + ../c", "a/b + " + "c" * 400, "a/b + c/d\0"):
        with pytest.raises(Refused, match="TARGET \\+ DRAFT"):
            check("Hi", target=wrong)
    monkeypatch.setattr(exposure, "host", exposure.Host("public", "a/b + c/d"))
    monkeypatch.setattr(hub, "is_here", lambda name: name == "smollm2")
    assert check("Hi", target="a/b + c/d").target == "a/b + c/d"
    assert menu.targets() == ["embedded", *ROUNDED, "smollm2", "a/b + c/d"]
    monkeypatch.setattr(hub, "is_here", lambda name: False)  # strangers have it where the owner fetched it
    assert menu.targets() == ["embedded", *ROUNDED, "a/b + c/d"]
    with pytest.raises(Refused, match="must be one of: embedded, embedded:bfloat16, embedded:int8, a/b"):
        check("Hi", target="a/b")


def test_a_typed_pair_brings_drafters_or_a_sentence():
    line, drafters = form.switch("a/b + c/d", "draft_model", "rejection")
    assert "A pair of your own" in line["info"]
    assert [name for _, name in drafters["choices"]][:3] == ["default", "draft_model", "adaptive"]
    line, drafters = form.switch("a/b + ", "draft_model", "rejection")
    assert "TARGET + DRAFT" in line["info"] and "choices" not in drafters


def test_without_the_star_the_built_in_model_runs_and_that_is_said(monkeypatch, toy_engine):
    asked = []

    def race(request):
        asked.append(request.drafter)
        return (event for event in toyrun.events())

    def away(names, device):
        raise Refused(TranslatableText("There is no network."))
        yield

    monkeypatch.setattr(hub, "is_here", lambda name: False)
    monkeypatch.setattr(hub, "fetch", away)
    engine = toy_engine(race)
    news = list(session.run(check("Why is the sky blue?", "suffix", target="smollm2")))
    assert engine.targets == ["embedded"] and asked == ["draft_model"]
    assert news[-1].name == "done"
    assert news[-1].text.startswith("There is no network. So the built-in model runs this time.")
    *_, refused = filter(None, api.run("Why is the sky blue?", target="smollm2"))  # a program has what it asks for
    assert json.loads(refused) == {"error": "There is no network."} and len(asked) == 1


def test_questions_are_shown_beside_a_model_that_answers(tmp_path):
    chat, base = (toypairs.model_into(tmp_path / name, 1, template) for name, template in (
        ("chat", toypairs.TEMPLATE), ("base", None)))  # fmt: skip
    assert menu.answers("smollm2") and menu.answers(str(chat)) and menu.answers("not/here")
    assert not any(map(menu.answers, ("embedded", "embedded:int8", str(base), "no pair")))
    assert [one["visible"] for one in examples.fitting(str(chat))] == [False, True]
    assert [one["visible"] for one in examples.fitting(None)] == [True, False]


def test_an_example_question_is_put_to_the_model_of_the_page_or_to_smollm2(tmp_path, monkeypatch):
    chat = str(toypairs.model_into(tmp_path / "chat", 1))
    monkeypatch.setattr(recorded, "recorded_names", list)
    for family, wanted in ((chat, {}), ("smollm2", {}), ("embedded", {"target": "smollm2", "drafter": "default"})):
        _, _, *updates = examples.show("qa", "Hi", "suffix", family)
        found = {n: one["value"] for n, one in zip(SETTINGS, updates, strict=True) if "value" in one}
        assert found == {"prompt": questions()["qa"]["page"][0]} | wanted, family


def test_a_page_without_smollm2_begins_with_a_recording_of_its_own_model(monkeypatch):
    assert recorded.recorded_names()[0] == recorded.FIRST[0] and recorded.first_target() == "smollm2"
    monkeypatch.setattr(menu, "targets", lambda: ["embedded"])
    first = recorded.recorded_names()[0]
    assert recorded.recorded_target(first) == recorded.first_target() == "embedded"
    assert recorded.recorded_target(recorded.sampled_name()) == "embedded"
    assert recorded.settings_of(recorded.recorded(first))["target"] == "embedded"


def test_the_questions_are_enough_for_page_and_bench():
    asked = [prompt for kind in questions().values() for half in kind.values() for prompt in half]
    assert len(asked) == len(set(asked))
    assert all(len(kind["page"]) == len(kind["bench"]) >= 4 for kind in questions().values())
    assert list(questions()) == ["writing", "qa", "summarization", "coding", "editing", "roleplay"]
