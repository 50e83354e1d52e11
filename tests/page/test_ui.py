"""The page without a browser: its wiring, its words, and its answers to bad input."""

from __future__ import annotations

import itertools
import json
import pickle
import re
import shutil
import typing
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import save_file

from specdec import events, rules
from specdec.exposure import OWN
from specdec.families import zoo
from specdec.loop import NO_ROOM
from specdec.messages import Refused, Step
from specdec.methods import ADAPTIVE, Choice, METHODS, RULE_FACTS
from specdec.process import Deadline, ProcessDied
from specdec.traces import file as trace
from specdec.traces.file import escaped
from specdec.ui import api, browser, menu, recorded, request, text
from specdec.ui.build import build
from specdec.ui.components import examples, form
from specdec.ui.components.drawn import player_words
from specdec.ui.session import Answer, RunNews, session
from specdec.ui.tabs import race
from tests import nodejs, toyrun


@pytest.fixture
def traces(tmp_path, monkeypatch):
    monkeypatch.setattr(recorded, "TRACES", tmp_path)
    toyrun.trace().save(tmp_path / "story.jsonl")
    return tmp_path


@pytest.fixture
def engine(toy_engine):
    toy_engine()


def test_good_input_passes_as_sliders_send_it():
    asked = request.check("Hi", "prompt_lookup", 4.0, 0, 1, 0, 64.0, 7.0, "a\n\\n\n")
    assert (asked.k, asked.params.max_tokens, asked.params.seed) == (4, 64, 7)
    assert asked.params.stop == ("a", "\n") and asked.rule == "rejection"


def test_the_settings_of_a_run_are_read_and_a_head_that_is_cut_fills_in_nothing():
    log = recorded.recorded("story")
    assert recorded.settings_of(log)["drafter"] == "draft_model"
    cut = "\n".join(log.split("\n", 2)[:2])[:-9]  # as that of a very long prompt is
    assert recorded.settings_of(cut) == recorded.settings_of("") == {}
    head, start, _ = log.split("\n", 2)
    started = json.loads(start)
    stops = ("\n\n", ".", r"\n", "\\\n")
    started["params"]["stop"] = stops
    assert request.check_stops(recorded.settings_of(f"{head}\n{json.dumps(started)}\n")["stop"]) == stops
    assert request.check_stops(r"\d\\n") == (r"\d\n",)  # other letters keep their backslash


@pytest.fixture
def family(tmp_path, monkeypatch):
    for name in {m.folder for m in METHODS.values()} - {""}:
        (tmp_path / name).mkdir(parents=True)
        tensors = {"w": torch.zeros(2, 3), "d2t": torch.zeros(9, dtype=torch.int64)}
        save_file(tensors, tmp_path / name / "model.safetensors")
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "config.json").write_text('{"exit_layers": [2]}', encoding="utf-8")
    monkeypatch.setattr(menu, "FAMILY", tmp_path)
    return tmp_path


def test_the_menu_offers_what_the_family_holds(family):
    assert menu.drafters() == [name for name, method in METHODS.items() if method.embedded]
    assert menu.parameters(family / "medusa") == 6
    for name in ("adaptive:medusa:tree", "adaptive:draft_model:story"):
        assert request.check("Hi", name).drafter == name
    for name in ("medusa", "draft_model_story"):
        shutil.rmtree(family / name)
    (family / "target" / "config.json").unlink()
    left_out = {"medusa", "medusa:tree", "early_exit", "draft_model:story"}
    assert METHODS.keys() - menu.drafters() == left_out | {"quantised"}
    for gone in ("medusa", "draft_model:story", "adaptive:draft_model:story"):
        with pytest.raises(Refused, match="eagle3:tree"):
            request.check("Hi", gone)


def test_another_target_changes_the_drafters_and_keeps_the_choice_if_it_can(family):
    def switched(*chosen):
        told, drafters = form.switch(*chosen)
        assert told["info"].startswith(menu.target_sentence(chosen[0]))
        assert drafters["info"] == menu.drafter_sentences(chosen[2], chosen[0])[drafters["value"]]
        assert [value for _, value in drafters["choices"]] == ["default", *menu.drafters(chosen[0])]
        return drafters["value"]

    assert switched("smollm2", "prompt_lookup", "rejection") == "prompt_lookup"
    assert switched("smollm2", "medusa", "typical") == "default"
    assert switched("embedded", "quantised", "block") == "default"


def test_whether_a_drafter_is_lossless_depends_on_the_rule():
    for rule in RULE_FACTS:
        words = text.strings("page")["settings"]["lossless" if RULE_FACTS[rule].lossless else "lossy"]
        assert all(line.endswith(words) for line in menu.drafter_sentences(rule).values())
        assert ("lossy" in text.strings("page")["settings"]["rules"][rule]) is not RULE_FACTS[rule].lossless


def test_the_menus_know_the_engines_names():
    assert rules.RULES.keys() == RULE_FACTS.keys()
    assert {key for key, rule in RULE_FACTS.items() if not rule.lossless} == {"typical"}
    words, names = text.strings("player"), {rule.name for rule in rules.RULES.values()}
    assert words["rule"].keys() | words["say"]["rejected_by"].keys() == names - {rules.RULES["rejection"].name}
    assert words["card"]["without_coin"].keys() - {"other"} < names
    script = sent("race/")
    assert set(re.findall(r'\b(?:BLOCK|NOISE) = "([^"]+)"', script)) < names
    assert {one for one in menu.drafters() if one != ADAPTIVE} <= zoo.load().drafters.keys()


def test_a_peer_has_a_lane_where_it_has_such_a_drafter(toy_engine):
    lines, words = menu.peer_sentences(), text.of_drafters("peer_line")
    for drafter in menu.drafters():
        with_lane = request.check("Hi", drafter, peer=True).peer
        assert with_lane is (drafter.partition(":")[0] in ("draft_model", "prompt_lookup"))
        assert (lines[drafter] == words["other"]) is not with_lane
    assert request.check("Hi", peer=True).peer and not request.check("Hi").peer

    def engine(request):
        yield from toyrun.peer_trace().events if request.peer else toyrun.events()

    toy_engine(engine)
    live = trace.Trace.loads("".join(api.run("Hi", peer=True)))
    assert live.header.lanes == ("speculative", "transformers", "plain")
    assert live.events == toyrun.peer_trace().events


GROUP = re.compile(r"\b(labels|says|notation|\w+Texts) = texts\.(\w+)(?=[,;])")  # a script's name of a group of words


def sent(folder):
    return "".join(text for name, text in browser.sources().items() if name.startswith(folder))


@pytest.mark.parametrize("tab", ["race", "theory", "step"])
def test_every_string_that_a_script_asks_for_exists(tab):
    words, asked = player_words() if tab == "race" else text.strings(tab), 0
    for script in (source for name, source in browser.sources().items() if name.startswith(f"{tab}/")):
        for group, key in re.findall(r"(?<![.\w])texts\.([a-z_]\w*)(?:\.([a-z_]\w*))?", script):
            assert group in words, group
            assert not key or not isinstance(words[group], dict) or key in words[group], (group, key)
            asked += 1
        groups = GROUP.findall(script)
        for name in {name for name, _ in groups}:
            known = {key for other, group in groups if other == name for key in words[group]}
            assert set(re.findall(rf"\b{name}\.([a-z_]\w*)", script)) <= known, (name, script[:80])
    assert asked > 20


def test_notations_and_rules_of_the_scripts_are_those_of_the_words():
    step, script = text.strings("step"), sent("step/")
    plain, *others = step["notation"].values()
    assert all(one.keys() == plain.keys() for one in others)
    assert set(re.findall(r"\bnotation\.([a-z]\w*)", script)) <= plain.keys()
    names = re.findall(r"const RULES = (\[[^;]*\]);", script)[0]
    page = {
        re.search(rf'\b{name} = "(.*?)"', sent("step/") + sent("race/"))[1] for name in re.findall(r"[A-Z_]+", names)
    }
    page -= {"first choice"}
    assert page == {rule.name for rule in rules.RULES.values()}
    assert step["what_if"]["rules"].keys() == step["what_if"]["names"].keys() == page | {"first choice"}
    typical = rules.TypicalAcceptance
    assert f"EPSILON = {typical.epsilon}," in script and f"DELTA = {typical.delta};" in script


def test_every_reason_and_kind_has_words():
    words = text.strings("page")
    settings = words["settings"]
    assert METHODS.keys() == text.of_drafters("name").keys() == text.of_drafters("line").keys()
    assert set(RULE_FACTS) == settings["rules"].keys() == settings["rule_lines"].keys()
    peered = {m.name for m in METHODS.values() if m.peer and not m.variant_of}
    assert {*peered, "other"} == text.of_drafters("peer_line").keys() < player_words()["peer"].keys()
    assert {*METHODS, "other"} == text.of_drafters("lane").keys() == player_words()["say"]["start"].keys()
    assert text.prompts().keys() == words["settings"]["examples"].keys()
    assert text.paragraph("reading").strip()
    assert set(typing.get_args(events.FinishReason)) - {"failed"} == text.strings("player")["reason"].keys()


def test_a_press_plays_the_chosen_drafters_run_or_says_whose_it_is(traces):
    path = trace.recording(traces, "story", "eagle3:tree")
    path.parent.mkdir()
    toyrun.tree_trace().save(path)
    screen, line, *_ = examples.played("story", "eagle3:tree")
    assert screen["value"] == escaped(toyrun.tree_trace().dumps()) and line["value"] == ""
    screen, line, *_ = examples.played("story", "medusa")
    assert screen["value"] == escaped(toyrun.trace().dumps()) and "Medusa" in line["value"]
    assert examples.played("story", "draft_model")[1]["value"] == ""
    assert examples.played("code", "medusa")[1]["wrong"]


def test_an_example_without_a_recording_stops_the_stage_and_says_so(traces, caplog):
    other = text.prompts()["surprising"][0]
    screen, line, *_ = examples.show("surprising", "Hi", "draft_model")
    assert screen["preparing"] == "unrecorded" and "value" not in screen
    assert line["value"] == text.strings("page")["notice"]["not_recorded"]
    screen = examples.show("story", other, "draft_model")[0]
    assert screen["value"] == escaped(toyrun.trace().dumps()) and screen["preparing"] is False
    assert recorded.recorded("story", "magic") == "" and not caplog.records


def test_a_live_run_streams_one_growing_text(engine):
    updates = list(race.begin("own", "Once upon a time", "draft_model", 3, 0.8, 1, 0, 24, 7, ""))
    logs = [update[0]["value"] for update in updates if update[0].get("value")]
    assert logs and all(later.startswith(earlier) for earlier, later in itertools.pairwise(logs))
    live = trace.Trace.loads(logs[-1])
    assert live.header.source == "live" and list(live.events) == toyrun.events()


def test_the_recording_stays_until_the_live_run_has_something_to_show(engine, monkeypatch):
    items = [Answer("prepare", "Loading."), *[Answer("lines", "")] * 3, Answer("lines", "{}\n")]
    monkeypatch.setattr(session, "run", lambda _: (item for item in items))
    screens = [update[0] for update in race.begin("own", "Once upon a time", "draft_model", 3, 0.8, 1, 0, 24, 7, "")]
    assert [screen["preparing"] for screen in screens if "preparing" in screen] == [True, True, False]
    assert [screen["value"] for screen in screens if "value" in screen] == ["{}\n"]


def test_a_refused_prompt_touches_nothing_but_the_notice(engine):
    (update,) = race.begin("own", "", "draft_model", 3, 0.8, 1, 0, 24, 7, "")
    assert update[1]["wrong"] is True and update[1]["value"]
    assert all("value" not in other for other in (update[0], update[2], update[3]))


def test_a_silent_engine_holds_up_no_step_and_its_end_is_one_sentence(toy_engine):
    def silent(*_, **__):
        yield None
        yield from toyrun.events()[:3]
        yield None
        raise ProcessDied("the engine's process ended with -9")

    toy_engine(silent)
    *told, last = session.run(request.check("Hi"))
    assert last == Answer("error", text.strings("page")["notice"]["died"])
    assert len(toyrun.written(told)) == 3
    assert not session.turns.busy()


def test_a_visitor_can_leave_while_models_are_loaded(monkeypatch):
    monkeypatch.setattr(session, "process", SimpleNamespace(call=lambda *_: (None for _ in itertools.count())))
    running = session.run(request.check("Hi"))
    assert [next(running) for _ in range(3)] == [Answer("lines", "")] * 3
    running.close()
    assert not session.turns.busy()


def test_a_run_past_its_deadline_stops_and_says_so(engine, monkeypatch):
    monkeypatch.setattr("specdec.ui.session.limits", lambda: replace(OWN, seconds=-1.0))
    last = list(session.run(request.check("Hi")))[-1]
    assert last.name == "cut" and "seconds" in last.text and "written its" in last.text
    assert json.loads(list(api.run("Hi"))[-1]) == {"notice": last.text}
    assert list(race.begin("own", "Hi"))[-1][1]["value"] == last.text


def test_a_run_whose_last_lines_are_late_is_done(toy_engine, monkeypatch):
    monkeypatch.setattr("specdec.ui.session.limits", lambda: replace(OWN, seconds=-1.0))
    toy_engine(lambda request: iter(toyrun.events()[:1]))
    assert [item.name for item in session.run(request.check("Hi"))][-2:] == ["lines", "done"]


def test_a_k_that_nothing_uses_is_not_announced():
    (answer,) = RunNews(request.check("Hi", "none", 0)).answers(Choice("none", 0), None)
    assert answer == Answer("running", "Running.")


def test_a_prompt_that_is_read_says_how_far_and_a_cut_run_what_was_not(monkeypatch):
    def reading(*_, **__):
        yield toyrun.events()[0]
        yield Step("read", 128, 700, text="speculative")
        yield from toyrun.events()[1:4]
        yield Step("read", 256, 700, text="plain")
        raise Deadline(60.0)

    class Process(toyrun.Engine):
        def call(self, name, *arguments):
            lines = super().call(name, *arguments) if name == "run" else iter(())
            yield next(lines)
            for event in reading():
                yield event if isinstance(event, Step) else next(lines)

    monkeypatch.setattr(session, "process", Process())
    steps = [item for item in session.run(request.check("Hi")) if item.name != "lines"]
    assert [step.name for step in steps[-5:]] == ["running", "read", "running", "read", "cut"]
    assert "Reading the prompt, speculative decoding: 128 of 700 tokens." in steps[-4].text
    assert "Reading" not in steps[-3].text and "plain decoding had read 256 of 700 tokens" in steps[-1].text


@pytest.mark.parametrize(
    "error", [RuntimeError("secret /path"), Refused("Too long; shorten it."), ValueError("secret")], ids=repr
)
def test_an_engine_that_breaks_is_a_sentence_not_a_traceback(toy_engine, error):
    def broken(*_, **__):
        raise error
        yield

    toy_engine(broken)
    *lines, last = session.run(request.check("Hi"))
    assert not toyrun.written(lines)  # it never claims to be live
    told = str(error) if type(error) is Refused else text.strings("page")["notice"]["broken"]
    assert (last.name, last.text) == ("error", told)
    assert not session.turns.busy()


def test_a_run_without_room_says_so_in_the_language_of_the_page(toy_engine):
    failed = pickle.loads(pickle.dumps(events.Failed("speculative", 0, "target", NO_ROOM, True, 0.0)))
    toy_engine(lambda _: iter([failed]))
    with text.speaking("zh"):
        lines = "".join(toyrun.written(session.run(request.check("Hi")))).splitlines()
    assert json.loads(lines[-1])["reason"].startswith("GPU 的显存不够")


def test_the_page_is_built_with_its_run_and_no_value_in_its_template(traces):
    player = next(c for c in build().get_config_file()["components"] if c["props"].get("elem_id") == "player")
    assert trace.Trace.loads(player["props"]["value"]) == toyrun.trace()
    template = player["props"]["html_template"]
    assert "${" not in template and "{{" not in template  # values in a template would run as code
    assert "innerHTML" not in player["props"]["js_on_load"]


def test_nothing_is_fetched_from_outside():
    for path in text.PAGE.rglob("*.*"):
        source = path.read_text(encoding="utf-8", errors="replace").replace("http://www.w3.org/2000/svg", "")
        links = {"guide": r"https?:", "class": r"https?:", "methods": r"link\(\"https?:"}.get(path.parent.name, "$")
        assert not re.search(r"https?://|@import|url\(['\"]?//", re.sub(links, "", source)), path


def test_the_runs_of_the_javascript_tests_are_the_toy_runs():
    runs = {
        "toy": toyrun.trace(),
        "tree": toyrun.tree_trace(),
        "peer": toyrun.peer_trace(),
        "served": toyrun.server_trace(beside=True),
        "sums": toyrun.server_trace("totals", source="live"),
    }
    folder = nodejs.TESTS / "runs"
    assert {path.stem: path.read_text("utf-8") for path in folder.iterdir()} == {
        name: run.dumps() for name, run in runs.items()
    }
