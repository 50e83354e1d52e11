"""The page in a real Chromium, as everybody runs it: each tab, a live run, Stop, the keyboard, a phone.

What else a browser alone can notice is in the files beside this one: `pytest -m long tests/page/browser`.
"""

import re
from dataclasses import replace

import pytest

from specdec.traces.file import Trace
from specdec.ui.tabs import labels
from specdec.ui.text import ASSETS, strings
from tests import toyrun
from tests.page.browser import chrome
from tests.page.browser.chrome import expect, LOAD, part, press_tab, says, slowed, step, tokens, until, wait_for, WHOLE


def test_a_recorded_run_plays_pauses_at_its_first_rejection_and_goes_on(open_page):
    page = open_page(locale="en-GB", reduced_motion="no-preference")  # a context of its own, for its clock
    page.clock.install()
    expect(page.locator(".sd-badge").first).to_have_text("Recorded")
    expect(part(page, "otherSettings")).to_be_hidden()  # whatever the page chose is what the default asks for
    until(page, "first-rejection")
    told = says(page).inner_text()
    assert "first rejection" in told and "the target own2" in told  # whose word stands there instead
    assert not re.search(r"\d\.\d", told)  # numbers are a press away
    assert page.locator("[data-part=lane0] .sd-rejected:not(.sd-future)").count() == 1
    until(page, "playing")  # by itself
    page.click("[data-slow='1']")
    until(page, "done")
    assert "Done:" in says(page).inner_text()
    assert "so far" not in page.inner_text(".sd-hero")


def test_it_plays_before_gradio_is_there_and_goes_on_in_its_page_where_it_stood(early):
    page, release = early()
    page.wait_for_selector("#first .sd-player[data-state=playing]")
    assert page.locator("gradio-app *").count() == 0
    assert page.locator("#first nav.sd-first-tabs a").all_inner_texts() == list(labels().values())
    page.evaluate("document.querySelector('.sd-player').wasThere = true")
    page.press("[data-part=stage]", "ArrowRight")  # it is the player, not a picture of it
    said = says(page).inner_text()
    page.focus("[data-part=next]")
    release()
    expect(page.locator(".sd-player")).to_have_count(1)
    assert page.evaluate("document.querySelector('.gradio-container .sd-player').wasThere")
    wait_for(page, "paused")
    assert says(page).inner_text() == said
    assert page.evaluate("document.activeElement.dataset.part") == "next"


def test_a_lane_reads_as_prose_until_all_of_it_is_asked_for_and_no_token_runs_as_code(page):
    page.press("[data-part=stage]", "End")
    wait_for(page, "done")
    lane = part(page, "lane0")
    for kind in ("accepted", "rejected", "discarded", "resampled", "bonus", "plain"):
        assert lane.locator(f".sd-{kind}:not(.sd-future)").count() > 0, kind
    rejected = lane.locator(".sd-past .sd-rejected:not(.sd-future)")
    past, word = rejected.first, rejected.filter(has_text="alert").locator(".sd-token-text")
    assert past.inner_text() == "␣×8"  # spaces are shown by signs
    expect(word).to_have_css("text-decoration-line", "line-through")  # letters: small and struck
    expect(word).to_have_css("font-size", "13.12px")
    assert lane.locator(".sd-m:visible, .sd-sp:visible").count() == 0
    part(page, "showAll").click()
    expect(part(page, "showAll")).to_have_attribute("aria-pressed", "true")
    assert "✗" in past.inner_text() and past.bounding_box()["width"] > 20
    text = lane.inner_text()
    assert "<script>alert(1)</script>" in text and "${alert(1)}" in text and "⟨202E⟩evil" in text
    assert lane.locator("script").count() == 0
    part(page, "showAll").click()
    past.focus()
    page.keyboard.press("Enter")  # it is a button still
    expect(part(page, "card")).to_be_visible()


def test_keys_step_by_cycle_and_set_the_speed(page):
    page.focus("[data-part=stage]")
    page.keyboard.press("Home")
    step(page)
    expect(says(page)).to_have_text(re.compile("^Cycle 1"))
    expect(part(page, "announce")).to_have_text(re.compile("^Cycle 1"))
    step(page, 4)
    expect(says(page)).to_contain_text("nothing was drafted")
    page.keyboard.press("ArrowLeft")
    expect(says(page)).to_have_text(re.compile("^Cycle 4"))
    page.keyboard.press("1")
    expect(page.locator("[data-slow='1']")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press(" ")
    wait_for(page, "done")


@pytest.mark.long
def test_the_tabs_are_one_stop_and_follow_the_arrow_keys(page):
    expect(page.locator(".sd-skip")).not_to_be_empty()  # the script that moves between tabs has begun
    page.locator("#race-button").focus()
    way = (("ArrowRight", "step"), ("ArrowRight", "lossless"), ("End", "guide"), ("ArrowRight", "race"))
    for key, name in (*way, ("ArrowLeft", "guide"), ("Home", "race")):
        page.keyboard.press(key)
        tab = page.locator(f"#{name}-button")
        expect(tab).to_be_focused()
        expect(tab).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('role')") != "tab"


def test_a_cycle_is_taken_apart_in_one_screen_and_another_coin_changes_its_verdict(page):
    page.get_by_role("button", name="Take this decision apart").click()
    page.wait_for_selector(".sd-step[data-state=ready] .sd-tells:not(:empty)")
    here = page.locator(".sd-steps [aria-current]")
    tells = page.locator(".sd-step [data-part=say]")
    expect(page.locator(".sd-step [data-part=title]")).to_have_text("Cycle 2 of 6")
    expect(here).to_have_text("Judge 3")
    expect(tells).to_contain_text("reject")
    tops = [page.locator(f".sd-step [data-part={name}]").bounding_box()["y"] for name in ("bar", "say", "grid", "left")]
    coin = page.locator("[data-coin]").bounding_box()
    assert tops == sorted(tops) and page.evaluate("scrollY") == 0 and coin["y"] + coin["height"] <= 800
    assert page.locator(".sd-take input").count() == 0  # one bar moves, no slider beside it
    page.locator(".sd-step [data-part=coin]").fill("0.1")
    expect(page.locator(".sd-steps")).to_contain_text("Bonus")
    expect(tells).to_have_text(re.compile("^What if:.*keep"))
    assert page.locator(".sd-part[hidden]").count() == 4  # what the run went on with does not follow from this
    strip = page.locator("[data-coin]").bounding_box()  # the drawing can be dragged, too
    page.mouse.move(strip["x"] + 0.1 * strip["width"], strip["y"] + 57)
    page.mouse.down()
    page.mouse.move(strip["x"] + 0.95 * strip["width"], strip["y"] + 57, steps=3)
    expect(page.locator(".sd-step [data-part=coinvalue]")).to_have_text("0.95")
    page.mouse.up()
    page.get_by_role("button", name="Back to what really happened").click()
    expect(page.locator(".sd-steps")).to_contain_text("Replace")
    page.locator(".sd-steps button", has_text="Replace").click()
    expect(page.locator(".sd-cell:has(.sd-rejected) .sd-resampled")).to_have_count(1)  # it takes this place
    expect(tells).to_contain_text("own2")  # the sentence names the target's own token


def test_step_begins_on_a_run_in_which_coins_decide(page):
    page.evaluate("document.querySelector('.sd-player').run().lanes.speculative.started.params.temperature = 0")
    page.locator("#step-button").click()
    expect(page.locator(".sd-step [data-part=hint]")).to_contain_text("with sampling")
    says_no = page.locator(".sd-step [data-part=say]")
    expect(says_no).to_contain_text("The coin falls at")
    page.locator(".sd-step [data-part=coin]").fill("0.01")
    expect(says_no).to_have_text(re.compile("^What if:.*keep"))
    page.get_by_role("button", name="Back to what really happened").click()
    page.get_by_role("button", name="The run of Race").click()
    expect(says_no).to_contain_text("At temperature 0")


def test_enter_runs_the_real_models(open_page):
    page = open_page(reduced_motion="no-preference")
    page.press("#prompt textarea", "Enter")
    page.wait_for_selector("[data-source=live]")
    page.click("[data-slow='1']")
    wait_for(page, "done")
    page.wait_for_selector("#run:enabled")
    assert tokens(page, 0).count() >= tokens(page, 1).count() > 10
    # On a busy machine the run may lose.
    expect(page.locator(".sd-finish h2")).to_have_text(re.compile(r"\d+ passes instead of \d+"))
    expect(part(page, "prompt")).to_have_text(page.input_value("#prompt textarea"))


def test_stop_keeps_the_text_and_frees_the_machine(page, toy_engine):
    engine = chrome.SlowEngine()
    toy_engine(engine.race)
    page.click("#run")
    page.wait_for_selector("[data-source=live]")
    expect(tokens(page, 0).nth(3)).to_be_visible()
    expect(page.locator(".sd-pills").first).to_have_attribute("inert", "")
    chrome.stop(page)
    expect(page.locator(".sd-pills[inert]")).to_have_count(0)
    wait_for(page, "done")
    assert tokens(page, 0).count() > 3
    expect(says(page)).to_contain_text("Stopped")
    expect(page.locator("#notice p")).to_have_text("Run live starts another.")
    chrome.until_free()
    assert engine.closed == 1


def longest_rejection():
    """Eight drafts of long words, the first of them rejected."""
    started, first, drafted, verified, _, *rest = toyrun.speculative(2, 8)
    words = tuple(f" uncharacteristic{i}" for i in range(8))
    judged = replace(verified, positions=tuple(toyrun.position(i, word, 0) for i, word in enumerate(words)))
    own = toyrun.committed("speculative", 1, (" institutionalised",), 0, "resampled", 2, verified.end)
    events = (started, first, replace(drafted, pieces=words), judged, own, *rest, *toyrun.plain(8))
    return Trace(toyrun.header(), events).dumps()


def test_the_longest_sentence_is_there_in_full(page):
    page.evaluate(LOAD, longest_rejection())
    page.press("[data-part=stage]", "Home")
    step(page)
    for width in (1280, 1400, 1100, 1099, 721, 720, 481, 375, 320):
        page.set_viewport_size({"width": width, "height": 800})
        expect(says(page)).to_contain_text("The 7 guesses after it are discarded")
        assert says(page).evaluate(WHOLE), width


@pytest.mark.parametrize(
    ("width", "run", "slower"),
    [
        (375, "tips", False),
        pytest.param(1280, "coding", False, marks=pytest.mark.long),
        (1280, "tips", True),
    ],
)
def test_every_sentence_is_whole_and_its_two_links_stand_together(open_page, width, run, slower):
    page = open_page(width, 800)
    log = (ASSETS / f"traces/{run}.jsonl").read_text("utf-8")
    page.evaluate(LOAD, slowed(log) if slower else log)
    for key in ("Home", *["ArrowRight"] * 12, "End"):
        page.press("[data-part=stage]", key)
        assert says(page).evaluate(WHOLE), says(page).inner_text()
        links = [one.bounding_box()["y"] for one in says(page).locator("button").all()]
        assert len({*links}) <= 1, says(page).inner_text()
    wait_for(page, "done")
    assert ("Slower than plain decoding here" in says(page).inner_text()) is slower


@pytest.mark.long
def test_what_is_recorded_of_smollm2_is_named_in_full_and_shows_no_template(page):
    page.evaluate(LOAD, (ASSETS / "traces/tips.jsonl").read_text("utf-8"))
    assert strings("player")["meta"]["unpacked"] in part(page, "meta").text_content()
    assert part(page, "sub0").get_attribute("title") == part(page, "sub0").text_content() != ""
    press_tab(page, "step")
    whole = page.locator(".sd-step .sd-whole")
    expect(whole).to_contain_text("three tips")
    assert "<|im_start|>" in whole.text_content() and "<|im_start|>" not in whole.inner_text()
