"""The page in a real Chromium: it draws, plays, pauses, runs live and stops, and asks nobody else for anything."""

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
    PATIENCE,
    pytestmark,
    real_models,
    says,
    state,
    step,
    tokens,
    until,
    until_free,
    wait_for,
)

from specdec.events import Finished, Started, Verified
from specdec.methods import METHODS
from specdec.proof.certify import NEWS
from specdec.traces.file import Trace
from specdec.ui import menu, session


def test_a_recorded_run_plays_pauses_at_its_first_rejection_and_goes_on(open_page):
    page = open_page(locale="en-GB")  # a context of its own, for its clock
    page.clock.install()
    expect(page.locator(".sd-badge").first).to_have_text("Recorded")
    until(page, "first-rejection")
    assert "first rejection" in says(page).inner_text() and "rejected" in says(page).inner_text()
    assert page.locator("[data-part=lane0] .sd-rej:not(.sd-fut)").count() == 1
    until(page, "playing")  # by itself
    page.click("[data-slow='1']")
    until(page, "done")
    assert "Done." in says(page).inner_text()
    assert "so far" not in page.inner_text(".sd-hero")


@pytest.mark.long
def test_who_steps_in_keeps_the_wheel(open_page):
    page = open_page()
    wait_for(page, "first-rejection")
    page.click("[data-part=next]")
    wait_for(page, "paused")
    time.sleep(8)  # longer than it would have waited
    assert state(page) == "paused"


def test_every_token_state_is_drawn_and_no_token_runs_as_code(open_page):
    page = open_page()
    page.focus("[data-part=stage]")
    page.keyboard.press("End")
    wait_for(page, "done")
    for kind in ("acc", "rej", "dis", "res", "bon", "pla"):
        assert page.locator(f"[data-part=lane0] .sd-{kind}:not(.sd-fut)").count() > 0, kind
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


def play_recorded(page, name):
    page.locator(".sd-pills .sd-pill", has_text=name).click()
    expect(part(page, "sub0")).to_contain_text("tree")
    page.focus("[data-part=stage]")
    page.keyboard.press("Home")


def test_a_tree_hangs_its_siblings_below_each_other_and_leaves_its_path_when_past(open_page):
    page = open_page(reduced_motion="reduce")
    play_recorded(page, "Facts")
    step(page)
    expect(says(page)).to_contain_text("one path, t1 t5")
    assert "2 of 2 levels" in part(page, "figures").inner_text()
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
    page.locator(".sd-tree .sd-rej:not(.sd-fut)").last.hover()
    card = part(page, "card")
    expect(card).to_contain_text("No coin")
    assert "Lossy" in card.inner_text() and "Coin u" not in card.inner_text()


@pytest.mark.long
@pytest.mark.parametrize("width", [375, 1280])
def test_a_peer_has_its_lane_its_figure_and_its_time(open_page, width):
    page = open_page(width, reduced_motion="reduce")
    assert part(page, "peer").is_hidden() and page.locator("[data-part=figures] > div").count() == 5
    page.locator(".sd-pills .sd-pill", has_text="Repetitive").click()
    expect(part(page, "peer")).to_be_visible()
    page.focus("[data-part=stage]")
    page.keyboard.press("End")
    wait_for(page, "done")
    assert tokens(page, 2).count() == 12
    assert page.locator("[data-part=lane2] .sd-bon:not(.sd-fut)").first.inner_text().endswith("+1")
    assert "× plain" in page.inner_text("[data-part=figures]") or width == 375
    assert page.locator("[data-part=figures] > div").count() == 6
    assert page.locator("[data-part=account] tr").first.locator("th").count() == 3
    assert "The transformers library took" in says(page).inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.locator("[data-part=lane2] .sd-rej:not(.sd-fut)").first.click()
    expect(part(page, "card")).to_contain_text("not told")
    page.locator(".sd-pills .sd-pill", has_text="Story").click()
    expect(part(page, "peer")).to_be_hidden()


@pytest.mark.long
def test_a_menus_line_follows_the_choice(open_page):
    page = open_page(reduced_motion="reduce")
    page.get_by_role("button", name="Advanced").click()
    page.get_by_label("Verification rule").click()
    page.get_by_role("option", name="Typical acceptance (lossy)").click()
    page.get_by_text("Lossy with this rule.").wait_for()
    page.get_by_label("Drafter").click()
    page.get_by_role("option", name="Prompt lookup").click()
    page.get_by_text("Copies what followed").wait_for()
    page.get_by_text("A third lane: the prompt lookup").wait_for()


@pytest.fixture
def page_with_a_choice(browser, tmp_path, monkeypatch):
    """A page of its own, whose family also holds a tuned target; nothing of it is loaded."""
    from specdec.ui.build import build
    from specdec.ui.theme import launch_settings

    for name in {*menu.TARGETS.values(), *(method.folder for method in METHODS.values())}:
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
    monkeypatch.setattr(menu, "FAMILY", tmp_path)
    monkeypatch.setattr(session, "_loaded", lambda *_: True)
    demo = build()
    _, url, _ = demo.launch(prevent_thread_lock=True, quiet=True, **launch_settings())
    page = browser.new_context().new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(url)
    yield page
    page.close()
    demo.close()


@pytest.mark.long
def test_another_target_brings_its_own_drafters(page_with_a_choice, monkeypatch):
    page, asked = page_with_a_choice, []

    class Tuned:
        def describe(self):
            return {"family": "tuned", "target": {"parameters": 10**6}, "draft_model:tuned": {"parameters": 10**5}}

        def race(self, _, prompt, drafter, *__, **___):
            asked.append(drafter)
            for event in toyrun.events():
                yield replace(event, drafter=drafter) if isinstance(event, Started) else event

    engine = Tuned()
    monkeypatch.setattr(session, "_engine", lambda family: (asked.append(family), (engine, engine.race))[1])
    page.get_by_role("button", name="Advanced").click()
    page.get_by_label("Target", exact=True).click()
    page.get_by_role("option", name="Built in: tuned on edits").click()
    page.get_by_text("as it was before tuning").wait_for()
    page.get_by_label("Drafter").click()
    anew = page.get_by_role("option", name="Draft model, distilled anew")
    anew.wait_for()
    assert page.get_by_role("option", name="Medusa").count() == 0
    anew.click()
    page.get_by_text("distilled anew from the tuned target").wait_for()
    page.click("#run")
    page.wait_for_selector("[data-source=live]")
    assert asked == ["tuned", "draft_model:tuned"]
    expect(part(page, "meta")).to_contain_text("draft model")
    expect(part(page, "meta")).to_contain_text("edit-tuned target")


def open_step(page):
    page.get_by_role("tab", name="Step through").click()
    page.wait_for_selector(".sd-step[data-state=ready] .sd-tells:not(:empty)")


def stands_at(page, cycle, sub_step):
    """Waits until the step page is there; then all of it is."""
    expect(page.locator(".sd-step [data-part=title]")).to_have_text(cycle)
    expect(page.locator(".sd-steps [aria-current]")).to_have_text(sub_step)


def tells(page):
    return page.inner_text(".sd-step [data-part=say]")


def test_a_cycle_is_taken_apart_and_another_coin_changes_its_verdict(open_page):
    page = open_page(reduced_motion="reduce")
    page.get_by_role("button", name="Take this decision apart").click()
    page.wait_for_selector(".sd-step[data-state=ready] .sd-tells:not(:empty)")
    stands_at(page, "Cycle 2 of 6", "Judge 3")
    assert "0.30" in tells(page) and "reject" in tells(page)
    page.locator(".sd-step [data-part=next]").click()
    stands_at(page, "Cycle 2 of 6", "Replace")
    assert "fills the gap" in tells(page)
    page.locator(".sd-steps button", has_text="Judge 3").click()
    stands_at(page, "Cycle 2 of 6", "Judge 3")
    page.locator(".sd-step [data-part=coin]").fill("0.1")
    expect(page.locator(".sd-steps")).to_contain_text("Bonus")
    assert tells(page).startswith("What if:") and "keep" in tells(page)
    assert page.locator(".sd-part.sd-grey").count() == 4
    page.locator(".sd-step [data-part=k]").fill("2")
    expect(page.locator(".sd-step [data-part=kanswer]")).to_contain_text("1 fewer to draft")
    page.get_by_role("button", name="Back to what really happened").click()
    expect(page.locator(".sd-steps")).to_contain_text("Replace")
    assert page.locator(".sd-part.sd-grey").count() == 0
    assert page.locator(".sd-step option:disabled").count() == 3  # no draws of the target's for two of them, and no h
    assert "the target’s own draws" in page.inner_text(".sd-step [data-part=ruleanswer]")


@pytest.mark.long
@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_what_a_sub_step_adds_moves_to_its_place_and_stands_there_at_once_without_motion(open_page, motion):
    page = open_page(1280, 800, reduced_motion=motion)
    open_step(page)
    page.locator(".sd-steps button", has_text="Commit").click()
    press = """name => {
        [...document.querySelectorAll(".sd-steps button")].find((one) => one.textContent === name).click();
        return document.querySelector(".sd-grid3").getAnimations({ subtree: true }).length;
    }"""
    for name, moving in {"Draft": 6, "Check all": 1, "Judge 1": 1, "Replace": 1, "Commit": 0}.items():
        assert page.evaluate(press, name) == (moving if motion == "no-preference" else 0), name
    grid = page.locator(".sd-grid3").bounding_box()
    assert grid["y"] >= 0 and grid["y"] + grid["height"] <= 800


@pytest.mark.long
def test_a_draft_of_sixteen_keeps_its_rejection_in_the_picture_and_its_labels_whole(open_page):
    page = open_page(1280, 800, reduced_motion="reduce")
    log = Trace(toyrun.header(), [*toyrun.speculative(3, 16), *toyrun.plain(40)]).dumps()
    page.evaluate("log => document.querySelector('.sd-player').load(log)", log)
    expect(part(page, "flow").locator(".sd-rej")).to_have_count(1)
    chip = part(page, "flow").locator(".sd-acc").first.bounding_box()
    assert chip and chip["height"] > 12  # px: it can be read
    open_step(page)
    stands_at(page, "Cycle 2 of 3", "Judge 16")
    covered = """() => [...document.querySelectorAll(".sd-grid3 .sd-rl")].every((label, i) => {
        const row = document.querySelectorAll(".sd-grid3 .sd-hot, .sd-grid3 .sd-pass")[i];
        const box = label.getBoundingClientRect(), next = row.getBoundingClientRect();
        return box.top <= next.top + 4 && box.bottom >= next.bottom - 4;
    })"""
    assert page.evaluate(covered)  # nothing shows above or below the label of a row that is scrolled


@pytest.mark.long
def test_keys_and_words_lead_from_decision_to_decision(open_page):
    page = open_page(375, reduced_motion="reduce", query="?__theme=dark")
    open_step(page)
    page.focus(".sd-step [data-part=grid]")
    page.keyboard.press("ArrowRight")
    stands_at(page, "Cycle 3 of 6", "Draft")
    for name in ("Check all", "Judge 1", "Judge 2", "Never judged", "Replace", "Commit", "Draft"):
        page.keyboard.press(" ")
        expect(page.locator(".sd-steps [aria-current]")).to_have_text(name)
        assert page.inner_text(".sd-step [data-part=announce]") == tells(page)
    page.locator(".sd-word", has_text="own1").click()
    stands_at(page, "Cycle 1 of 6", "Bonus")
    page.keyboard.press("End")  # a click on a word takes no key away
    expect(page.locator(".sd-step [data-part=title]")).to_have_text("Cycle 6 of 6")
    assert "<script>alert(1)</script>" in page.inner_text(".sd-whole") and "${alert(1)}" in page.inner_text(".sd-whole")
    page.locator(".sd-step [data-name=chen]").click()
    expect(page.locator(".sd-asks").first).to_contain_text("p and q swap")
    assert "min(1, q(x)/p(x))" not in page.inner_text(".sd-asks")
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    fits = "[...document.querySelectorAll('.sd-bar > button')].every((one) => one.scrollWidth <= one.clientWidth)"
    assert page.evaluate(fits)


@pytest.mark.long
def test_a_tree_is_taken_apart_sibling_by_sibling(open_page):
    page = open_page(reduced_motion="reduce")
    play_recorded(page, "Facts")
    open_step(page)
    expect(page.locator(".sd-step [data-part=title]")).to_have_text("Cycle 2 of 3")
    assert page.inner_text(".sd-steps").split("\n") == [
        "Draft", "Check all", "Judge 1", "Judge 2", "Judge 3", "Judge 4", "Never judged", "Replace", "Commit"
    ]  # fmt: skip
    assert page.locator(".sd-whole .sd-tok.sd-acc").count() == 1
    assert "chains only" in page.inner_text(".sd-step [data-part=ruleanswer]")


def processor(page, what="TaskDuration"):
    """How many seconds of the processor the page has taken since, script, layout and all, whoever else is at work."""
    tools = page.context.new_cdp_session(page)
    tools.send("Performance.enable", {"timeDomain": "threadTicks"})

    def taken():
        return next(m["value"] for m in tools.send("Performance.getMetrics")["metrics"] if m["name"] == what)

    before = taken()
    return lambda: taken() - before


SLIDE = """async (names) => {
    for (const name of names) for (let i = 1; i <= 10; i++) {
        const input = document.querySelector(`.sd-theory [data-part=${name}]`);
        input.value = +input.min + ((input.max - input.min) * i) / 11;
        input.dispatchEvent(new Event("input"));
        await new Promise(requestAnimationFrame);
    }
}"""


def open_theory(page):
    """Its parts by name."""
    page.get_by_role("tab", name="Theory").click()
    page.wait_for_selector(".sd-theory [data-part=headline]:not(:empty)")
    return lambda name: page.locator(f".sd-theory [data-part={name}]")


def test_the_formulas_start_at_the_run_follow_the_sliders_and_come_back(open_page):
    page = open_page(reduced_motion="reduce")
    part = open_theory(page)
    for name, value in {"alphavalue": "0.67", "kvalue": "3", "cvalue": "0.250", "vvalue": "1.00"}.items():
        expect(part(name)).to_have_text(value)
    expect(part("curves")).to_contain_text("you are here")
    assert "measured 1.44×" in part("curves").inner_text()
    assert "Measured 1.44× lies inside" in part("measuredsay").inner_text()
    assert "1.44×" in part("measured").inner_text()
    assert "1 (5)" in part("positions").inner_text() and "your run" in part("table").inner_text()
    page.get_by_role("button", name="α .8, K 4, c .1").click()
    expect(part("headline")).to_contain_text("2.40× by the formula: 3.36 tokens per cycle, and each cycle costs 1.40")
    assert part("announce").inner_text() == part("headline").inner_text()
    assert "you are here" not in part("curves").inner_text()
    recursion = part("recursion").inner_text().replace("\n", "")
    assert "E4 = 0.00" in recursion and "E0 = 2.36" in recursion
    assert "α must exceed 0.10: 0.80 does." in part("breakeven").inner_text()
    part("alpha").fill("0.05")
    expect(part("headline")).to_contain_text("slower than plain decoding")
    assert "no K pays" in part("tablesub").inner_text()
    part("k").focus()
    page.keyboard.press("ArrowRight")
    expect(part("kvalue")).to_have_text("5")
    page.get_by_role("button", name="Your last run").click()
    expect(part("kvalue")).to_have_text("3")
    assert "you are here" in part("curves").inner_text()


@pytest.mark.long
def test_the_memory_wall_and_the_claims_are_worked_out(open_page):
    page = open_page(reduced_motion="reduce")
    part = open_theory(page)
    claims = part("claims").inner_text()
    assert "2.40× if c is the cost of one" in claims and "3.06×" in claims and "2.86×" in claims and "141 GB" in claims
    page.get_by_role("button", name="Set the machine").click()
    expect(part("wallsay")).to_contain_text("reads 139 GB")
    assert "costs as much as one" in part("wallsay").inner_text()
    assert "Too much for one H200" in part("memory").inner_text()
    part("batch").fill("9")
    expect(part("batchvalue")).to_have_text("512")
    assert "bound by computing" in part("wallsay").inner_text()
    part("target").select_option("moe30")
    part("batch").fill("0")
    expect(part("wallsay")).to_contain_text("wakes other experts")
    page.get_by_role("button", name="Set the sliders").first.click()
    expect(part("headline")).to_have_text(re.compile(r"^2\.40×"))
    assert part("vvalue").inner_text() == "1.25"


def test_many_texts_at_once_as_reckoned_and_as_measured(open_page):
    page = open_page(reduced_motion="reduce")
    part = open_theory(page)
    expect(part("tradesay")).to_contain_text("Batch 1: plain decoding gives each 222 tokens/s, all 222; speculation")
    told = part("batchsay").inner_text()
    part("machine").select_option("t4")
    assert "Batch 1: plain decoding gives each 21 tokens/s" in part("tradesay").inner_text()
    assert part("batchsay").inner_text() != told and "Experts" in part("batches").inner_text()
    assert part("ourssay").inner_text().split(". ") == [
        "Toy, 2 cores, 2026-01-02",
        "64, K 3: 1.50× with 1 text, 1.10× with 4",  # 3 is the run's K
        "384, K 3: 1.40× with 1 text, 1.35× with 4",
        "Every text is plain decoding’s.",
    ]
    assert part("ours").locator("circle").count() == 8 and part("ourtrade").locator("circle").count() == 8
    part("k").fill("6")
    assert "64, K 7: 1.60× with 1 text, 0.90× with 4." in part("ourssay").inner_text()


@pytest.mark.long
def test_a_slider_of_the_formulas_moves_within_a_frame(open_page):
    page = open_page(reduced_motion="reduce")
    open_theory(page)
    spent, names = processor(page), ["alpha", "k", "c", "v", "o", "batch", "context"]
    page.evaluate(SLIDE, names)
    assert 0 < spent() / (10 * len(names)) < 0.05


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
def test_a_tab_that_was_open_before_comes_back_within_a_frame(open_page):
    page = open_page(reduced_motion="reduce")
    names = ["step", "lossless", "methods", "theory", "guide", "race"]
    open_methods(page)
    press = "(name) => { document.querySelector(`#${name}-button`).click(); return new Promise(requestAnimationFrame) }"
    for name in names:
        page.evaluate(press, name)
        page.wait_for_timeout(500)
    spent = processor(page, "ScriptDuration")
    for name in names:
        page.evaluate(press, name)
    assert 0 < spent() / len(names) < 0.05


def open_methods(page):
    page.get_by_role("tab", name="Methods").click()
    page.wait_for_selector("#arena-chart .heatmaplayer image")
    page.wait_for_selector("#kind-chart .heatmaplayer image")


def cells(page, chart):
    return page.locator(f"#{chart}-chart .heatmaplayer text")


def no_engine(*_):
    raise AssertionError("a model was asked for")


def test_the_arena_shows_what_was_recorded_and_loads_no_model(open_page, monkeypatch):
    monkeypatch.setattr(session, "_engine", no_engine)
    page = open_page(reduced_motion="reduce")
    assert page.evaluate("typeof window.Plotly") == "undefined"  # fetched when the tab is first opened
    open_methods(page)
    expect(cells(page, "arena")).to_have_count(12)
    assert sorted(cells(page, "arena").all_text_contents())[:3] == ["0.80", "0.90", "1.00"]
    expect(page.locator(".sd-recorded-badge p").first).to_have_text("Recorded")
    assert "Draft model on Story (1.80×)" in page.inner_text("#findings")
    page.get_by_label("Tokens per cycle τ").check()
    expect(page.locator("#arena-chart .heatmaplayer")).to_contain_text("2.80")
    expect(cells(page, "position")).to_have_text(["0.80", "0.70", "0.60"] * 3)
    expect(page.locator("#methods .sd-pair2")).to_contain_text("least about digits (0.25)")
    page.locator(".sd-choices").get_by_label("Code").check()
    cards = sum(method.card is not None for method in METHODS.values())
    assert page.locator("#cards section").count() == page.locator("#cards svg[role=img]").count() == cards


@pytest.mark.long
def test_the_table_is_sorted_by_mouse_and_by_keyboard_and_saved_as_a_file(open_page):
    page = open_page(reduced_motion="reduce")
    open_methods(page)
    table = page.get_by_role("table", name="All figures")
    first, speedup, worst = (
        table.locator("tbody tr").first,
        *(table.get_by_role("columnheader", name=name) for name in ("Speed-up ×", "Worst ×")),
    )
    expect(first).to_contain_text("Prompt lookup")
    speedup.get_by_role("button").click()
    expect(speedup).to_have_attribute("aria-sort", "descending")
    assert "1.80" in first.inner_text()
    page.keyboard.press("Enter")  # the heading has kept the focus
    expect(speedup).to_have_attribute("aria-sort", "ascending")
    assert "0.80" in first.inner_text()
    page.keyboard.press("Tab")
    page.keyboard.press(" ")
    expect(worst).to_have_attribute("aria-sort", "descending")
    assert speedup.get_attribute("aria-sort") == "none" and table.locator("tbody tr").count() == 12
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download CSV").press("Enter")
    lines = saved.value.path().read_text(encoding="utf-8").splitlines()
    assert saved.value.suggested_filename == "specdec-methods.csv"
    assert len(lines) == 13 and lines[0].startswith("drafter,domain,temperature,k,measured_speedup")


@pytest.mark.long
def test_a_measurement_here_stands_beside_the_record_and_stops_when_told(open_page, monkeypatch):
    races = []

    def race(*_, **__):
        """Quick until a method is done; then slow, so that there is something to stop however slowly a page draws."""
        races.append(race)
        for event in toyrun.events():
            time.sleep(0.02 if len(races) <= 3 else 0.3)
            yield event

    monkeypatch.setattr(session, "_engine", lambda *_: (SlowEngine(), race))
    page = open_page(375, reduced_motion="reduce", query="?__theme=dark")
    open_methods(page)
    line = page.locator("#live-notice")
    expect(line).to_contain_text("Nothing measured yet")
    page.click("#measure")
    expect(page.locator("#live-chart .scatterlayer .point")).not_to_have_count(0)
    expect(page.locator(".sd-live-badge p").first).to_have_text("Live")
    expect(line).to_contain_text("races done")
    page.click("#halt")
    page.wait_for_selector("#measure:enabled")
    expect(line).to_contain_text("Stopped")
    until_free()
    assert "Stopped" in line.inner_text()  # nothing came late
    expect(page.locator("#live-table")).to_contain_text("Draft model")
    assert page.locator("#live-chart .point").count() >= 2
    assert page.evaluate("document.documentElement.scrollWidth") <= 375


@pytest.mark.long
def test_reduced_motion_opens_at_the_first_rejection_and_stands_still(open_page):
    page = open_page(reduced_motion="reduce")
    expect(says(page)).to_contain_text("first rejection")
    before = page.input_value("[data-part=scrub]")
    time.sleep(1.5)
    assert page.input_value("[data-part=scrub]") == before


def test_bad_input_is_explained_and_loses_nothing(open_page):
    page = open_page(reduced_motion="reduce")
    before = page.inner_text("[data-part=lane0]")
    page.fill("#prompt textarea", "   ")
    page.click("#run")
    expect(page.locator("#notice .sd-wrong")).to_contain_text("prompt is empty")
    assert page.inner_text("[data-part=lane0]") == before and page.inner_text(".sd-badge") == "Recorded"
    expect(page.locator("#run")).to_be_enabled()


def test_a_grammar_is_checked_kept_and_shown(open_page, monkeypatch):
    """Of the run on show the player tells it; where it leaves a draft p = 0, the sentence says so."""
    params = replace(toyrun.PARAMS, grammar=" (yes|no)\\.")

    def barred(event):
        if isinstance(event, Started):
            return replace(event, params=params)
        if isinstance(event, Verified):
            judged = tuple(replace(x, p=0.0) if x.status == "rejected" else x for x in event.positions)
            return replace(event, positions=judged)
        return replace(event, reason="end") if isinstance(event, Finished) else event

    class Family:
        def describe(self):
            return {}

    monkeypatch.setattr(
        session, "_engine", lambda *_: (Family(), lambda *_, **__: (barred(event) for event in toyrun.events()))
    )
    page = open_page(reduced_motion="reduce", query="?grammar={a")
    expect(page.locator(".sd-wrong").first).to_contain_text("The schema is no JSON object")
    expect(part(page, "grammar")).to_be_hidden()
    page.get_by_role("button", name="Advanced").click()
    field, example = page.locator("#grammar textarea"), page.get_by_role("button", name="Yes or no")
    example.click()  # Gradio writes a field's value once more just after showing it: a fill before that may be lost
    expect(field).to_have_value(params.grammar)
    field.fill("a\\")
    page.locator("#run").click()
    expect(page.locator("#notice .sd-wrong")).to_contain_text("a backslash that stands before nothing")
    example.click()
    expect(field).to_have_value(params.grammar)
    page.wait_for_function("location.search.includes('grammar=+%28yes%7Cno%29')")
    page.locator("#run").click()
    wait_for(page, "done")
    expect(says(page)).to_contain_text("Both lanes: the text is complete under the grammar.")
    part(page, "grammar").click()
    expect(part(page, "card")).to_contain_text(params.grammar)
    page.press("[data-part=stage]", "Home")
    step(page, 2)
    expect(says(page)).to_contain_text("under the grammar its p is 0, so no coin could keep it")


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
    if width == 375:
        page.locator("[data-part=own]").click()
        expect(page.locator("#prompt textarea")).to_be_focused()


@pytest.mark.long
def test_the_end_is_a_picture_to_keep_and_a_long_text_stays_in_its_box(open_page):
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


@pytest.mark.long
def test_the_way_to_ones_own_prompt_covers_no_last_line_on_a_phone(open_page):
    page = open_page(375, 812, reduced_motion="reduce")
    page.evaluate("scrollTo(0, 1e6)")
    last, own = page.locator(".sd-end a").bounding_box(), part(page, "own").bounding_box()
    assert last["y"] + last["height"] <= own["y"]


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


class SlowEngine:
    """A toy run that begins briskly and then takes its time: one that somebody will want to stop, and that leaves the
    page time to notice, however busy the machine is."""

    closed = 0

    def race(self, *_, **__):
        try:
            for count, event in enumerate(toyrun.events(cycles=1000, tokens=2500)):
                time.sleep(0.05 if count < 40 else 0.5)
                yield event
        finally:
            self.closed += 1

    def describe(self):
        return {"target": {"parameters": 1_000_000}, "draft_model": {"parameters": 100_000}}


def test_stop_keeps_the_text_and_frees_the_machine(open_page, monkeypatch):
    engine = SlowEngine()
    monkeypatch.setattr(session, "_engine", lambda *_: (engine, engine.race))
    page = open_page(reduced_motion="reduce")
    page.click("#run")
    page.wait_for_selector("[data-source=live]")
    expect(tokens(page, 0).nth(3)).to_be_visible()
    page.click("#stop")
    page.wait_for_selector("#run:enabled")
    wait_for(page, "done")
    assert tokens(page, 0).count() > 3
    expect(says(page)).to_contain_text("Stopped")
    expect(page.locator("#notice")).to_contain_text("Stopped")
    until_free()
    assert engine.closed == 1


def test_an_engine_that_breaks_leaves_what_was_written(open_page, monkeypatch):
    def broken(*_, **__):
        yield from toyrun.events()[:20]
        raise RuntimeError("secret")

    monkeypatch.setattr(session, "_engine", lambda *_: (SlowEngine(), broken))
    page = open_page(reduced_motion="reduce")
    page.click("#run")
    page.wait_for_selector("#notice .sd-wrong")
    assert "secret" not in page.inner_text("body")
    expect(tokens(page, 0).nth(1)).to_be_visible()
    page.wait_for_selector("#run:enabled")


@real_models
def test_a_live_run_of_the_real_models_finishes(open_page):
    page = open_page()
    page.click("#run")
    page.wait_for_selector("[data-source=live]")
    expect(page.locator(".sd-badge").first).to_have_text("Live")
    page.click("[data-slow='1']")
    wait_for(page, "done")
    page.wait_for_selector("#run:enabled")
    assert tokens(page, 0).count() >= tokens(page, 1).count() > 10
    assert float(page.inner_text(".sd-hero dd").rstrip("×")) > 0


@pytest.mark.long
def test_the_app_prints_its_address(tmp_path):
    import subprocess
    import sys

    app = Path(__file__).resolve().parents[3] / "app.py"
    process = subprocess.Popen([sys.executable, "-u", str(app)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert any("http://" in line for line in process.stdout)
    finally:
        process.terminate()
        process.wait(10)


def certificate(page):
    page.get_by_role("tab", name="Lossless?").click()
    page.wait_for_selector(".sd-proof [data-part=verdict] h2")


def verdict(page):
    return page.locator(".sd-proof [data-part=verdict]")


def break_it(page, key):
    page.locator(f".sd-bug[data-key={key}]").click()


def test_the_certificate_is_green_until_it_is_broken(open_page):
    page = open_page(reduced_motion="reduce")
    certificate(page)
    title, badge = verdict(page).locator("h2"), page.locator(".sd-proof [data-part=badge]")
    expect(title).to_have_text("Lossless")
    expect(badge).to_have_text("Recorded")
    expect(page.locator(".sd-proof .sd-small.sd-good")).to_have_count(3)
    break_it(page, "from_target")
    expect(title).to_have_text("Not lossless")
    assert "two of three checks fail" in verdict(page).inner_text()
    assert "Greedy text still matches" in verdict(page).inner_text() and page.locator(".sd-cross").count() == 3
    break_it(page, "extra_bonus")
    expect(verdict(page)).to_contain_text("The next token hides it")
    assert page.get_attribute(".sd-bug[data-key=from_target]", "aria-checked") == "false"
    page.locator(".sd-proof [data-part=more]").click()
    break_it(page, "ratio_epsilon")
    expect(verdict(page)).to_contain_text("million")
    assert page.locator(".sd-cross").count() == 0
    break_it(page, "ratio_epsilon")
    expect(title).to_have_text("Lossless")


@pytest.mark.long
def test_the_real_models_certificates_are_recorded_too(open_page, monkeypatch):
    monkeypatch.setattr(session, "_certificate", no_engine)
    page = open_page(reduced_motion="reduce")
    certificate(page)
    page.get_by_role("button", name="Real models").click()
    place, badge = page.locator(".sd-proof [data-part=place]"), page.locator(".sd-proof [data-part=badge]")
    expect(place).to_contain_text("after “The old lighthouse")
    expect(badge).to_have_text("Recorded")
    expect(verdict(page).locator("h2")).to_have_text("Lossless")
    break_it(page, "from_target")
    expect(verdict(page).locator("h2")).to_have_text("Not lossless")
    page.locator(".sd-proof [data-part=text]").fill("Another text")
    expect(place).to_contain_text("Nobody has sampled this yet")


@pytest.mark.long
def test_under_a_grammar_other_mistakes_are_offered(open_page):
    page = open_page(375, reduced_motion="reduce")
    certificate(page)
    break_it(page, "from_target")
    page.get_by_role("button", name="Grammar", exact=True).click()
    title, place = verdict(page).locator("h2"), page.locator(".sd-proof [data-part=place]")
    expect(place).to_contain_text("under the grammar ( sea| sun( sky| fog)| fog( ice| sea))*")
    expect(title).to_have_text("Lossless")  # the mistake of the other pair is switched off
    assert page.locator(".sd-bug:visible").count() == 4 and not page.locator("[data-part=quiz]").is_visible()
    break_it(page, "grammar_not_rolled_back")
    expect(title).to_have_text("Not lossless")
    expect(verdict(page)).to_contain_text("Stay at the end of a rejected draft")
    break_it(page, "grammar_target_only")
    expect(title).to_have_text("Lossless")
    expect(verdict(page)).to_contain_text("No mistake: what the grammar forbids")
    page.get_by_role("button", name="Toy pair").click()
    expect(verdict(page)).to_contain_text("All three checks agree")
    assert page.locator(".sd-bug:visible").count() == 8


@pytest.mark.long
def test_fewer_draws_show_less(open_page):
    page = open_page(reduced_motion="reduce")
    certificate(page)
    break_it(page, "one_coin")
    expect(page.locator(".sd-cross").first).to_be_attached()
    page.locator(".sd-proof [data-part=draws]").fill("0")
    expect(page.locator(".sd-proof [data-part=sampled]")).to_contain_text("100 times")
    assert page.locator(".sd-cross").count() == 0


@pytest.mark.long
def test_a_guess_is_compared_with_what_the_next_token_shows(open_page):
    page = open_page(375, reduced_motion="reduce", query="?__theme=dark")
    certificate(page)
    page.locator(".sd-guesses label", has_text="One coin").locator("input").check()
    page.locator(".sd-guesses label", has_text="Resample from").locator("input").check()
    page.get_by_role("button", name="Reveal").click()
    expect(page.locator(".sd-proof [data-part=score]")).to_have_text("6 of 8 right.")
    guesses = page.inner_text(".sd-guesses")
    assert guesses.count("hidden") == 2 and guesses.count("seen at once") == 6
    assert page.evaluate("document.documentElement.scrollWidth") <= 375


def test_a_live_certificate_of_a_broken_loop_turns_red(open_page):
    page = open_page(reduced_motion="reduce")
    certificate(page)
    badge = page.locator(".sd-proof [data-part=badge]")
    break_it(page, "argmax_draft")
    page.locator(".sd-proof [data-part=draws]").fill("1")
    page.locator(".sd-proof [data-part=run]").click()
    page.wait_for_selector(".sd-proof[data-source=live]")
    page.wait_for_selector(".sd-proof [data-part=run]:enabled")
    expect(page.locator(".sd-proof [data-part=sampled]")).to_contain_text("1,000 times")
    expect(badge).to_have_text("Live")
    assert page.locator(".sd-cross").count() == 3
    break_it(page, "argmax_draft")
    expect(badge).to_have_text("Recorded")


# As on a hidden page, no frame comes. A draw gives the sample's section new children.
HOLD = """() => {
  [window.held, window.draws] = [[], 0];
  window.requestAnimationFrame = (draw) => held.push(draw);
  const sampled = document.querySelector(".sd-proof [data-part=sampled]");
  new MutationObserver(() => draws++).observe(sampled, { childList: true });
}"""


@pytest.mark.long
def test_between_two_frames_news_of_a_certificate_is_not_drawn_and_the_last_is_not_lost(open_page, monkeypatch):
    def fast_certificate(request):
        told = session.recorded_certificates("toy")[request.mistake]
        for done in range(1, 41):
            yield {**told, "sampled": told["sampled"][:1], "done": done}
            time.sleep(0.01)

    monkeypatch.setattr(session, "_certificate", fast_certificate)
    page = open_page(reduced_motion="reduce")
    certificate(page)
    page.evaluate(HOLD)
    page.locator(".sd-proof [data-part=run]").click()
    said, sampled = page.locator(".sd-proof [data-part=said]"), page.locator(".sd-proof [data-part=sampled]")
    expect(said).to_have_text("Stopped after 40 draws.")
    for held in ("[]", "window.held"):  # a frame that comes late changes nothing
        page.evaluate(f"{held}.forEach((draw) => draw())")
        assert page.get_attribute(".sd-proof", "data-source") == "live"
        assert "100 times" in sampled.inner_text() and "Stopped after 40" in said.inner_text()
        assert page.evaluate("draws") <= 6  # asked and ended, and each time the new height
    until_free()


def slow_certificate(request):
    """One that somebody will want to stop; it tells as often as the engine does."""
    told = session.recorded_certificates("toy")[request.mistake]
    for done in range(1, 2000):
        yield {**told, "sampled": [], "done": done}
        time.sleep(NEWS)


@pytest.mark.long
def test_a_certificate_can_be_stopped(open_page, monkeypatch):
    monkeypatch.setattr(session, "_certificate", slow_certificate)
    page = open_page(reduced_motion="reduce")
    certificate(page)
    page.locator(".sd-proof [data-part=run]").click()
    page.wait_for_selector(".sd-proof[data-source=live]")
    said = page.locator(".sd-proof [data-part=said]")
    expect(said).to_contain_text(" of 20,000")
    page.locator(".sd-proof [data-part=stop]").click()
    expect(said).to_contain_text("Stopped after")
    until_free()
    expect(page.locator(".sd-proof [data-part=run]")).to_be_enabled()
