"""The race in a real Chromium: it draws, plays, pauses and explains itself, and asks nobody else for anything."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path

import pytest
import toyrun
from chrome import (  # noqa: F401
    expect,
    part,
    play_recorded,
    processor,
    pytestmark,
    says,
    settings,
    state,
    step,
    tokens,
    until,
    wait_for,
)

from specdec.traces.file import Trace
from specdec.ui.text import strings


def test_a_recorded_run_plays_pauses_at_its_first_rejection_and_goes_on(open_page):
    page = open_page(locale="en-GB")  # a context of its own, for its clock
    page.clock.install()
    expect(page.locator(".sd-badge").first).to_have_text("Recorded")
    until(page, "first-rejection")
    told = says(page).inner_text()
    assert "first rejection" in told and "the big one own2" in told  # whose word stands there instead
    assert not re.search(r"\d\.\d", told)  # numbers are a press away
    assert page.locator("[data-part=lane0] .sd-rej:not(.sd-fut)").count() == 1
    until(page, "playing")  # by itself
    page.click("[data-slow='1']")
    until(page, "done")
    assert "Done:" in says(page).inner_text()
    assert "so far" not in page.inner_text(".sd-hero")


@pytest.mark.long
def test_who_steps_in_keeps_the_wheel(open_page):
    page = open_page(locale="en-GB")  # a context of its own, for its clock
    page.clock.install()
    until(page, "first-rejection")
    page.click("[data-part=next]")
    until(page, "paused")
    page.clock.run_for(8_000)  # longer than it would have waited
    assert state(page) == "paused"


def test_every_token_state_is_drawn_and_no_token_runs_as_code(open_page):
    page = open_page()
    page.focus("[data-part=stage]")
    page.keyboard.press("End")
    wait_for(page, "done")
    for kind in ("acc", "rej", "dis", "res", "bon", "pla"):
        assert page.locator(f"[data-part=lane0] .sd-{kind}:not(.sd-fut)").count() > 0, kind
    part(page, "all").click()  # at the end the thrown away ones are ticks
    text = page.inner_text("[data-part=lane0]")
    assert "<script>alert(1)</script>" in text and "${alert(1)}" in text and "⟨202E⟩evil" in text
    assert page.locator("[data-part=lane0] script").count() == 0


def test_keys_step_by_cycle_and_set_the_speed(open_page):
    page = open_page(reduced_motion="reduce")
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
def test_a_token_and_a_figure_explain_themselves_by_mouse_and_by_keyboard(open_page):
    page = open_page(reduced_motion="reduce")
    card = part(page, "card")
    page.hover("[data-part=lane0] .sd-rej:not(.sd-fut)")
    expect(card).to_contain_text("Coin u")
    assert "0.30" in card.inner_text()
    page.keyboard.press("Escape")  # the mouse stays, the focus is elsewhere
    expect(card).to_be_hidden()
    page.mouse.move(5, 5)
    tab_to_a_token(page)
    expect(card).to_be_visible()
    page.keyboard.press("Escape")
    expect(card).to_be_hidden()
    page.locator(".sd-term", has_text="Block efficiency").click()
    expect(card).to_contain_text("K + 1")


def tab_to_a_token(page):
    """From the stage past its links, the timeline's and the transport's buttons."""
    page.focus("[data-part=stage]")
    for _ in range(18):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('.sd-lane .sd-tok')"):
            return
    raise AssertionError("no token has a place in the tab order")


def test_a_tree_hangs_its_siblings_below_each_other_and_leaves_its_path_when_past(open_page):
    page = open_page(reduced_motion="reduce")
    play_recorded(page, "Facts")
    step(page)
    assert page.locator(".sd-tree .sd-tok:visible").count() == 3  # as prose the path alone
    part(page, "all").click()
    page.focus("[data-part=stage]")
    expect(says(page)).to_contain_text("one path, t1 t5")
    assert "2 of 2 levels" in part(page, "figures").text_content()
    tree, card = page.locator(".sd-tree:not(.sd-fut):not(.sd-past)"), part(page, "card")
    place = {chip.inner_text()[:2]: chip.bounding_box() for chip in tree.locator(".sd-tok").all()}
    assert place["t0"]["x"] == place["t1"]["x"] and place["t0"]["y"] < place["t3"]["y"] < place["t1"]["y"]
    assert place["t0"]["x"] < place["t2"]["x"] < place["t6"]["x"] and place["t0"]["y"] == place["t6"]["y"]
    assert place["ow"]["y"] == place["t1"]["y"]  # the bonus token stands behind the path
    tree.locator(".sd-dis", has_text="t6").hover()
    expect(card).to_contain_text("level 3 of 3")
    assert "follows a draft" in card.inner_text()
    page.mouse.move(5, 5)
    expect(card).to_be_hidden()
    tab_to_a_token(page)
    expect(card).to_contain_text("level 1 of 3")
    assert page.locator("[data-part=lane0] .sd-tok:focus").get_attribute("aria-label") == "space t0, rejected, level 1"
    page.keyboard.press("ArrowRight")
    first = page.locator(".sd-tree").first
    expect(first).to_have_class(re.compile("sd-past"))
    assert [chip.inner_text()[:2] for chip in first.locator(".sd-tok:visible").all()] == ["t1", "t5", "ow"]
    assert tree.count() == 1 and tree.locator(".sd-tok:visible").count() == 8


def test_a_lossy_rule_is_labelled_wherever_its_run_is(open_page):
    page = open_page(reduced_motion="reduce")
    assert page.locator(".sd-tag:visible").count() == 0
    play_recorded(page, "Code")
    for moment, reached in (("Home", "paused"), ("End", "done")):
        page.keyboard.press(moment)
        wait_for(page, reached)
        assert page.locator(".sd-lane .sd-tag:visible").count() == 1
        assert page.locator("[data-part=figures] .sd-hero .sd-tag:visible").count() == 1
    expect(part(page, "foot")).to_contain_text("is lossy")
    expect(part(page, "foot")).to_contain_text("ran on the GPU step by step, not as captured graphs: a toy.")
    part(page, "all").click()
    page.locator(".sd-tree .sd-rej:not(.sd-fut)").last.hover()
    card = part(page, "card")
    expect(card).to_contain_text("No coin")
    assert "Lossy" in card.inner_text() and "Coin u" not in card.inner_text()


@pytest.mark.long
@pytest.mark.parametrize("width", [375, 1280])
def test_a_peer_has_its_lane_its_figure_and_its_time(open_page, width):
    page = open_page(width, reduced_motion="reduce")
    assert part(page, "peer").is_hidden() and page.locator("[data-part=figures] > div").count() == 2
    settings(page)
    page.locator(".sd-pills .sd-pill", has_text="Repetitive").click()
    expect(part(page, "peer")).to_be_visible()
    page.focus("[data-part=stage]")
    page.keyboard.press("End")
    wait_for(page, "done")
    assert tokens(page, 2).count() == 12
    part(page, "all").click()
    assert page.locator("[data-part=lane2] .sd-bon:not(.sd-fut)").first.inner_text().endswith("+1")
    part(page, "all").click()
    assert "× plain" in part(page, "clock2").text_content()
    assert page.locator("[data-part=account] tr").first.locator("th").count() == 3
    assert "The transformers library took" in says(page).inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.locator("[data-part=lane2] .sd-rej:not(.sd-fut)").first.click()
    expect(part(page, "card")).to_contain_text(strings("player")["card"]["untold"])
    page.locator(".sd-pills .sd-pill", has_text="Story").click()
    expect(part(page, "peer")).to_be_hidden()


@pytest.mark.long
def test_a_menus_line_follows_the_choice(open_page):
    page = open_page(reduced_motion="reduce")
    settings(page, advanced=True)
    page.get_by_label("Verification rule").click()
    page.get_by_role("option", name="Typical acceptance (lossy)").click()
    page.get_by_text("Lossy with this rule.").wait_for()
    page.get_by_label("Drafter").click()
    page.get_by_role("option", name="Prompt lookup").click()
    page.get_by_text("Copies what followed").wait_for()
    page.get_by_text("A third lane: the prompt lookup").wait_for()


SCRUB = """async (times) => {
    const input = document.querySelector(".sd-player [data-part=scrub]");
    for (let i = 1; i <= times; i++) {
        input.value = (input.max * ((7 * i) % times)) / times; // to and fro
        input.dispatchEvent(new Event("input"));
        await new Promise(requestAnimationFrame);
    }
}"""


@pytest.mark.long
def test_a_run_of_five_hundred_cycles_is_scrubbed_within_a_frame(open_page):
    page = open_page(reduced_motion="reduce")
    run = Trace(toyrun.header(), tuple(toyrun.events(cycles=500, tokens=1250)))
    page.evaluate("(log) => document.querySelector('.sd-player').load(log)", run.dumps())
    assert page.evaluate("document.querySelector('.sd-player').run().lanes.speculative.cycles.length") >= 500
    spent = processor(page, "ScriptDuration")
    page.evaluate(SCRUB, 30)
    assert 0 < spent() / 30 < 0.05


@pytest.mark.long
def test_reduced_motion_opens_at_the_first_rejection_and_stands_still(open_page):
    page = open_page(reduced_motion="reduce")
    expect(says(page)).to_contain_text("first rejection")
    before = page.input_value("[data-part=scrub]")
    time.sleep(0.6)
    assert page.input_value("[data-part=scrub]") == before


@pytest.mark.long
def test_example_prompts_and_recorded_runs_are_one_press_away(open_page):
    page = open_page(reduced_motion="reduce")
    toy = toyrun.tree_trace()
    page.locator(".sd-pills .sd-pill", has_text="Surprising").click()
    expect(page.locator("#prompt textarea")).to_have_value(re.compile("^The parrot "))
    page.locator(".sd-pills .sd-pill", has_text="Facts").click()
    expect(part(page, "sub0")).to_contain_text("tree")
    expect(page.locator("#prompt textarea")).to_have_value(toy.header.prompt)  # the rail tells of the run on show


@pytest.mark.parametrize(
    ("width", "height"), [(1280, 800), pytest.param(1280, 900, marks=pytest.mark.long), (375, 812)]
)
def test_the_story_fits_the_first_screen(open_page, width, height):
    page = open_page(width=width, height=height, reduced_motion="reduce")
    wait_for(page, "paused")
    for name in ("say", "flow", "gantt", "play", "lane0"):
        box = part(page, name).bounding_box()
        assert box and box["y"] >= 0 and box["y"] + min(box["height"], 30) <= height, (name, width)
    assert page.locator("[data-part=flow] .sd-res").count() == 1  # what came instead of the rejected draft
    assert page.evaluate("getComputedStyle(document.querySelector('.sd-transport')).position") == "static"
    for name in ("#prompt", "#run"):  # one's own is at hand, and covers nothing
        box = page.locator(name).bounding_box()
        assert box and box["y"] >= 0 and box["y"] + box["height"] < part(page, "stage").bounding_box()["y"]


@pytest.mark.long
def test_the_end_is_a_picture_and_a_film_to_keep_and_a_long_text_stays_in_its_box(open_page):
    page = open_page(reduced_motion="reduce")
    page.press("[data-part=stage]", "End")
    wait_for(page, "done")
    assert "passes instead of" in page.inner_text(".sd-finish")
    expect(page.locator("[data-zoom=run]")).to_have_attribute("aria-pressed", "true")  # both lanes are in sight
    before = part(page, "gantt").bounding_box()["width"]
    page.set_viewport_size({"width": 1200, "height": 900})
    page.wait_for_function("before => document.querySelector('[data-part=gantt] svg').clientWidth < before", arg=before)
    assert page.locator(".sd-finish").is_visible() and page.locator(".sd-flow").count() == 0
    with page.expect_download() as saved:
        page.click(".sd-finacts button >> nth=0")
    assert Path(saved.value.path()).read_bytes()[:4] == b"\x89PNG"
    with page.expect_download() as saved:
        page.click(".sd-finacts button >> nth=1")
    film = Path(saved.value.path()).read_bytes()
    assert film[4:8] == b"ftyp" or film[:4] == b"\x1aE\xdf\xa3"  # mp4 or WebM
    shown = """data => new Promise(done => {
        const film = document.createElement("video");
        film.onloadedmetadata = () => done([film.videoWidth, film.duration]);
        film.src = URL.createObjectURL(new Blob([new Uint8Array(data)]));
    })"""
    width, seconds = page.evaluate(shown, list(film))
    assert width == 1200 and 5.5 < seconds < 12  # a busy machine records late
    page.evaluate("log => document.querySelector('.sd-player').load(log)", long_prompt().dumps())
    assert part(page, "lane0").bounding_box()["height"] < 300


@pytest.mark.long
def test_a_full_lane_follows_its_newest_words_unless_the_visitor_reads_further_up(open_page):
    page = open_page(reduced_motion="reduce")
    long = Trace(toyrun.header(), toyrun.events(cycles=120, tokens=300)).dumps()
    page.evaluate("log => document.querySelector('.sd-player').load(log)", long)
    page.press("[data-part=stage]", "End")
    wait_for(page, "done")
    below = """() => {
        const box = document.querySelector("[data-part=lane0]");
        return box.scrollHeight - box.scrollTop - box.clientHeight;
    }"""
    page.wait_for_function(f"({below})() < 2")
    assert page.evaluate("document.querySelector('[data-part=lane0]').scrollTop") > 100
    page.press("[data-part=stage]", "ArrowLeft")
    page.press("[data-part=stage]", "ArrowRight")
    page.wait_for_function(f"({below})() < 2")
    page.evaluate("document.querySelector('[data-part=lane0]').scrollTop = 0")
    page.press("[data-part=stage]", "ArrowLeft")
    assert page.evaluate("document.querySelector('[data-part=lane0]').scrollTop") == 0


@pytest.mark.long
def test_lines_are_named_by_a_key_below_them(open_page):
    page = open_page(reduced_motion="reduce")
    for moment in ("Home", "ArrowRight", "End"):
        page.press("[data-part=stage]", moment)
        named = part(page, "curve").locator("text", has_text=re.compile("^(speculative|plain)$"))
        expect(named).to_have_count(2)
        floor = part(page, "curve").locator("svg").bounding_box()
        assert all(
            box["y"] > floor["y"] + floor["height"] / 2 for box in map(lambda one: one.bounding_box(), named.all())
        )


SHOWS_API = """document.querySelector("button.show-api").addEventListener("click", (event) => {
    window.shown = true;
    event.stopImmediatePropagation();
}, true)"""


@pytest.mark.long
def test_how_to_read_the_page_is_one_press_away_and_the_footer_leads_to_the_api(open_page):
    page = open_page(reduced_motion="reduce")
    assert part(page, "how").bounding_box()["y"] < 500
    part(page, "how").click()
    expect(page.locator(".sd-reading")).to_contain_text("min(1, p/q)")
    expect(page.locator(".sd-reading strong").first).to_be_in_viewport()
    page.evaluate(SHOWS_API)  # what Gradio's own drawer then asks for is not ours
    page.locator(".sd-end a").click()
    page.wait_for_function("window.shown === true")


def long_prompt():
    trace = toyrun.trace()
    return replace(trace, header=replace(trace.header, prompt="line\n" * 300))


def test_a_player_that_nobody_sees_stands_still(open_page):
    page = open_page()
    wait_for(page, "playing")
    page.get_by_role("tab", name="Theory").click()
    expect(page.locator("#theory")).to_be_visible()
    page.wait_for_timeout(200)
    before = page.evaluate("document.querySelector('[data-part=scrub]').value")
    page.wait_for_timeout(800)
    assert page.evaluate("document.querySelector('[data-part=scrub]').value") == before


# Takes the player out of the page and puts it back, until the browser tells of both changes in one message.
GONE_AND_BACK = """async () => {
  const player = document.querySelector(".sd-player"), home = player.parentNode, next = player.nextSibling;
  const frame = () => new Promise(requestAnimationFrame);
  let both = false;
  new IntersectionObserver((seen) => { both = !seen[0].isIntersecting && seen.at(-1).isIntersecting; }).observe(player);
  while (!both) {
    player.remove();
    await frame();
    home.insertBefore(player, next);
    for (const begun = performance.now(); performance.now() - begun < 40; );
    await frame();
    for (const begun = performance.now(); performance.now() - begun < 40; );
  }
}"""


def test_a_player_that_was_gone_for_a_moment_goes_on(open_page):
    page = open_page()
    wait_for(page, "playing")
    page.evaluate(GONE_AND_BACK)
    before = page.evaluate("document.querySelector('[data-part=scrub]').value")
    page.wait_for_function("(before) => document.querySelector('[data-part=scrub]').value !== before", arg=before)
