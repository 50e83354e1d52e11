"""What is run live: by this page's engine, or in the browser; the line before it, and its end."""

import threading

import pytest

from specdec import exposure
from specdec.events import Committed
from specdec.families.zoo import load
from specdec.lanes.race import race_lanes
from specdec.messages import Step
from specdec.models.grouped import INT7
from specdec.settings import RunRequest
from specdec.traces import audit
from specdec.traces.file import Trace
from specdec.types import SamplingParams
from specdec.ui import classroom
from specdec.ui.session import session
from specdec.ui.text import strings
from tests import toyrun
from tests.page.browser import chrome
from tests.page.browser.chrome import expect, LOG, no_engine, OVER, says, settings, stop, tokens, until_free, wait_for

pytestmark = pytest.mark.long


def test_bad_input_and_an_engine_that_breaks_are_explained_and_lose_nothing(page, toy_engine):
    def broken(*_, **__):
        yield from toyrun.events()[:20]
        raise RuntimeError("secret")

    toy_engine(broken)
    before = page.inner_text("[data-part=lane0]")
    page.fill("#prompt textarea", "   ")
    page.click("#run")
    expect(page.locator("#notice .sd-wrong")).to_contain_text("prompt is empty")
    assert page.inner_text("[data-part=lane0]") == before and page.inner_text(".sd-badge") == "Recorded"
    expect(page.locator("#run")).to_be_enabled()
    page.fill("#prompt textarea", "Once")
    page.click("#run")
    expect(page.locator("#notice .sd-wrong")).to_contain_text(strings("page")["notice"]["broken"])
    assert "secret" not in page.inner_text("body")
    expect(tokens(page, 0).nth(1)).to_be_visible()
    page.wait_for_selector("#run:enabled")


def test_a_press_below_a_run_that_lost_runs_again(page, toy_engine):
    lost = Trace.loads(chrome.slowed(toyrun.trace().dumps())).events
    engine = toy_engine(lambda request: iter(lost))
    page.click("#run")
    press = says(page).locator("button.sd-btn")
    expect(press).to_be_visible()
    assert len(engine.targets) == 1
    press.click()
    for _ in range(100):
        if len(engine.targets) < 2:
            page.wait_for_timeout(100)
    assert len(engine.targets) == 2


def test_enter_right_after_stop_runs_again(page, toy_engine):
    toy_engine(chrome.SlowEngine().race)
    page.click("#run")
    expect(tokens(page, 0).nth(3)).to_be_visible()
    stop(page)
    page.evaluate("document.querySelector('.sd-player').run().closed = false")  # the stage does not know yet
    page.press("#prompt textarea", "Enter")
    page.wait_for_selector("#stop:enabled")
    expect(page.locator(".sd-badge")).to_have_text("Live")
    stop(page)
    assert len(session.process.targets) == 2
    until_free()


def test_who_waits_sees_the_place_and_leaves_by_stop(page, open_page, toy_engine):
    toy_engine(chrome.SlowEngine().race)
    until_free()  # the run of a page that has just been closed may still leave
    other = open_page()
    with session.place_in_queue("run") as ticket:
        assert session.turns.poll(ticket) is None
        page.click("#run")
        expect(page.locator("#notice")).to_contain_text("1 before you: about")
        before = page.locator("[data-part=lane0]").inner_text()
        assert page.locator("[data-source=live]").count() == 0 and before  # the stage stays as it was
        other.click("#run")
        expect(other.locator("#notice")).to_contain_text("2 before you: about")
        stop(page)
        expect(page.locator("#notice")).to_contain_text(strings("page")["notice"]["left"])
        expect(other.locator("#notice")).to_contain_text("1 before you: about")
    other.wait_for_selector("[data-source=live]")
    expect(tokens(other, 0).nth(3)).to_be_visible()
    stop(other)
    until_free()


class SteppedEngine(toyrun.Engine):
    """Tells its steps one at a time: the test lets each of them go."""

    def __init__(self, *steps):
        super().__init__()
        self.steps, self.next = steps, threading.Event()

    def call(self, name, *arguments):
        if name != "run":
            return
        choice, *lines = super().call(name, *arguments)
        for step in (choice, *self.steps):
            if step == self.steps[-1]:
                yield lines.pop(0)  # the run has begun
            yield step
            while not self.next.wait(0.1):
                yield None
            self.next.clear()
        yield from lines


PLACES = ("badge", "say", "flow", "lane0", "lane1", "gantt", "play")
STANDS = """(parts) => ["#prompt textarea", ".sd-lid", ...parts.map((one) => `[data-part=${one}]`)].map((one) => {
    const { x, y } = document.querySelector(one).getBoundingClientRect();
    return [one, Math.round(x), Math.round(y)];
})"""


@pytest.mark.parametrize("width", [1280, 768, 375])
def test_nothing_moves_when_a_status_comes_changes_and_goes(open_page, monkeypatch, width):
    engine = SteppedEngine(Step("load"), Step("read", 128, 900, text="speculative"))
    monkeypatch.setattr(session, "process", engine)
    page = open_page(width, 900)
    expect(page.locator(".sd-lid").first).to_contain_text("Settings")  # the lids are the last to be drawn
    line, before = page.locator("#notice p"), page.evaluate(STANDS, PLACES)
    page.click("#run")
    for told in ("4 drafted per cycle", "Loading the models", "128 of 900"):
        expect(line).to_contain_text(told)
        assert page.evaluate(STANDS, PLACES) == before, told
        assert page.get_by_text(told).locator("visible=true").count() == 1  # in one place
        assert page.locator("[data-dim]").count() == ("900" not in told)  # the recording, until the run has begun
        engine.next.set()
    page.wait_for_selector("#run:enabled")
    expect(line).to_be_empty()  # what was chosen is of no more use
    assert page.inner_text(".sd-badge") == "Ran live"
    wait_for(page, "done")
    assert page.evaluate(STANDS, PLACES)[:3] == before[:3]
    page.type("#prompt textarea", "!")
    expect(line).to_be_empty()


def test_a_run_stopped_while_its_prompt_is_read_claims_no_text(page, monkeypatch):
    monkeypatch.setattr(session, "process", SteppedEngine(Step("read", 128, 900, text="speculative")))
    page.click("#run")
    expect(page.locator("#notice p")).to_contain_text("4 drafted per cycle")
    session.process.next.set()
    expect(page.locator("#notice p")).to_contain_text("128 of 900")
    stop(page)
    expect(page.locator("#notice p")).to_have_text("Run live starts another.")
    expect(says(page)).to_have_text("Stopped before the first token.")
    expect(page.locator("[data-part=play]")).to_be_disabled()
    assert page.inner_text(".sd-badge") == "Ran live"


TEXT = "The fox said to the moon"


def test_a_run_here_is_that_of_pythons_engine_and_asks_the_app_for_files_alone(open_page, toy_engine):
    toy_engine(no_engine)
    page, sent = open_page(query="?drafter=draft_model&k=3&temperature=1&max_tokens=32&seed=7"), []
    settings(page, advanced=True)
    page.locator("#engine").get_by_label("This browser").check()
    expect(page.get_by_label("Verification", exact=False).first).to_be_hidden()
    page.wait_for_load_state("networkidle")  # its script comes with the choice
    page.on("request", lambda request: sent.append((request.method, request.url)))
    page.locator("#prompt textarea").fill(TEXT)
    page.locator("#run").click()
    page.wait_for_function(OVER, arg=TEXT)
    expect(page.locator("#notice p")).to_contain_text("the method, not knowledge")
    expect(page.locator("#run")).to_be_enabled()
    expect(page.locator("#stop")).to_be_disabled()
    asked = [url for _, url in sent if "/engine/" in url and not url.endswith(".js")]
    assert len(asked) == 5 and all(method == "GET" for method, _ in sent if "heartbeat" not in _)
    trace = Trace.loads(page.evaluate(LOG))
    assert trace.header.models["device"] == "browser" and audit.faultless(audit.audit(trace.header.lanes, trace.events))
    params = SamplingParams(temperature=1.0, max_tokens=32, seed=7)
    ours = list(race_lanes(load("embedded", INT7), RunRequest(TEXT, "draft_model", 3, params)))
    for lane in ("speculative", "plain"):
        committed = (
            [(one.tokens, one.accepted) for one in run if isinstance(one, Committed) and one.lane == lane]
            for run in (trace.events, ours)
        )
        assert next(committed) == next(committed)


def test_in_a_class_all_but_the_teacher_compute_in_their_browsers(browser, served, monkeypatch):
    monkeypatch.setattr(exposure, "host", exposure.Host("class"))
    room = classroom.Room("127.0.0.1")
    with chrome.pages(browser, served(room)) as open_page:
        page = open_page(375, 812, query="?max_tokens=8")
        page.locator("#prompt textarea").fill(TEXT)
        page.locator("#run").click()  # where settings are folded away
        page.wait_for_function(OVER, arg=TEXT)
        expect(page.locator("#notice p")).not_to_be_empty()
        wait_for(page, "done")
        for width in (375, 320):
            page.set_viewport_size({"width": width, "height": 812})
            assert page.evaluate(chrome.OVERLAPS) == [], width
        assert Trace.loads(page.evaluate(LOG)).header.models["device"] == "browser"
        settings(page, advanced=True)
        for drafter, engine in (("EAGLE-3", "This page’s own"), ("Prompt lookup", "This browser")):
            page.get_by_label("Drafter", exact=True).click()
            page.get_by_role("option", name=drafter, exact=True).click()
            expect(page.locator("#engine").get_by_label(engine)).to_be_checked()
        page.goto("about:blank")
        page = open_page(query=f"class/teacher?teach={room.secret}")
        page.add_init_script("addEventListener('sd-engine', (event) => (window.told = event.detail[0]))")
        page.reload()
        page.wait_for_selector(".sd-class:not([hidden])")
        # Gradio loses what a field is told in the moment in which it is first drawn; so this one is drawn afterwards.
        page.wait_for_function("window.told === 'own'")
        page.locator(".sd-class summary").first.click()  # the invitation stands in the settings' place
        settings(page, advanced=True)
        expect(page.locator("#engine").get_by_label("This page’s own")).to_be_checked()
