"""Saving, opening and sharing runs: links, malicious files, and a single file that plays a run."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from specdec.traces.file import MAX_BYTES, Trace
from specdec.ui import recorded
from specdec.ui.components import traces
from specdec.ui.components.traces import standalone
from specdec.ui.request import from_link
from specdec.ui.text import ASSETS
from tests import nodejs, toyrun

STORY, FACTS = (ASSETS / "traces" / f"{name}.jsonl" for name in ("story", "facts"))


def tampered() -> tuple[str, int]:
    lines = [json.loads(line) for line in STORY.read_text(encoding="utf-8").splitlines()]
    cycle, x = next((e["cycle"], x) for e in lines for x in e.get("positions", ()) if x["status"] == "rejected")
    x["u"] = 0.5 * x["p"] / x["q"]
    return "".join(json.dumps(line) + "\n" for line in lines), cycle


def test_of_a_servers_run_no_setting_is_taken_that_the_server_decided():
    settings = recorded.settings_of(toyrun.server_trace().dumps())
    assert settings["prompt"] == toyrun.header().prompt and settings["temperature"] == 0.8
    assert not {"target", "drafter", "k", "rule", "peer"} & settings.keys()


def test_a_link_fills_in_what_is_good_and_says_what_is_bad():
    good, trouble = from_link(
        {"k": "5", "temperature": "0.5", "drafter": "prompt_lookup", "peer": "1", "__theme": "dark"}
    )
    assert good == {"k": 5, "temperature": 0.5, "drafter": "prompt_lookup", "peer": True} and trouble == ""
    good, trouble = from_link({"k": "99", "seed": "7", "prompt": "", "rule": "block"})
    assert good == {"seed": 7, "rule": "block"}
    assert "prompt is empty" in trouble and "K must be a whole number" in trouble  # each is told


def test_a_links_drafter_is_one_of_the_target_that_the_page_or_the_link_names():
    drafter = {"drafter": "quantised"}
    assert from_link(drafter, "smollm2") == (drafter, "")
    assert from_link(drafter)[0] == {}
    assert from_link({"target": "smollm2"} | drafter)[1] == ""


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("k", "four"),
        ("k", "4.5"),
        ("k", "nan"),
        ("k", "9" * 5000),
        ("top_p", "0"),
        ("drafter", "<script>"),
        ("peer", "maybe"),
        ("prompt", "a" * 4001),
        ("stop", "a\nb\nc\nd\ne"),
    ],
)
def test_a_bad_setting_of_a_link_gets_one_sentence(name, value):
    good, trouble = from_link({name: value})
    assert good == {} and trouble.startswith("The link asks for values that are not allowed") and trouble.endswith(".")
    assert "<script>" not in trouble and len(trouble) < 400


def test_links_and_frames_in_the_browsers_own_hands(tmp_path):
    toyrun.trace().save(tmp_path / "toy.jsonl")
    nodejs.check("python/traces.test.js", TRACE=tmp_path / "toy.jsonl", SETTINGS=json.dumps(traces.for_links()))


@pytest.mark.long
def test_a_run_in_a_link_is_taken_as_a_file_is(tmp_path):
    nodejs.check("python/share.test.js", RUNS=ASSETS / "traces", OUT=tmp_path)
    runs = sorted(tmp_path.glob("*.jsonl"))
    assert len(runs) == len(list((ASSETS / "traces").rglob("*.jsonl")))
    for path in runs:
        answer = traces.open_trace(path.read_text(encoding="utf-8"))
        assert "log" in answer and not answer["wrong"], (path.name, answer)


def test_a_good_file_opens_as_a_recorded_run_with_its_audit():
    trace = Trace.load(STORY)
    live = replace(trace, header=replace(trace.header, source="live"))
    answer = traces.open_trace(live.dumps())
    assert Trace.loads(answer["log"]) == trace and "<" not in answer["log"]
    assert "audit holds" in answer["said"] and answer["wrong"] is False and answer["list"] == []


def test_a_tampered_file_opens_and_the_audit_names_its_cycle():
    text, cycle = tampered()
    answer = traces.open_trace(text)
    assert answer["wrong"] and answer["log"] and answer["list"][0].startswith(f"cycle {cycle} of the lane speculative")
    assert "audit fails" in answer["said"]


NO_CYCLE = '{"event":"header","schema":1,"run":"a","source":"x","prompt":"p","lanes":["a"]}'
NO_RUNS = ["", "\0", "{}", "<script>alert(1)</script>", "[" * 200_000, 7, "x" * (MAX_BYTES + 1), NO_CYCLE]


@pytest.mark.parametrize("text", NO_RUNS, ids=lambda text: repr(text)[:30])
def test_a_file_that_is_no_run_gets_one_sentence(text):
    for answer in (traces.open_trace(text), traces.audit_trace(text), *map(traces.make_page, ([text, ""], text))):
        assert answer.keys() == {"wrong", "said"} and answer["wrong"] is True
        assert answer["said"].startswith("The file was not taken: ") and answer["said"].endswith(".")
        assert len(answer["said"]) < 200 and "<script>" not in answer["said"]


def test_a_standalone_page_holds_the_run_and_nothing_of_it_is_markup():
    toy = toyrun.trace()
    nasty = replace(toy, header=replace(toy.header, prompt="</script><script>alert(1)</script><!-- @@data@@ \u2028"))
    page = standalone(nasty)
    assert not re.search(r"@@(?!data@@ )\w+@@", page)
    assert page.count("</script") == 3 and "<!--" not in page and "<script>alert" not in page
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])
    assert Trace.loads(data["player"]["value"]) == nasty
    assert not re.search(r"(src|href)=|@import|url\(['\"]?(?!data:)[a-z]+:", page.partition('id="data"')[0])


def test_a_standalone_page_has_a_title_its_fonts_and_the_way_home():
    story, home = STORY.read_text(encoding="utf-8"), "https://a.b/app?x=1&y=2"
    page = traces.make_page([story, home])["page"]
    assert "<h1>“The old lighthouse keeper climbed the stairs …”</h1>" in page
    assert '<a href="https://a.b/app?x=1&amp;y=2">specdec</a>' in page
    assert page.count("@font-face") == page.count("url(data:font/woff2;base64,") == 3 and "font-src data:" in page
    for wrong in ("javascript:alert(1)", 'https://a.b/"><script>', ""):
        assert "<a " not in traces.make_page([story, wrong])["page"].partition('id="data"')[0]
