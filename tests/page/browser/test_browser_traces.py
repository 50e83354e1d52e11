"""Runs kept, opened, compared and passed on in a real Chromium; and one file that plays alone, without a network."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path

import pytest
import toyrun
from chrome import expect, part, PATIENCE, pytestmark, says, state, step, unfold, until, wait_for  # noqa: F401
from test_traces import FACTS, STORY, tampered

from specdec.traces.file import MAX_BYTES, Trace
from specdec.ui import session
from specdec.ui.standalone import standalone
from specdec.ui.text import ASSETS


@pytest.fixture
def alone(browser, tmp_path):
    """Opens a standalone page from its file, without a network; afterwards nothing may have gone wrong."""
    complaints = []
    context = browser.new_context(offline=True, reduced_motion="no-preference")
    context.clock.install()
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    page.on("dialog", lambda dialog: (complaints.append("a token ran as code"), dialog.dismiss()))
    asked = []
    page.on("request", lambda sent: asked.append(sent.url))

    def opener(trace):
        (tmp_path / "run.html").write_text(standalone(trace), encoding="utf-8")
        page.goto((tmp_path / "run.html").as_uri())
        return page

    yield opener
    context.close()
    assert complaints == []
    assert [url for url in asked if not url.startswith(("file:", "blob:"))] == [] and len(asked) >= 1


def test_a_standalone_page_plays_from_its_file(alone):
    page = alone(toyrun.trace())
    until(page, "first-rejection")  # by itself
    until(page, "playing")  # by itself
    until(page, "done")
    assert "Done:" in page.inner_text(".sd-player [data-part=say]")
    page.locator(".sd-player [data-part=all]").click()  # at the end what was thrown away is a tick
    assert "<script>alert(1)</script>" in page.inner_text("[data-part=lane0]")
    page.press("[data-part=stage]", "Home")
    page.press("[data-part=stage]", "ArrowRight")
    page.press("[data-part=stage]", "ArrowRight")
    page.get_by_role("button", name="Take this decision apart").click()
    page.wait_for_selector(".sd-step[data-state=ready] .sd-tells:not(:empty)")
    expect(page.locator(".sd-step [data-part=title]")).to_have_text("Cycle 2 of 6")
    with page.expect_download() as saved:
        page.locator(".sd-status [data-part=download]").click()
    assert Trace.load(Path(saved.value.path())) == toyrun.trace()


def test_a_saved_run_without_coins_offers_none_that_only_a_server_has(alone):
    page = alone(Trace.load(ASSETS / "traces" / f"{session.FIRST[0]}.jsonl"))
    page.press("[data-part=stage]", "End")
    page.wait_for_selector(".sd-step[data-state=ready] .sd-tells:not(:empty)", state="attached")
    expect(page.locator(".sd-step [data-part=hint]")).to_contain_text("Show a rejection")
    expect(page.get_by_text("Show a run with coins")).to_have_count(0)


@pytest.mark.long
def test_a_run_that_was_stopped_plays_alone_to_where_it_was(alone):
    whole = toyrun.trace()
    page = alone(replace(whole, events=whole.events[:14]))
    page.press("[data-part=stage]", "End")
    wait_for(page, "done")
    assert "Stopped" in page.inner_text(".sd-player [data-part=say]")


# ---- on the page ----


def said(page):
    return page.inner_text(".sd-traces [data-part=said]")


def until_said(page, word):
    page.wait_for_function(
        "word => document.querySelector('.sd-traces [data-part=said]').textContent.includes(word)", arg=word
    )


def press(page, button):
    unfold(page, "deeds")
    page.locator(".sd-traces button", has_text=button).click()


def choose(page, button, path):
    with page.expect_file_chooser() as chooser:
        press(page, button)
    chooser.value.set_files(path)


def test_a_run_is_downloaded_and_opened_again(open_page, tmp_path):
    page = open_page(reduced_motion="reduce")
    with page.expect_download() as saved:
        press(page, "Download trace")
    assert re.fullmatch(r"specdec-[\w-]+\.jsonl", saved.value.suggested_filename)
    assert Trace.load(Path(saved.value.path())) == toyrun.trace()
    choose(page, "Open a trace", STORY)
    until_said(page, "audit holds")
    assert said(page).startswith("story.jsonl is open.")
    assert "lighthouse keeper" in page.inner_text("[data-part=lane0]") and page.inner_text(".sd-badge") == "Recorded"
    text, cycle = tampered()
    (tmp_path / "bad.jsonl").write_text(text, encoding="utf-8")
    choose(page, "Open a trace", tmp_path / "bad.jsonl")
    until_said(page, "audit fails")  # the faults are written in the same stroke
    assert page.inner_text(".sd-faults").startswith(f"cycle {cycle} of the lane speculative")
    before = page.inner_text("[data-part=lane0]")
    (tmp_path / "junk.jsonl").write_text("<script>alert(1)</script>", encoding="utf-8")
    choose(page, "Open a trace", tmp_path / "junk.jsonl")
    until_said(page, "not taken")
    assert page.inner_text("[data-part=lane0]") == before and page.locator(".sd-faults:visible").count() == 0
    lane = page.locator("[data-part=lane0]").text_content()
    page.locator(".sd-pills .sd-pill", has_text="Facts").click()
    page.wait_for_function("lane => document.querySelector('[data-part=lane0]').textContent !== lane", arg=lane)
    assert said(page) == ""  # what was told of one run is not said of the next


DROP = """([name, text]) => {
    const carried = new DataTransfer();
    carried.items.add(new File([text], name));
    for (const type of ["dragover", "drop"]) {
        const event = new DragEvent(type, { dataTransfer: carried, bubbles: true, cancelable: true });
        document.querySelector(".sd-stage").dispatchEvent(event);
        if (!event.defaultPrevented) throw new Error("the browser would leave the page");
    }
}"""


@pytest.mark.long
def test_a_dropped_file_opens_and_two_runs_are_compared(open_page):
    page = open_page(375, reduced_motion="reduce")
    page.evaluate(DROP, ["facts.jsonl", FACTS.read_text(encoding="utf-8")])
    until_said(page, "audit holds")
    assert "capital of France" in page.inner_text("[data-part=lane0]")
    choose(page, "Compare with", STORY)
    until_said(page, "part at token 1")
    assert page.locator(".sd-version mark").count() == 2 and "≠" in page.inner_text(".sd-version >> nth=0")
    assert "Measured speed-up" in page.inner_text(".sd-traces table")
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    press(page, "Audit")
    until_said(page, "audit holds")
    assert page.locator(".sd-version:visible").count() == 0


@pytest.mark.long
def test_a_file_that_is_too_large_is_not_even_sent(open_page, tmp_path):
    page = open_page(reduced_motion="reduce")
    (tmp_path / "large.jsonl").write_bytes(b"x" * (MAX_BYTES + 1))
    choose(page, "Open a trace", tmp_path / "large.jsonl")
    until_said(page, "larger than 16 MB")


@pytest.mark.long
def test_a_standalone_page_is_saved_from_the_page(open_page, address):
    page = open_page(reduced_motion="reduce")
    with page.expect_download() as saved:
        press(page, "Standalone page")
    assert saved.value.suggested_filename.endswith(".html")
    assert Path(saved.value.path()).read_text(encoding="utf-8") == standalone(toyrun.trace(), address)
    until_said(page, "without a network")


@pytest.mark.long
def test_a_link_brings_the_settings_back(open_page, address):
    page = open_page(reduced_motion="reduce")
    press(page, "Copy link")
    copied = page.locator(".sd-traces [data-part=copy]")
    expect(copied).to_have_value(re.compile(re.escape(address) + ".*temperature=0.8"))
    asked = "?prompt=Hello+there&k=6&seed=41&temperature=1.5&rule=shared_noise&drafter=prompt_lookup"
    other = open_page(query=asked, reduced_motion="reduce")
    expect(other.locator("#prompt textarea")).to_have_value("Hello there")
    expect(other.get_by_label("Seed")).to_have_value("41")
    expect(other.get_by_label("Drafter")).to_have_value("Prompt lookup")
    expect(other.locator(".sd-rail input[type=number]").first).to_have_value("6")
    assert other.inner_text("#notice").strip() == "" and not other.is_visible("#link-notice")
    wrong = open_page(query="?k=99&seed=5", reduced_motion="reduce")
    expect(wrong.locator("#link-notice .sd-wrong")).to_contain_text("K must be a whole number from 0 to 16.")
    expect(wrong.get_by_label("Seed")).to_have_value("5")


FRAME = """source => {
    const frame = Object.assign(document.createElement("iframe"), { src: source, width: 900, height: 700 });
    document.body.append(frame);
}"""


@pytest.mark.long
def test_a_link_opens_a_tab_and_a_frame_shows_it(open_page):
    page = open_page(reduced_motion="reduce", query="?tab=step")
    page.wait_for_selector(".sd-step[data-state=ready]")
    page.get_by_role("tab", name="Race").click()
    press(page, "Embed")
    page.locator(".sd-traces [data-tab=step]").click()
    copied = page.locator(".sd-traces [data-part=copy]")
    expect(copied).to_have_value(re.compile("^<iframe .*tab=step"))
    frame = copied.input_value()
    press(page, "Embed")
    expect(page.locator(".sd-share")).to_be_hidden()
    source = re.search(r'src="([^"]+)"', frame)[1]
    page.evaluate(FRAME, source)
    inside = page.frame_locator("iframe")
    inside.locator(".sd-step[data-state=ready]").wait_for()
    nowhere = open_page(reduced_motion="reduce", query="?tab=nowhere")
    expect(nowhere.locator("#link-notice .sd-wrong")).to_contain_text("not there")


@pytest.mark.long
def test_nothing_opens_over_a_live_run(open_page, monkeypatch):
    class Engine:
        def describe(self):
            return {}

        def race(self, *_, **__):
            for event in toyrun.events():
                time.sleep(0.3)
                yield event

    engine = Engine()
    monkeypatch.setattr(session, "_engine", lambda *_: (engine, engine.race))
    page = open_page(reduced_motion="reduce")
    page.click("#run")
    page.wait_for_selector("[data-source=live]")
    choose(page, "Open a trace", STORY)
    until_said(page, "live run is going on")
    assert page.inner_text(".sd-badge") == "Live"
    page.click("#stop")
    page.wait_for_selector("#run:enabled")
    choose(page, "Open a trace", STORY)
    until_said(page, "audit holds")


def test_a_link_brings_the_run_and_another_run_leaves_it(open_page, address):
    sender = open_page()
    sender.evaluate("(log) => document.querySelector('.sd-player').load(log)", STORY.read_text(encoding="utf-8"))
    link = sender.evaluate("document.querySelector('.sd-player').share()")
    assert link["whole"] and "#run=" in link["link"]
    page = open_page(query=link["link"].removeprefix(address))
    expect(says(page)).to_contain_text("You were sent this run.")
    assert page.get_attribute(".sd-player", "data-state") == "done" and page.locator(".sd-finish").is_visible()
    texts = "() => ['lane0', 'lane1'].map((name) => document.querySelector(`[data-part=${name}]`).textContent)"
    sender.press("[data-part=stage]", "End")
    assert page.evaluate(texts) == sender.evaluate(texts)
    assert "#run=" in page.url
    page.get_by_role("button", name="Facts").click()
    page.wait_for_function("() => !location.hash")
    expect(says(page)).not_to_contain_text("You were sent")


def test_a_link_whose_run_is_broken_says_so(open_page):
    page = open_page(query="?prompt=Hi#run=eJwz")
    expect(page.locator("#link-notice")).to_contain_text("The run in this link cannot be read")
    expect(page.locator("#prompt textarea")).to_have_value("Hi")
