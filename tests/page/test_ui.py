"""The page without a browser and without torch: wiring, words, and input that nobody should send."""

from __future__ import annotations

import functools
import itertools
import json
import math
import re
import shutil
import threading
import typing
from dataclasses import replace

import gradio as gr
import nodejs
import pytest
import toyrun

from specdec import events
from specdec.exposure import OWN
from specdec.lanes.worker import WorkerDied
from specdec.methods import CHAINS_ONLY, LOSSY, METHODS, RULES
from specdec.settings import SETTINGS
from specdec.traces import file as trace
from specdec.ui import menu, request, scripts, session, text
from specdec.ui.components.player import pack, player_words
from specdec.ui.tabs import race


@pytest.fixture
def traces(tmp_path, monkeypatch):
    monkeypatch.setattr(session, "TRACES", tmp_path)
    toyrun.trace().save(tmp_path / "story.jsonl")
    return tmp_path


@pytest.fixture
def engine(monkeypatch):
    """The toy run in place of models."""
    monkeypatch.setattr(session, "_engine", toyrun.engine)


# ---- input ----

BAD = [
    ({"prompt": ""}, "empty"),
    ({"prompt": " \n\t "}, "empty"),
    ({"prompt": None}, "text"),
    ({"prompt": 7}, "text"),
    ({"prompt": ["a"]}, "text"),
    ({"prompt": "a" * 4001}, "4,001"),
    ({"prompt": "a" * 10_000_000}, "10,000,000"),
    ({"prompt": "a\ud800b"}, "surrogate"),
    ({"prompt": "a\0b"}, "NUL"),
    ({"drafter": "magic"}, "drafter"),
    ({"drafter": None}, "drafter"),
    ({"drafter": ["none"]}, "drafter"),
    ({"drafter": "adaptive:"}, "drafter"),
    ({"drafter": "adaptive:none"}, "drafter"),
    ({"drafter": "adaptive:adaptive"}, "drafter"),
    ({"drafter": "auto"}, "default takes"),
    ({"drafter": "Draft_Model"}, "drafter"),
    ({"rule": "magic"}, "rule"),
    ({"rule": ""}, "rule"),
    ({"rule": None}, "rule"),
    ({"rule": ["block"]}, "rule"),
    ({"rule": "__class__"}, "rule"),
    ({"family": "magic"}, "target"),
    ({"family": None}, "target"),
    ({"family": ["embedded"]}, "target"),
    ({"family": "../family"}, "target"),
    ({"k": 17}, "16"),
    ({"k": -1}, "K must"),
    ({"k": 2.5}, "whole"),
    ({"k": "4"}, "whole"),
    ({"k": True}, "whole"),
    ({"k": math.inf}, "whole"),
    ({"k": math.nan}, "whole"),
    ({"k": None}, "whole"),
    ({"temperature": 2.1}, "temperature"),
    ({"temperature": -0.1}, "temperature"),
    ({"temperature": math.nan}, "temperature"),
    ({"temperature": "hot"}, "temperature"),
    ({"top_p": 0}, "Top-p"),
    ({"top_p": 1.01}, "Top-p"),
    ({"top_p": math.nan}, "Top-p"),
    ({"top_k": -1}, "Top-k"),
    ({"top_k": 10**9}, "Top-k"),
    ({"max_tokens": 0}, "tokens"),
    ({"max_tokens": 257}, "256"),
    ({"seed": -1}, "seed"),
    ({"seed": 2**31}, "seed"),
    ({"seed": 10**400}, "seed"),
    ({"stop": "a\nb\nc\nd\ne"}, "stop"),
    ({"stop": "x" * 65}, "stop"),
    ({"stop": "x" * 10_000_000}, "stop"),
    ({"stop": {}}, "stop"),
    ({"peer": "yes"}, "true or false"),
    ({"peer": 1}, "true or false"),
]


@pytest.mark.parametrize(("change", "word"), BAD, ids=lambda value: repr(value)[:40])
def test_bad_input_gets_one_sentence_that_names_the_trouble(change, word):
    with pytest.raises(request.InputError) as caught:
        request.check(**{"prompt": "Once upon a time", **change})
    message = str(caught.value)
    assert word in message and message.endswith(".") and len(message) < 200 and "{" not in message
    json.dumps(message).encode()


def test_good_input_passes_as_sliders_send_it():
    asked = request.check("Hi", "prompt_lookup", 4.0, 0, 1, 0, 64.0, 7.0, "a\n\\n\n")
    assert (asked.k, asked.params.max_tokens, asked.params.seed) == (4, 64, 7)
    assert asked.params.stop == ("a", "\n") and asked.rule == "rejection"


@pytest.mark.parametrize("place", ["header", "models", "params", "seed", "stop", "k", "depth"])
def test_settings_that_cannot_be_read_fill_in_nothing(place):
    header, started = map(json.loads, toyrun.trace().dumps().split("\n")[:2])
    told = {"header": [[], started], "models": [header | {"models": []}, started]}
    told["params"] = [header, started | {"params": {}}]
    told["seed"] = [header, started | {"params": {n: v for n, v in started["params"].items() if n != "seed"}}]
    told["stop"] = [header, started | {"params": started["params"] | {"stop": [1]}}]
    told["k"] = [header, {name: value for name, value in started.items() if name != "k"}]
    log = "\n".join(map(json.dumps, told[place])) if place in told else "[" * 100_000 + "\n{}"
    assert race.settings_of(log) == {}


# ---- menus ----


@pytest.fixture
def family(tmp_path, monkeypatch):
    """A folder with every kind of weights, 6 parameters in each."""
    for name in {m.folder for m in METHODS.values()} - {""}:
        (tmp_path / name).mkdir(parents=True)
        tensors = {"w": {"dtype": "BF16", "shape": [2, 3]}, "d2t": {"dtype": "I64", "shape": [99]}, "__metadata__": {}}
        head = json.dumps(tensors).encode()
        (tmp_path / name / "model.safetensors").write_bytes(len(head).to_bytes(8, "little") + head + b"\0" * 8)
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "config.json").write_text('{"exit_layers": [2]}', encoding="utf-8")
    monkeypatch.setattr(menu, "FAMILY", tmp_path)
    return tmp_path


def test_the_menu_offers_what_the_family_holds(family):
    assert menu.drafters() == [name for name, method in METHODS.items() if method.embedded]
    for name in ("adaptive:medusa:tree", "adaptive:draft_model:story"):
        assert request.check("Hi", name).drafter == name
    for name in ("medusa", "draft_model_story"):
        shutil.rmtree(family / name)
    (family / "target" / "config.json").write_text("{", encoding="utf-8")
    left_out = {"medusa", "medusa:tree", "early_exit", "draft_model:story"}
    assert METHODS.keys() - menu.drafters() == left_out | {"quantised"}
    for gone in ("medusa", "draft_model:story", "adaptive:draft_model:story"):
        with pytest.raises(request.InputError, match=r"eagle3 \(:tree\)"):
            request.check("Hi", gone)


def test_another_target_changes_the_drafters_and_keeps_the_choice_if_it_can(family):
    def switched(*chosen):
        told, drafters = race.switch(*chosen)
        assert told["info"].startswith(menu.family_line(chosen[0]))
        assert drafters["info"] == menu.drafter_lines(chosen[2], chosen[0])[drafters["value"]]
        assert [value for _, value in drafters["choices"]] == ["default", *menu.drafters(chosen[0])]
        return drafters["value"]

    assert switched("smollm2", "prompt_lookup", "rejection") == "prompt_lookup"
    assert switched("smollm2", "medusa", "typical") == "default"
    assert switched("embedded", "quantised", "block") == "default"


def test_a_run_has_the_family_that_was_asked_for(family, monkeypatch):
    asked = []
    engine = toyrun.engine()
    monkeypatch.setattr(session, "_engine", lambda name: (asked.append(name), engine)[1])
    list(race.run("Hi"))
    list(race.start("Hi", "draft_model", 3, 0.8, 1, 0, 24, 7, "", "rejection", "embedded:int8"))
    assert asked == ["embedded", "embedded:int8"]


def test_whether_a_drafter_is_lossless_depends_on_the_rule():
    for rule in RULES:
        words = text.strings("page")["settings"]["lossy" if rule in LOSSY else "lossless"]
        assert all(line.endswith(words) for line in menu.drafter_lines(rule).values())
        assert ("lossy" in text.strings("page")["settings"]["rules"][rule]) is (rule in LOSSY)


def test_the_menus_know_the_engines_names():
    from specdec import rules
    from specdec.families import zoo

    assert tuple(rules.RULES) == RULES
    assert {key: rule.name for key, rule in rules.RULES.items()} == menu.RULE_NAMES
    assert {key for key, rule in rules.RULES.items() if not rule.trees} == CHAINS_ONLY
    assert {key for key, rule in rules.RULES.items() if not rule.lossless} == LOSSY
    words, names = text.strings("player"), {rule.name for rule in rules.RULES.values()}
    assert words["rule"].keys() | words["say"]["rejected_by"].keys() == names - {rules.RULES["rejection"].name}
    assert words["card"]["without_coin"].keys() - {"other"} < names
    script = sent("race/")
    assert set(re.findall(r'\b(?:BLOCK|NOISE) = "([^"]+)"', script)) < names
    assert {one for one in menu.drafters() if not METHODS[one].wraps} <= zoo.load().drafters.keys()


def test_a_peer_has_a_lane_where_it_has_such_a_drafter(monkeypatch):
    lines, words = menu.peer_lines(), text.of_drafters("peer_line")
    for drafter in menu.drafters():
        with_lane = request.check("Hi", drafter, peer=True).peer
        assert with_lane is (drafter.partition(":")[0] in ("draft_model", "prompt_lookup"))
        assert (lines[drafter] == words["other"]) is not with_lane
    assert menu.has_peer("draft_model:story") and not menu.has_peer("adaptive:draft_model")
    assert request.check("Hi", peer=True).drafter == "draft_model" and not request.check("Hi").peer

    def engine(*_, peer, **__):
        yield from toyrun.peer_trace().events if peer else toyrun.events()

    monkeypatch.setattr(session, "_engine", lambda *_: (toyrun.Family(), engine))
    live = trace.Trace.loads("".join(race.run("Hi", peer=True)))
    assert live.header.lanes == ("speculative", "transformers", "plain") and live.events == toyrun.peer_trace().events


def test_every_example_prompt_is_good_input():
    for kind, examples in text.prompts().items():
        assert examples
        for prompt in examples:
            assert request.check(prompt).prompt == prompt
            assert text.kind_of(prompt) == kind


# ---- words ----


CHART = {"cycles", "n", "right", "step", "width"}  # of a chart's columns, also called C


def sent(folder):
    """The scripts of a folder of the page."""
    return "".join(text for name, text in scripts.sources().items() if name.startswith(folder))


def test_every_string_the_player_asks_for_exists():
    words = player_words()
    script = sent("race/")
    groups = "figures define say transport charts foot card time lane meta tree peer server finish why"
    for group in groups.split():
        letter = {"figures": "U", "say": "Y", "card": "C", "tree": "T", "server": "V"}.get(group)
        names = set(re.findall(rf"\bW\.{group}\.(\w+)", script))
        assert names <= words[group].keys(), group
        if letter in ("U", "C", "T", "V"):
            assert set(re.findall(rf"\b{letter}\.(\w+)", script)) - CHART <= words[group].keys()
    assert words["define"].keys() >= {"speedup", "alpha", "tau", "ttft", "tpot", "dar", "c", "v"}
    said = set(re.findall(r"\bY\.(\w+)", script))
    assert said <= words["say"].keys() | words["foot"].keys()


def test_every_string_that_the_theory_page_asks_for_exists():
    words, script = text.strings("theory"), sent("theory/")
    asked = set(re.findall(r"\bW\.([a-z_]\w*(?:\.[a-z_]\w*)?)", script))
    assert len(asked) > 40
    for name in asked:
        group, _, key = name.partition(".")
        assert group in words and (not key or key in words[group]), name
    for letter, group in {"M": "measured", "R": "recursion", "B": "wall", "V": "many"}.items():
        said = set(re.findall(rf"\b{letter}\.([a-z]\w*)", script))
        assert said <= words[group].keys() | words["memory"].keys() | words["break_even"].keys(), letter
    markup = (text.PAGE / "theory/theory.html").read_text(encoding="utf-8")
    assert words["labels"].keys() <= set(re.findall(r'data-part="(\w+)"', markup))


def test_every_string_that_the_step_page_asks_for_exists():
    words = text.strings("step")
    script = sent("step/").replace(scripts.sources()["step/game.js"], "")  # it has words of its own
    asked = set(re.findall(r"\bW\.([a-z_]\w*(?:\.[a-z_]\w*)?)", script))
    groups = {"Y": ("say", "judge", "own_says"), "P": ("position",), "A": ("what_if",), "O": ("own",), "G": ("grid",)}
    groups |= {"V": ("served",), "N": ("notation.plain", "notation.lev", "notation.chen")}
    assert len(asked) > 30
    for name in asked:
        group, _, key = name.partition(".")
        assert group in words and (not key or key in words[group]), name

    def group(name):
        return functools.reduce(lambda node, key: node[key], name.split("."), words)

    for letter, names in groups.items():
        said = set(re.findall(rf"\b{letter}\.([a-z]\w*)", script))
        assert said, letter
        if letter == "N":
            assert all(said <= group(name).keys() for name in names)
        else:
            assert said <= {key for name in names for key in group(name)}, letter
    notations = list(map(group, groups["N"]))
    assert all(one.keys() == notations[0].keys() for one in notations)
    from specdec import rules

    page = {*re.findall(r'"(.*?)"', re.search(r"const REJECTION = [^;]*", script)[0])} - {"first choice"}
    assert page == {rule.name for rule in rules.RULES.values()}
    assert words["what_if"]["rules"].keys() == words["what_if"]["names"].keys() == page | {"first choice"}
    typical = rules.TypicalAcceptance
    assert f"EPSILON = {typical.epsilon}," in script and f"DELTA = {typical.delta};" in script


def test_every_reason_and_kind_has_words():
    words = text.strings("page")
    settings = words["settings"]
    assert METHODS.keys() == text.of_drafters("name").keys() == text.of_drafters("line").keys()
    assert set(RULES) == settings["rules"].keys() == settings["rule_lines"].keys()
    peered = {m.name for m in METHODS.values() if m.peer and not m.variant_of}
    assert {*peered, "other"} == text.of_drafters("peer_line").keys() < player_words()["peer"].keys()
    assert {*METHODS, "other"} == text.of_drafters("lane").keys() == player_words()["say"]["start"].keys()
    assert text.prompts().keys() == words["settings"]["examples"].keys()
    assert text.paragraph("reading").strip()
    assert set(typing.get_args(events.FinishReason)) - {"length", "failed"} == text.strings("player")["reason"].keys()


# ---- recorded runs ----


def test_a_press_plays_the_chosen_drafters_run_or_says_whose_it_is(traces):
    path = trace.recording(traces, "story", "eagle3:tree")
    path.parent.mkdir()
    toyrun.tree_trace().save(path)
    log, line = race.played([], "story", "eagle3:tree")
    assert log == pack(toyrun.tree_trace().dumps()) and line["value"] == ""
    log, line = race.played([], "story", "medusa")
    assert log == pack(toyrun.trace().dumps()) and "Medusa" in line["value"]
    assert race.played([], "story", "draft_model")[1]["value"] == ""
    assert race.played([], "code", "medusa")[1]["wrong"]


def test_an_example_without_a_recording_leaves_the_stage_as_it_is_and_says_so(traces, caplog):
    names, other = [*SETTINGS], text.prompts()["surprising"][0]
    screen, line, *_ = race.show(names, "surprising", "Hi", "draft_model")
    assert screen == gr.skip() and line["value"] == text.strings("page")["notice"]["not_recorded"]
    assert race.show(names, "story", other, "draft_model")[0] == pack(toyrun.trace().dumps())
    assert session.recorded("story", "magic") == "" and not caplog.records  # a run that nobody recorded is no fault


def test_the_first_screen_takes_any_run_that_can_be_read(traces):
    (traces / "story.jsonl").write_text("{}", encoding="utf-8")
    assert session.first_recorded() == ""
    toyrun.trace().save(traces / "code.jsonl")
    assert session.first_recorded()


def test_packing_keeps_the_run_and_holds_no_markup(traces):
    log = session.recorded("story")
    assert "<script" in log and "<" not in pack(log)
    assert trace.Trace.loads(pack(log)) == trace.Trace.loads(log)


# ---- live runs ----


def test_a_live_run_streams_one_growing_text(engine):
    updates = list(race.start("Once upon a time", "draft_model", 3, 0.8, 1, 0, 24, 7, ""))
    logs = [update[0] for update in updates if isinstance(update[0], str)]
    assert logs and all(later.startswith(earlier) for earlier, later in itertools.pairwise(logs))
    live = trace.Trace.loads(logs[-1])
    assert live.header.source == "live" and list(live.events) == toyrun.events()


def test_the_recording_stays_until_the_live_run_has_something_to_show(engine, monkeypatch):
    news = [session.News("notice", "Loading."), *[session.News("lines", "")] * 3, session.News("lines", "{}\n")]
    monkeypatch.setattr(session, "run", lambda _: iter(news))
    monkeypatch.setattr(race, "UPDATES_PER_SECOND", 1e9)
    screens = [update[0] for update in race.start("Once upon a time", "draft_model", 3, 0.8, 1, 0, 24, 7, "")]
    assert "" not in screens and screens[-1] == "{}\n"


def test_a_refused_prompt_touches_nothing_but_the_notice(engine):
    (update,) = race.start("", "draft_model", 3, 0.8, 1, 0, 24, 7, "")
    assert update[1]["wrong"] is True and update[1]["value"]
    assert all("value" not in other for other in (update[0], update[2], update[3]))


def test_a_prompt_that_the_engine_refuses_never_claims_to_be_live(monkeypatch):
    def refusing(*_, **__):
        raise ValueError("The prompt has 3,001 tokens. Shorten it.")
        yield

    monkeypatch.setattr(session, "_engine", lambda *_: (toyrun.Family(), refusing))
    assert not [news for news in session.run(request.check("a")) if news.kind == "lines" and news.text]
    updates = list(race.start("a", "draft_model", 3, 0.8, 1, 0, 24, 7, ""))
    assert not any(isinstance(update[0], str) and update[0] for update in updates)
    assert updates[-1][1]["wrong"] is True and "3,001" in updates[-1][1]["value"]


def test_a_silent_engine_holds_up_no_step_and_its_end_is_one_sentence(monkeypatch):
    def silent(*_, **__):
        yield None
        yield from toyrun.events()[:3]
        yield None
        raise WorkerDied("the engine's process ended with -9")

    monkeypatch.setattr(session, "_engine", lambda *_: (toyrun.Family(), silent))
    *told, last = session.run(request.check("Hi"))
    assert last == session.News("error", text.strings("page")["notice"]["died"])
    assert sum(bool(news.text) for news in told if news.kind == "lines") == 4
    assert not session._machine.locked()


def test_a_visitor_can_leave_while_models_are_loaded(monkeypatch):
    loaded, asked = threading.Event(), threading.Event()

    def slow(*_):
        asked.set()
        assert loaded.wait(60)
        return toyrun.Family(), lambda *_, **__: iter(())

    monkeypatch.setattr(session, "LOOK", 0.01)
    monkeypatch.setattr(session, "_engine", slow)
    running = session.run(request.check("Hi"))
    assert [next(running).kind for _ in range(3)] == ["notice", "lines", "lines"] and asked.is_set()
    running.close()
    assert not session._machine.locked()
    loaded.set()


def test_a_run_past_its_deadline_stops_and_says_so(engine, monkeypatch):
    monkeypatch.setattr(session, "limits", lambda: replace(OWN, seconds=-1.0))
    last = list(session.run(request.check("Hi")))[-1]
    assert last.kind == "cut" and "seconds" in last.text
    assert json.loads(list(race.run("Hi"))[-1]) == {"notice": last.text}
    assert list(race.start("Hi"))[-1][1]["value"] == last.text


@pytest.mark.parametrize("error", [RuntimeError("secret /path"), ValueError("Too long; shorten it.")])
def test_an_engine_that_breaks_is_a_sentence_not_a_traceback(monkeypatch, error):
    def broken(*_, **__):
        raise error
        yield

    monkeypatch.setattr(session, "_engine", lambda *_: (toyrun.Family(), broken))
    last = list(session.run(request.check("Hi")))[-1]
    told = str(error) if isinstance(error, ValueError) else text.strings("page")["notice"]["broken"]
    assert (last.kind, last.text) == ("error", told)
    assert not session._machine.locked()


def test_the_public_endpoint_streams_lines_and_explains_bad_input(engine):
    assert trace.Trace.loads("".join(race.run("Hi"))).header.source == "live"
    (line,) = race.run("Hi", k=99)
    assert "K must" in json.loads(line)["error"]


# ---- the page ----


def test_the_page_is_built_and_only_the_documented_endpoints_are_public(traces):
    from specdec.ui.build import build

    demo = build()
    config = demo.get_config_file()
    public = {d["api_name"] for d in config["dependencies"] if d["api_visibility"] == "public"}
    assert public == {"run", "run_zh", "theory", "compare", "explain"}
    player = next(c for c in config["components"] if c["props"].get("elem_id") == "player")
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
    assert {path.stem: path.read_text(encoding="utf-8") for path in folder.iterdir()} == {
        name: run.dumps() for name, run in runs.items()
    }
