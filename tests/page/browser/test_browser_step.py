"""*Step through* in a real Chromium: a cycle and its decisions."""

from __future__ import annotations

import pytest
import toyrun
from chrome import expect, part, play_recorded, pytestmark  # noqa: F401

from specdec.traces.file import Trace
from specdec.ui import session
from specdec.ui.text import ASSETS

FIRST = ASSETS / "traces" / f"{session.FIRST[0]}.jsonl"


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
    strip = page.locator("[data-coin]").bounding_box()  # the drawing can be dragged, too
    page.mouse.move(strip["x"] + 0.1 * strip["width"], strip["y"] + 57)
    page.mouse.down()
    page.mouse.move(strip["x"] + 0.95 * strip["width"], strip["y"] + 57, steps=3)
    expect(page.locator(".sd-step [data-part=coinvalue]")).to_have_text("0.95")
    assert "reject" in tells(page)
    page.mouse.move(strip["x"] + 0.05 * strip["width"], strip["y"] + 57, steps=3)
    page.mouse.up()
    page.mouse.move(strip["x"] + 0.5 * strip["width"], strip["y"] + 57)
    expect(page.locator(".sd-step [data-part=coinvalue]")).to_have_text("0.05")
    assert "keep" in tells(page)
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


def test_from_a_run_without_coins_a_link_leads_to_one_with_them(open_page):
    page = open_page(1280, 900, "?tab=step", reduced_motion="reduce")
    page.evaluate("(log) => document.querySelector('.sd-player').load(log)", FIRST.read_text(encoding="utf-8"))
    page.get_by_text("Show a run with coins").click()
    expect(page.get_by_text("Show a run with coins")).to_have_count(0)
    expect(page.locator(".sd-step [data-part=title]")).to_have_text("Cycle 2 of 6")


@pytest.mark.long
def test_the_end_of_a_race_leads_to_ten_guesses_that_the_visitor_judges_by_keyboard(open_page):
    page = open_page(reduced_motion="reduce")
    log = (ASSETS / "traces" / "tips.jsonl").read_text(encoding="utf-8")
    page.evaluate("log => document.querySelector('.sd-player').load(log)", log)
    page.press("[data-part=stage]", "End")
    page.get_by_role("button", name="Be the big model").click()
    start = page.locator(".sd-game button")
    expect(start).to_be_focused()
    start.dblclick()  # once is enough
    expect(page.locator(".sd-game")).to_contain_text("Guess 1 of 10")
    page.locator(".sd-game button", has_text="Keep").focus()
    agreed = 0
    for number in range(1, 11):
        keep = page.locator(".sd-game button", has_text="Keep")
        expect(keep).to_be_focused()
        assert f"Guess {number} of 10" in page.inner_text(".sd-game")
        page.keyboard.press("Enter")
        agreed += page.locator(".sd-game .sd-tok.sd-acc").count()  # as the rule did
        assert page.locator(".sd-game .sd-tok.sd-acc, .sd-game .sd-tok.sd-rej").count() == 1
        page.keyboard.press("Enter")
    assert f"You and the rule agreed on {agreed} of 10." in page.inner_text(".sd-game-result")
    assert 0 < agreed < 10
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy result").click()
    expect(page.locator(".sd-game button", has_text="Copied")).to_be_visible()
    told = page.evaluate("navigator.clipboard.readText()")
    assert f"I judged {agreed}" in told and told.count("🟩") == agreed and told.endswith("?tab=step")
    page.get_by_role("button", name="Judge ten more").click()
    expect(page.locator(".sd-game")).to_contain_text("Guess 1 of 10")
