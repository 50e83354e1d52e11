"""The engine "this browser" on the app's page: the runs of Python's engine, and no request to the app's own."""

from __future__ import annotations

import json

import chrome
import pytest
from chrome import expect, no_engine, pytestmark, real_models, settings

from specdec import exposure
from specdec.events import Committed
from specdec.families.zoo import load
from specdec.lanes.race import race
from specdec.models.grouped import INT7
from specdec.traces import audit
from specdec.traces.file import Trace
from specdec.types import SamplingParams
from specdec.ui import classroom, session

PROMPT = "The fox said to the moon"
QUERY = "?drafter=draft_model&k=3&temperature=1&max_tokens=32&seed=7"
OVER = """(prompt) => { const { header, names, lanes } = document.querySelector('.sd-player').run();
  return header.prompt === prompt && names.every((name) => lanes[name].finished); }"""
# From within the page: what asks from outside may come when half a second of a run is over.
STOPPED = """() => new Promise((done) => {
  const stop = document.querySelector("#stop"), look = () => {
    if (stop.disabled || document.querySelector(".sd-player").run().header.prompt !== "A long story")
      return setTimeout(look, 5);
    stop.click();
    done();
  };
  document.querySelector("#run").click();
  look();
})"""
pytestmark = [pytestmark, real_models]


@pytest.fixture
def here(open_page, monkeypatch):
    """The page with this engine chosen, and what it sends from then on."""
    monkeypatch.setattr(session, "_loaded", no_engine)
    page, sent = open_page(query=QUERY), []
    settings(page, advanced=True)
    page.locator("#engine").get_by_label("This browser").check()
    expect(page.get_by_label("Verification", exact=False).first).to_be_hidden()
    page.wait_for_function("() => Boolean(self.specdecHere)")  # its script comes with the choice
    page.on("request", lambda request: sent.append((request.method, request.url)))
    return page, sent


def text(page):
    return page.evaluate("document.querySelector('.sd-player').log()")


@pytest.mark.long
def test_a_run_here_is_that_of_pythons_engine_and_asks_the_app_for_files_alone(here):
    page, sent = here
    page.locator("#prompt textarea").fill(PROMPT)
    page.locator("#run").click()
    page.wait_for_function(OVER, arg=PROMPT)
    expect(page.locator("#notice p")).to_contain_text("the method, not knowledge")
    expect(page.locator("#run")).to_be_enabled()
    expect(page.locator("#stop")).to_be_disabled()
    asked = [url for method, url in sent if "/browser/" in url]
    assert len(asked) == 6 and all(method == "GET" for method, _ in sent if "heartbeat" not in _)
    trace = Trace.loads(text(page))
    assert trace.header.models["device"] == "browser" and audit.holds(audit.audit(trace.header.lanes, trace.events))
    params = SamplingParams(temperature=1.0, max_tokens=32, seed=7)
    ours = list(race(load("embedded", INT7), PROMPT, "draft_model", 3, params))
    for lane in ("speculative", "plain"):
        committed = (
            [(one.tokens, one.accepted) for one in run if isinstance(one, Committed) and one.lane == lane]
            for run in (trace.events, ours)
        )
        assert next(committed) == next(committed)


@pytest.mark.long
def test_stop_keeps_what_was_written(here):
    page, _ = here
    page.locator("#max_tokens input[type=number], [data-name=max_tokens] input").first.or_(
        page.get_by_label("Maximum tokens").first
    ).fill("256")
    page.locator("#prompt textarea").fill("A long story")
    page.evaluate(STOPPED)
    expect(page.locator("#notice p")).to_contain_text("What was written stays")
    expect(page.locator("#run")).to_be_enabled()
    header, *events = map(json.loads, text(page).splitlines())
    assert header["prompt"] == "A long story" and events


def test_what_it_lacks_is_one_sentence_and_fetches_nothing(here):
    page, sent = here
    line, known = page.locator("#notice p"), text(page)
    page.locator("#prompt textarea").fill(" ")
    page.locator("#run").click()
    expect(line).to_contain_text("Type a few words")
    page.locator("#prompt textarea").fill("word")
    page.evaluate("WebAssembly.validate = () => false")
    page.locator("#run").click()
    expect(line).to_contain_text("lacks WebAssembly with SIMD")
    assert text(page) == known and not [url for _, url in sent if "/browser/" in url]


def test_models_that_do_not_arrive_are_one_sentence(here):
    page, _ = here
    page.route("**/browser/**", lambda route: route.fulfill(body="something else"))
    page.locator("#prompt textarea").fill(PROMPT)
    page.locator("#run").click()
    expect(page.locator("#notice p")).to_contain_text("did not arrive whole")
    expect(page.locator("#run")).to_be_enabled()
    page.unroute("**/browser/**")


def test_stop_does_not_wait_for_what_is_on_its_way(here):
    page, held = here[0], []
    page.route("**/browser/**", lambda route: held.append(route))
    known = text(page)
    page.locator("#prompt textarea").fill(PROMPT)
    page.locator("#run").click()
    page.locator("#stop").click()
    expect(page.locator("#run")).to_be_enabled()
    expect(page.locator("#notice p")).to_contain_text("Stopped")
    held[0].fulfill(body="{}")
    page.wait_for_timeout(200)
    assert text(page) == known and len(held) == 1
    expect(page.locator("#notice p")).to_contain_text("Stopped")
    page.unroute("**/browser/**")


def test_in_a_class_all_but_the_teacher_compute_in_their_browsers(browser, served, monkeypatch):
    monkeypatch.setenv(exposure.EXPOSURE, "class")
    room = classroom.Room("127.0.0.1")
    with chrome.pages(browser, served(room)) as open_page:
        page = open_page(query="?max_tokens=8")
        page.locator("#prompt textarea").fill(PROMPT)
        page.locator("#run").click()  # where settings are folded away
        page.wait_for_function(OVER, arg=PROMPT)
        assert '"device":"browser"' in text(page).replace(" ", "")
        settings(page, advanced=True)
        expect(page.locator("#engine").get_by_label("This browser")).to_be_checked()
        page.goto("about:blank")
        page = open_page(query=f"?teach={room.secret}")
        page.add_init_script("addEventListener('sd-engine', (event) => (window.told = event.detail[0]))")
        page.reload()
        page.wait_for_selector(".sd-class:not([hidden])")
        # Gradio loses what a field is told in the moment in which it is first drawn; so this one is drawn afterwards.
        page.wait_for_function("window.told === 'own'")
        settings(page, advanced=True)
        expect(page.locator("#engine").get_by_label("This page’s own")).to_be_checked()
